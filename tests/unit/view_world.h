/* A megabyte that views look at, and that can change or go away meanwhile. */
#pragma once

#include "pyabi/view.h"
#include "tests/unit/counted_remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

enum { SIZE = 1 << 20, STATE = 0, STATE_SIZE = 64, FRAME_SIZE = 80, FRAMES = 200 };

#define BASE ((remote_addr)0x7f0000000000)

struct world {
    uint8_t bytes[SIZE];
    struct image_range ranges[2]; /* the second begins where the first ends */
    struct counted_remote memory;
    struct view *view;
};

static inline int world_make(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    for (size_t i = 0; i < SIZE; i++)
        world->bytes[i] = (uint8_t)(i * 31 + i / 256);
    world->ranges[0] = (struct image_range){ BASE, world->bytes, SIZE };
    counted_remote_init(&world->memory, world->ranges, 1);
    assert_int_equal(view_new(&world->view), 0);
    *state = world;
    return 0;
}

static inline int world_free(void **state)
{
    struct world *world = *state;
    view_free(world->view);
    free(world);
    return 0;
}

/* Cuts out of what can be read the bytes from `from` to `to`. */
static inline void world_unmap(struct world *world, size_t from, size_t to)
{
    world->ranges[0] = (struct image_range){ BASE, world->bytes, from };
    world->ranges[1] = (struct image_range){ BASE + to, world->bytes + to, SIZE - to };
    image_remote_init(&world->memory.image, world->ranges, 2);
}

static inline int refill(struct world *world, unsigned looks)
{
    world->memory.calls = world->memory.pieces = 0;
    world->memory.bytes = 0;
    return view_refill(world->view, &world->memory.remote, looks);
}

static inline const void *fetch(struct world *world, enum piece_rank rank, size_t at, size_t size)
{
    int error = 0;
    const void *bytes =
        view_fetch(world->view, &world->memory.remote, rank, BASE + at, size, &error);
    assert_true(bytes ? error == 0 : error < 0);
    return bytes;
}

static inline void assert_fetches(struct world *world, enum piece_rank rank, size_t at, size_t size)
{
    const void *bytes = fetch(world, rank, at, size);
    assert_non_null(bytes);
    assert_memory_equal(bytes, world->bytes + at, size);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_free)
