/* The runtime found by what stands in memory, and what looking for it may cost. */
#define _GNU_SOURCE 1 /* nftw */

#include "sampler/base/cleanup.h"
#include "symbols/find_python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/made_process.h"

static void test_cookie_in_data(void **state)
{
    struct world *world = *state;
    object_add(world, "/bin/host", &NOTHING);
    struct object *library = object_add(world, "/lib/a.so", &NOTHING);
    runtime_put(library, AT_DATA, "xdebugpy", 0x030e00f0);
    assert_found(world, library, AT_DATA, FOUND_BY_COOKIE);
    assert_string_equal(world->found.object_path, "/lib/a.so");
}

/* Data moved to huge pages are anonymous, and no object is near. */
static void test_cookie_in_anonymous_memory(void **state)
{
    struct world *world = *state;
    fake_map(&world->proc, HEAP, HEAP + PAGE, "rw-p", 0, NULL, "");
    object_add(world, "/bin/host", &NOTHING);
    struct runtime *runtime = (struct runtime *)(world->heap + 0x100);
    *runtime = (struct runtime){ .version = 0x030e00f0, .main = HEAP };
    memcpy(runtime->magic, "xdebugpy", 8);
    assert_int_equal(world_find(world), 0);
    assert_int_equal(world->found.runtime, HEAP + 0x100);
    assert_int_equal(world->found.by, FOUND_BY_COOKIE);
}

/* The words stand in other tools, too. */
static void test_cookie_that_is_none(void **state)
{
    struct world *world = *state;
    struct object *host = object_add(world, "/bin/host", &NOTHING);
    runtime_put(host, AT_DATA, "xdebugpy", 0x030e00f0)->main = 0;
    struct object *library = object_add(world, "/lib/a.so", &NOTHING);
    runtime_put(library, AT_DATA, "xdebugpy", 0x030d00f0);
    assert_found(world, library, AT_DATA, FOUND_BY_COOKIE);
}

static void test_scan(void **state)
{
    static const size_t places[] = { AT_DATA, AT_BSS, PAGE - offsetof(struct runtime, main) };
    for (size_t i = 0; i < 3; i++) {
        struct world *world = *state;
        world->object_count = 0;
        world->proc.maps[0] = '\0';
        heap_map(world);
        struct object *host = object_add(world, "/bin/host", &NOTHING);
        memset(host->memory, 0, sizeof host->memory);
        runtime_put(host, places[i], "_runtime", 0x030b0000);
        assert_found(world, host, places[i], FOUND_BY_SCAN);
    }
}

static void test_scan_with_subinterpreters(void **state)
{
    struct world *world = *state;
    heap_map(world);
    struct object *host = object_add(world, "/bin/host", &NOTHING);
    struct runtime *runtime = runtime_put(host, AT_DATA, "_runtime", 0x030b0000);
    runtime->head = HEAP + 0x800;
    runtime->next_id = 3;
    assert_found(world, host, AT_DATA, FOUND_BY_SCAN);
}

/* Lists of everything else look alike; the judge turns them down, and its patience is not asked for
 * much. */
static void test_scan_among_decoys(void **state)
{
    struct world *world = *state;
    heap_map(world);
    struct object *host = object_add(world, "/bin/host", &NOTHING);
    for (size_t at = 0; at < 2 * PAGE; at += 8)
        memcpy(host->memory + at, &(uint64_t){ at % 24 == 16 ? 7 : HEAP }, 8);
    runtime_put(host, AT_BSS, "_runtime", 0x030b0000);
    assert_found(world, host, AT_BSS, FOUND_BY_SCAN);
    assert_true(world->probes < 4 * 2 * PAGE / 24);
}

