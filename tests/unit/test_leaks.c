/* What is a leak and what is none, from the lives of blocks alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/leaks.h"

#include <string.h>

#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)

enum { STEPS = 1000, SIZE = 1000, BLOCKS = 4 * STEPS };

/* A line that allocates blocks of one size at moments of its choice. */
struct line {
    struct survival survival;
    double live;
    uint64_t born[BLOCKS];
    size_t oldest, count;
};

static void block_add(struct line *line, uint64_t now_ns)
{
    survival_add(&line->survival, now_ns, line->live);
    line->live += SIZE;
    line->born[line->count++] = now_ns;
}

static void oldest_free(struct line *line, uint64_t now_ns)
{
    survival_remove(&line->survival, line->born[line->oldest++], now_ns, line->live,
                    line->live - SIZE, true);
    line->live -= SIZE;
}

static void all_free(struct line *line, uint64_t now_ns)
{
    while (line->oldest < line->count)
        oldest_free(line, now_ns);
}

static bool leaks(const struct line *line, uint64_t now_ns, struct leak *ret)
{
    struct leak leak;
    return survival_leaks(&line->survival, now_ns, line->live, ret ? ret : &leak);
}

/* ---- what is one ---- */

static void test_growing_cache(void **state)
{
    (void)state;
    struct line line = { 0 };
    struct leak leak;
    for (uint64_t i = 0; i < STEPS; i++)
        block_add(&line, i * 10 * MS);
    assert_true(leaks(&line, 10 * SECOND, &leak));
    assert_true(leak.likelihood > 0.99 && leak.likelihood < 1);
    assert_float_equal(leak.bytes_per_s, 100 * SIZE, 5 * SIZE);
    assert_true(leak.live_bytes > 0.9 * line.live && leak.live_bytes <= line.live);
}

/* Most of what it allocates is for the moment; a little of it stays each time. */
static void test_little_by_little(void **state)
{
    (void)state;
    struct line line = { 0 };
    struct line passing = { 0 };
    for (uint64_t i = 0; i < STEPS; i++) {
        block_add(&line, i * 10 * MS);
        for (int n = 0; n < 3; n++) {
            survival_add(&line.survival, i * 10 * MS + MS, line.live);
            survival_remove(&line.survival, i * 10 * MS + MS, i * 10 * MS + 2 * MS,
                            line.live + SIZE, line.live, true);
            survival_add(&passing.survival, i * 10 * MS + MS, 0);
            survival_remove(&passing.survival, i * 10 * MS + MS, i * 10 * MS + 2 * MS, SIZE, 0,
                            true);
        }
    }
    assert_true(leaks(&line, 10 * SECOND, NULL));
    assert_false(leaks(&passing, 10 * SECOND, NULL));
}

/* As it ends an interpreter frees all: the program did not. */
static void test_freed_at_the_end(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < STEPS; i++)
        block_add(&line, i * 10 * MS);
    for (uint64_t i = 0; line.oldest < line.count; i++)
        oldest_free(&line, 10 * SECOND + i * MS / 5);
    assert_true(leaks(&line, 10 * SECOND + 300 * MS, NULL));
    assert_false(leaks(&line, 20 * SECOND, NULL)); /* so it was not the end */
}

/* It grew while it was called; then other parts of the program had their turn. */
static void test_earlier_phase(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < STEPS; i++)
        block_add(&line, i * MS);
    assert_true(leaks(&line, 3 * SECOND, NULL));
    assert_false(leaks(&line, 30 * SECOND, NULL)); /* a table that is loaded at the start */
    all_free(&line, 3 * SECOND);
    assert_true(leaks(&line, 3 * SECOND + 100 * MS, NULL));
}

/* ---- what is none ---- */

static void test_rebound(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < STEPS; i++) {
        block_add(&line, i * 10 * MS);
        if (i > 0)
            oldest_free(&line, i * 10 * MS + MS);
        assert_false(leaks(&line, i * 10 * MS + MS, NULL));
    }
    assert_float_equal(survival_growth(&line.survival, 10 * SECOND, line.live), SIZE, 0);
}

/* A cache with a bound lets the oldest go. */
static void test_full_cache(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < STEPS; i++) {
        block_add(&line, i * 10 * MS);
        if (i >= 200)
            oldest_free(&line, i * 10 * MS);
    }
    assert_false(leaks(&line, 10 * SECOND, NULL));
    assert_float_equal(survival_growth(&line.survival, 10 * SECOND, line.live), 200 * SIZE,
                       5 * SIZE);
}

/* One that is emptied now and then. */
static void test_emptied_cache(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < STEPS; i++) {
        block_add(&line, i * 10 * MS);
        if (i % 300 == 299)
            all_free(&line, i * 10 * MS + MS);
    }
    assert_false(leaks(&line, 10 * SECOND, NULL));
}

/* A handful of blocks proves nothing. */
static void test_too_few(void **state)
{
    (void)state;
    struct line line = { 0 };
    for (uint64_t i = 0; i < 16; i++)
        block_add(&line, i * 500 * MS);
    assert_false(leaks(&line, 8 * SECOND, NULL));
    for (uint64_t i = 16; i < 24; i++)
        block_add(&line, i * 500 * MS);
    assert_true(leaks(&line, 12 * SECOND, NULL));
}

/* ---- any times ---- */

static void test_odd_times(void **state)
{
    (void)state;
    static const uint64_t times[] = { UINT64_MAX, 0, 5, UINT64_MAX / 2, 1, UINT64_MAX - 1 };
    struct line line = { 0 };
    assert_false(leaks(&line, 0, NULL));
    assert_float_equal(survival_growth(&line.survival, 0, 0), 0, 0);
    for (size_t start = 0; start < 6; start++) {
        line = (struct line){ 0 };
        for (size_t i = 0; i < 6; i++)
            block_add(&line, times[(start + i) % 6]);
        all_free(&line, times[start]);
        uint64_t left = 0;
        for (size_t i = 0; i < LEAK_EPOCHS; i++)
            left += line.survival.alive[i];
        assert_int_equal(left, 0);
        assert_false(leaks(&line, times[start], NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_cache),    cmocka_unit_test(test_little_by_little),
        cmocka_unit_test(test_freed_at_the_end), cmocka_unit_test(test_earlier_phase),
        cmocka_unit_test(test_rebound),          cmocka_unit_test(test_full_cache),
        cmocka_unit_test(test_emptied_cache),    cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_odd_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
