/* What the page cache serves is what stands there, in as few calls as the order of the reads
 * allows. */
#include "sampler/base/page_cache.h"

#include "sampler/base/cleanup.h"
#include "tests/unit/counted_remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

DEFINE_CLEANUP(struct page_cache *, page_cache_free)

enum { PAGE = 4096, PAGES = 64, ALONE = 2 };

#define BASE ((remote_addr)0x10000)
#define FAR ((remote_addr)0x7f0000000000)

/* Many pages at BASE, two at FAR of which the second is cut short. */
struct world {
    uint8_t bytes[PAGES * PAGE], far_bytes[ALONE * PAGE];
    struct image_range ranges[2];
    struct counted_remote memory;
    struct page_cache *cache;
};

static int world_make(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    for (size_t i = 0; i < sizeof world->bytes; i++)
        world->bytes[i] = (uint8_t)(i ^ i / PAGE * 7);
    memset(world->far_bytes, 0xFA, sizeof world->far_bytes);
    world->ranges[0] = (struct image_range){ BASE, world->bytes, sizeof world->bytes };
    world->ranges[1] = (struct image_range){ FAR, world->far_bytes, PAGE + PAGE / 2 };
    counted_remote_init(&world->memory, world->ranges, 2);
    assert_int_equal(page_cache_new(&world->memory.remote, &world->cache), 0);
    *state = world;
    return 0;
}

static int world_free(void **state)
{
    struct world *world = *state;
    page_cache_free(world->cache);
    free(world);
    return 0;
}

static void assert_reads(struct world *world, size_t from, size_t size)
{
    AUTO_FREE uint8_t *got = malloc(size);
    assert_non_null(got);
    assert_int_equal(remote_read(page_cache_remote(world->cache), BASE + from, got, size), 0);
    assert_memory_equal(got, world->bytes + from, size);
}

static void test_bytes_are_those_of_the_target(void **state)
{
    struct world *world = *state;
    for (size_t size = 1; size < 3 * PAGE; size = 2 * size + 1)
        for (size_t from = 0; from + size <= sizeof world->bytes; from += 1021)
            assert_reads(world, from, size);
}

static void test_a_page_is_read_once(void **state)
{
    struct world *world = *state;
    for (size_t at = 0; at < PAGE; at += 64)
        assert_reads(world, at, 64);
    assert_int_equal(world->memory.calls, 1);
}

static void test_a_forgotten_page_is_read_again(void **state)
{
    struct world *world = *state;
    assert_reads(world, 0, 8);
    world->bytes[0] ^= 0xFF;
    uint8_t got;
    remote_read(page_cache_remote(world->cache), BASE, &got, 1);
    assert_int_equal(got, world->bytes[0] ^ 0xFF);
    page_cache_forget(world->cache);
    assert_reads(world, 0, 8);
    assert_int_equal(world->memory.calls, 2);
}

/* Reading on and on costs fewer calls than pages; so does reading backwards. */
static void test_reads_in_order_are_read_ahead(void **state)
{
    struct world *world = *state;
    for (size_t page = 0; page < PAGES / 2; page++)
        assert_reads(world, page * PAGE, 8);
    assert_in_range(world->memory.calls, 1, PAGES / 4);
    page_cache_forget(world->cache);
    world->memory.calls = 0;
    for (size_t page = PAGES; page-- > PAGES / 2;)
        assert_reads(world, page * PAGE, 8);
    assert_in_range(world->memory.calls, 1, PAGES / 4);
}

static void test_reads_all_over_are_not_read_ahead(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < 8; i++)
        assert_reads(world, i % 2 ? (PAGES - 1 - i) * PAGE : i * PAGE, 8);
    assert_int_equal(world->memory.bytes, 8 * PAGE);
}

static void test_what_is_not_there_is_a_fault(void **state)
{
    struct world *world = *state;
    struct remote *remote = page_cache_remote(world->cache);
    uint8_t bytes[2 * PAGE];
    assert_int_equal(remote_read(remote, 0, bytes, 8), -EFAULT);
    assert_int_equal(remote_read(remote, BASE - 8, bytes, 8), -EFAULT);
    assert_int_equal(remote_read(remote, BASE + sizeof world->bytes - 4, bytes, 8), -EFAULT);
    assert_int_equal(remote_read(remote, UINT64_MAX - 3, bytes, 8), -EFAULT);
}

/* Memory is mapped by the page, so half a page is as good as none. */
static void test_as_much_as_there_is(void **state)
{
    struct world *world = *state;
    uint8_t bytes[2 * PAGE];
    long got = remote_read_some(page_cache_remote(world->cache), FAR + 16, bytes, sizeof bytes);
    assert_int_equal(got, PAGE - 16);
    assert_int_equal(bytes[0], 0xFA);
}

static void test_unreadable_is_remembered(void **state)
{
    struct world *world = *state;
    uint8_t byte;
    for (int i = 0; i < 5; i++)
        assert_int_equal(remote_read(page_cache_remote(world->cache), 0x5000, &byte, 1), -EFAULT);
    assert_int_equal(world->memory.calls, 1);
}

static void test_errors_pass_through(void **state)
{
    struct world *world = *state;
    uint8_t byte;
    world->memory.error = -ESRCH;
    assert_int_equal(remote_read(page_cache_remote(world->cache), BASE, &byte, 1), -ESRCH);
    world->memory.error = 0;
    assert_reads(world, 0, 1);
}

static void test_a_vector_stops_at_its_first_fault(void **state)
{
    struct world *world = *state;
    struct remote *remote = page_cache_remote(world->cache);
    uint8_t bytes[3][8];
    const struct remote_piece pieces[] = {
        { BASE, bytes[0], 8 },
        { BASE + sizeof world->bytes - 3, bytes[1], 8 },
        { BASE + 8, bytes[2], 8 },
    };
    size_t tail = 0;
    assert_int_equal(remote->read_pieces(remote, pieces, 3, &tail), 1);
    assert_int_equal(tail, 3);
    assert_memory_equal(bytes[0], world->bytes, 8);
}

/* More pages than it keeps: it starts again, and is right all the same. */
static int endless_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                               size_t *ret_tail)
{
    (void)self, (void)ret_tail;
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at + 8 <= pieces[i].size; at += 8) {
            uint64_t value = pieces[i].address + at;
            memcpy((uint8_t *)pieces[i].into + at, &value, 8);
        }
    return (int)count;
}

static void test_more_than_it_keeps(void **state)
{
    (void)state;
    struct remote endless = { endless_read_pieces };
    CLEANUP(page_cache_freep) struct page_cache *cache = NULL;
    assert_int_equal(page_cache_new(&endless, &cache), 0);
    for (remote_addr i = 1; i < 20000; i++) {
        remote_addr address = i * 3 * PAGE + 8, got = 0;
        assert_int_equal(remote_read(page_cache_remote(cache), address, &got, 8), 0);
        assert_int_equal(got, address);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_free)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_are_those_of_the_target),
        TEST(test_a_page_is_read_once),
        TEST(test_a_forgotten_page_is_read_again),
        TEST(test_reads_in_order_are_read_ahead),
        TEST(test_reads_all_over_are_not_read_ahead),
        TEST(test_what_is_not_there_is_a_fault),
        TEST(test_as_much_as_there_is),
        TEST(test_unreadable_is_remembered),
        TEST(test_errors_pass_through),
        TEST(test_a_vector_stops_at_its_first_fault),
        cmocka_unit_test(test_more_than_it_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