/* Memory is read in chunks, and a list must not fall between two of them. */
static void test_scan_of_a_wide_object(void **state)
{
    struct world *world = *state;
    heap_map(world);
    struct object *host = object_add(world, "/bin/host", &NOTHING);
    world->wide_at = host->load + ELF_IMAGE_END;
    fake_map(&world->proc, world->wide_at, world->wide_at + WIDE, "rw-p", 0, NULL, "");
    for (size_t page = PAGE; page < WIDE; page += PAGE) {
        for (size_t before = 0; before < sizeof(struct runtime); before += 8) {
            struct runtime runtime = { "_runtime", 0x030b0000, 0, HEAP, HEAP, 1 };
            memcpy(world->wide + page - before, &runtime, sizeof runtime);
            assert_int_equal(world_find(world), 0);
            assert_int_equal(world->found.runtime, world->wide_at + page - before);
            memset(world->wide + page - before, 0, sizeof runtime);
        }
    }
}

/* ---- cost ---- */

#define TERABYTE (1ull << 40)

static void reserve(struct world *world, uint64_t terabyte, const struct stat *of)
{
    fake_map(&world->proc, terabyte * TERABYTE, (terabyte + 1) * TERABYTE, of ? "rwxp" : "rw-p", 0,
             of, of ? "/lib/huge.so" : "");
}

/* Sanitizers and other languages' runtimes reserve terabytes; what little is left to read ends. */
static void test_bounded_reading(void **state)
{
    struct world *world = *state;
    const struct stat status = { .st_ino = 7 };
    world->zeros = true;
    for (uint64_t i = 0; i < 20; i++)
        reserve(world, 2 * i + 1, i % 2 ? &status : NULL);
    assert_not_found(world, -ENOENT, "no Python");
    assert_true(world->bytes_read > 0 && world->bytes_read < TERABYTE >> 10);
}

/* .. and does not keep us from what lies behind it. */
static void test_reserved_memory_before_python(void **state)
{
    struct world *world = *state;
    world->zeros = true;
    world->wide_at = 120 * TERABYTE;
    for (uint64_t i = 0; i < 20; i++)
        reserve(world, i + 1, NULL);
    fake_map(&world->proc, world->wide_at, world->wide_at + WIDE, "rw-p", 0, NULL, "");
    memcpy(world->wide + 0x100, &(struct runtime){ "xdebugpy", 0x030e00f0, 0, 1, 1, 1 },
           sizeof(struct runtime));
    assert_int_equal(world_find(world), 0);
    assert_int_equal(world->found.runtime, world->wide_at + 0x100);
}

static void test_huge_object_before_python(void **state)
{
    struct world *world = *state;
    const struct stat status = { .st_ino = 7 };
    world->zeros = true;
    reserve(world, 1, &status);
    struct object *library = object_add(world, "/lib/a.so", &NOTHING);
    runtime_put(library, AT_DATA, "xdebugpy", 0x030e00f0);
    assert_found(world, library, AT_DATA, FOUND_BY_COOKIE);
}

static void test_pointers_are_not_all_judged(void **state)
{
    struct world *world = *state;
    heap_map(world);
    struct object *host = object_add(world, "/bin/host", &NOTHING);
    for (size_t at = 0; at < sizeof host->memory; at += 8)
        memcpy(host->memory + at, &(uint64_t){ HEAP }, 8);
    runtime_put(host, AT_BSS, "_runtime", 0x030b0000);
    assert_found(world, host, AT_BSS, FOUND_BY_SCAN);
    assert_true(world->probes <= 2);
}

int main(void)
{
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(test_cookie_in_data),
        IN_A_WORLD(test_cookie_in_anonymous_memory),
        IN_A_WORLD(test_cookie_that_is_none),
        IN_A_WORLD(test_scan),
        IN_A_WORLD(test_scan_with_subinterpreters),
        IN_A_WORLD(test_scan_among_decoys),
        IN_A_WORLD(test_scan_of_a_wide_object),
        IN_A_WORLD(test_bounded_reading),
        IN_A_WORLD(test_reserved_memory_before_python),
        IN_A_WORLD(test_huge_object_before_python),
        IN_A_WORLD(test_pointers_are_not_all_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
