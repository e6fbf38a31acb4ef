/*
 * A process that never ran: a folder that looks like /proc/PID, ELF objects made to order, their
 * memory as an image, and a judge that knows a runtime by its magic word.
 */
#pragma once

#include "symbols/find_python.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/elf_image.h"
#include "tests/unit/fake_proc.h"

enum {
    OBJECT_LIMIT = 4,
    PAGE = 0x1000,
    AT_DATA = 0x400,
    AT_BSS = 0x1400,
    WIDE = 0x80000,
    VERSION_AT = 0x200
};

#define LOAD 0x7f0000000000
#define LOAD_STEP 0x1000000
#define HEAP 0x600000000000

/* What stands for a runtime here. */
struct runtime {
    char magic[8];
    uint64_t version, mutex, head, main, next_id;
};

static const uint32_t HEAD_OFFSETS[] = { 8, offsetof(struct runtime, head), 0 };

struct object {
    remote_addr load;
    alignas(8) uint8_t memory[2 * PAGE]; /* .data, then .bss */
    struct elf_image image;
};

struct world {
    struct fake_proc proc;
    struct object objects[OBJECT_LIMIT];
    size_t object_count;
    alignas(8) uint8_t heap[PAGE];
    alignas(8) uint8_t wide[WIDE]; /* mapped behind all the rest, where the test wants it */
    remote_addr wide_at;           /* 0: nowhere */
    bool zeros;                    /* read as zero what is mapped nowhere */
    struct image_range ranges[OBJECT_LIMIT + 2];
    struct image_remote image;
    struct python_judge judge;
    struct remote counting; /* passes on to the image, or fails */
    size_t bytes_read;
    int read_error;
    unsigned probes;
    uint32_t last_hint;
    struct python_location found;
    struct failure why;
};

static inline int judge_probe(void *context, remote_addr address, uint32_t hint,
                              uint32_t *ret_version)
{
    struct world *world = context;
    struct runtime runtime;
    world->probes++;
    world->last_hint = hint;
    int error = remote_read(&world->counting, address, &runtime, sizeof runtime);
    if (error)
        return error;
    bool cookie = memcmp(runtime.magic, "xdebugpy", 8) == 0;
    if ((!cookie && memcmp(runtime.magic, "_runtime", 8) != 0) || !runtime.main)
        return -EBADMSG;
    if (!cookie && hint && hint >> 16 != runtime.version >> 16)
        return -EBADMSG;
    *ret_version = (uint32_t)runtime.version;
    return runtime.version < 0x03080000 || runtime.version >= 0x03100000 ? -ENOTSUP : 0;
}

static inline int counting_read(struct remote *self, const struct remote_piece *pieces,
                                size_t count, size_t *ret_tail)
{
    struct world *world = (struct world *)(void *)((char *)self - offsetof(struct world, counting));
    for (size_t i = 0; i < count; i++)
        world->bytes_read += pieces[i].size;
    if (world->read_error)
        return world->read_error;
    int whole = world->image.remote.read_pieces(&world->image.remote, pieces, count, ret_tail);
    for (; world->zeros && (size_t)whole < count; whole++)
        memset(pieces[whole].into, 0, pieces[whole].size);
    return whole;
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    fake_proc_init(&world->proc);
    fake_link(&world->proc, "exe", "/bin/host");
    world->counting.read_pieces = counting_read;
    world->judge = (struct python_judge){ world, judge_probe, HEAD_OFFSETS, 0 };
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    fake_proc_done(&world->proc);
    free(world);
    return 0;
}

/* Maps an object; its file is where `file_name` says, which may be NULL: nowhere. */
static inline struct object *object_map(struct world *world, const char *path,
                                        const struct elf_plan *plan, const char *file_name)
{
    struct object *object = &world->objects[world->object_count];
    remote_addr load = LOAD + LOAD_STEP * world->object_count;
    struct stat status = { .st_ino = 1000 + world->object_count };
    assert_true(world->object_count++ < OBJECT_LIMIT);
    object->load = load;
    elf_image_make(&object->image, plan);
    if (file_name) {
        fake_write(&world->proc, file_name, object->image.bytes, sizeof object->image.bytes);
        status = fake_stat(&world->proc, file_name);
    }
    const uint64_t data = load + ELF_IMAGE_DATA, bss = load + ELF_IMAGE_BSS;
    fake_map(&world->proc, load, load + PAGE, "r--p", 0, &status, path);
    fake_map(&world->proc, load + PAGE, load + 2 * PAGE, "r-xp", 0x1000, &status, path);
    fake_map(&world->proc, data, bss, "rw-p", ELF_IMAGE_DATA_AT, &status, path);
    fake_map(&world->proc, bss, bss + PAGE, "rw-p", 0, NULL, "");
    return object;
}

/* The common way: the kernel shows the very file under map_files. */
static inline struct object *object_add(struct world *world, const char *path,
                                        const struct elf_plan *plan)
{
    char name[64];
    unsigned long long load = LOAD + LOAD_STEP * world->object_count;
    snprintf(name, sizeof name, "map_files/%llx-%llx", load, load + PAGE);
    return object_map(world, path, plan, name);
}

static inline struct runtime *runtime_put(struct object *object, size_t at, const char *magic,
                                          uint32_t version)
{
    struct runtime *runtime = (struct runtime *)(object->memory + at);
    memcpy(runtime->magic, magic, 8);
    runtime->version = version;
    runtime->head = runtime->main = HEAP;
    runtime->next_id = 1;
    return runtime;
}

static inline int world_find(struct world *world)
{
    size_t count = 0;
    world->ranges[count++] = (struct image_range){ HEAP, world->heap, PAGE };
    for (size_t i = 0; i < world->object_count; i++)
        world->ranges[count++] = (struct image_range){
            world->objects[i].load + ELF_IMAGE_DATA,
            world->objects[i].memory,
            2 * PAGE,
        };
    if (world->wide_at)
        world->ranges[count++] = (struct image_range){ world->wide_at, world->wide, WIDE };
    image_remote_init(&world->image, world->ranges, count);
    return python_find(&world->counting, world->proc.fd, &world->judge, &world->found, &world->why);
}

static inline void assert_found(struct world *world, const struct object *object, size_t at,
                                enum python_found_by by)
{
    assert_int_equal(world_find(world), 0);
    assert_int_equal(world->found.runtime, object->load + ELF_IMAGE_DATA + at);
    assert_int_equal(world->found.by, by);
}

static inline void assert_not_found(struct world *world, int error, const char *told)
{
    assert_int_equal(world_find(world), error);
    assert_int_equal(world->why.code, error);
    if (!strstr(world->why.text, told))
        fail_msg("\"%s\" is not told: %s", told, world->why.text);
}

/* An object that tells nothing. */
static const struct elf_plan NOTHING = { .no_sections = true, .hash = HASH_NONE };

/* Objects come at rising addresses behind the heap. */
static inline void heap_map(struct world *world)
{
    fake_map(&world->proc, HEAP, HEAP + PAGE, "rw-p", 0, NULL, "[heap]");
}
