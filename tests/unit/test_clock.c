/* When to look: by chance, never in bursts, and less often where a budget is short. */
#include "sampler/loop/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { MS = 1000000, LOOKS = 100000, BINS = 20 };

static struct tick_clock clock_at(double rate_hz, uint64_t seed)
{
    struct tick_clock clock;
    tick_clock_init(&clock, rate_hz, 0.01, 0.1, seed, 1000 * MS);
    return clock;
}

/* Each of BINS gaps that are equally likely comes equally often, whatever came before it. */
static void test_exponential(void **state)
{
    (void)state;
    struct tick_clock clock = clock_at(1000, 7);
    uint64_t now_ns = 1000 * MS, bins[BINS] = { 0 }, after_short[BINS] = { 0 }, shorts = 0;
    bool was_short = false;
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t next_ns = tick_clock_next(&clock, now_ns);
        assert_true(next_ns >= now_ns);
        unsigned bin = (unsigned)(BINS * (1 - exp(-(double)(next_ns - now_ns) / MS)));
        bins[bin < BINS ? bin : BINS - 1]++;
        if (was_short)
            after_short[bin < BINS ? bin : BINS - 1]++;
        shorts += was_short;
        was_short = bin < BINS / 2;
        now_ns = next_ns;
    }
    for (unsigned i = 0; i < BINS; i++) {
        double wanted = LOOKS / BINS, rest = (double)shorts / BINS;
        assert_float_equal(bins[i], wanted, 5 * sqrt(wanted));
        assert_float_equal(after_short[i], rest, 5 * sqrt(rest));
    }
    assert_int_equal(clock.missed, 0);
    assert_float_equal(tick_clock_mean_rate(&clock), 1000, 5000 / sqrt(LOOKS));
    assert_float_equal((double)(now_ns - 1000 * MS) / LOOKS, MS, 5 * MS / sqrt(LOOKS));
}

/* Who was kept away for a second does not look a thousand times at once afterwards. */
static void test_no_bursts(void **state)
{
    (void)state;
    struct tick_clock clock = clock_at(1000, 7);
    uint64_t now_ns = 1000 * MS, soon = 0;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t late_ns = tick_clock_next(&clock, now_ns) + 1000 * MS;
        uint64_t next_ns = tick_clock_next(&clock, late_ns);
        assert_true(next_ns >= late_ns);
        soon += next_ns - late_ns < MS / 10;
        now_ns = next_ns;
    }
    assert_in_range(soon, 50, 150); /* as many as chance makes: 95 */
    assert_in_range(clock.missed, 950000, 1050000);
}

static uint64_t looks_make(struct tick_clock *clock, uint64_t now_ns, unsigned count,
                           uint64_t pause_ns, uint64_t cpu_ns)
{
    for (unsigned i = 0; i < count; i++) {
        tick_clock_charge(clock, pause_ns);
        tick_clock_weigh(clock, cpu_ns);
        now_ns = tick_clock_next(clock, now_ns);
    }
    return now_ns;
}

/* A look costs a thread 0.1 ms, of which it may lose 1 %; then nothing any more. */
static void test_budget(void **state)
{
    (void)state;
    struct tick_clock clock = clock_at(1000, 7);
    uint64_t now_ns = looks_make(&clock, 1000 * MS, 2000, MS / 10, MS / 100);
    assert_true(tick_clock_mean_rate(&clock) > 95 && tick_clock_mean_rate(&clock) < 101);
    now_ns = looks_make(&clock, now_ns, 1000, 0, MS);
    assert_float_equal(tick_clock_rate(&clock), 100, 1);
    looks_make(&clock, now_ns, 1000, 0, 0);
    assert_float_equal(tick_clock_rate(&clock), 1000, 1e-6);
}

/* 1 % of a run however short and whatever chance makes of the gaps, where nine tenths are planned.
 */
static void test_sum(void **state)
{
    enum { RUNS = 400 };
    (void)state;
    for (unsigned length_ms = 100; length_ms < 10000; length_ms *= 3) {
        uint64_t cost_ns = MS / 10, most_ns = length_ms * (uint64_t)MS / 100, sum_ns = 0;
        unsigned beyond = 0;
        for (unsigned seed = 1; seed <= RUNS; seed++) {
            struct tick_clock clock;
            uint64_t now_ns = 0, spent_ns = 0;
            tick_clock_init(&clock, 1000, 0.009, 0.1, seed * 0x9E3779B97F4A7C15u, now_ns);
            for (; now_ns < length_ms * (uint64_t)MS; spent_ns += cost_ns)
                now_ns = looks_make(&clock, now_ns, 1, cost_ns, 0);
            assert_true(spent_ns < most_ns + 8 * cost_ns);
            beyond += spent_ns > most_ns;
            sum_ns += spent_ns;
        }
        assert_true(sum_ns > RUNS * most_ns * 3 / 4); /* it is there to be used */
        assert_true(beyond < (length_ms < 300 ? RUNS / 4 : length_ms < 900 ? RUNS / 50 : 1));
    }
}

/* A pause that went wrong is made up for, and not by silence alone. */
static void test_long_pause(void **state)
{
    (void)state;
    struct tick_clock clock = clock_at(1000, 7);
    uint64_t now_ns = looks_make(&clock, 1000 * MS, 100, MS / 20, 0);
    now_ns = looks_make(&clock, now_ns, 1, 100 * MS, 0);
    uint64_t wrong_ns = now_ns;
    now_ns = looks_make(&clock, now_ns, 20, MS / 20, 0);
    assert_in_range(now_ns - wrong_ns, 5000 * (uint64_t)MS, 40000 * (uint64_t)MS);
    looks_make(&clock, now_ns, 1000, MS / 20, 0);
    assert_true(tick_clock_rate(&clock) > 50);
}

static void test_mean_rate(void **state)
{
    (void)state;
    struct tick_clock clock = clock_at(1000, 7);
    uint64_t now_ns = 1000 * MS;
    assert_float_equal(tick_clock_mean_rate(&clock), 1000, 1e-6);
    for (unsigned i = 0; i < LOOKS; i++)
        now_ns = tick_clock_next(&clock, now_ns);
    for (unsigned i = 0; i < 1000; i++)
        tick_clock_weigh(&clock, MS);
    for (unsigned i = 0; i < LOOKS; i++)
        now_ns = tick_clock_next(&clock, now_ns);
    assert_float_equal(tick_clock_mean_rate(&clock), 2 / (0.001 + 0.010), 2);
    /* those that were missed were not made */
    for (unsigned i = 0; i < 2 * LOOKS; i++)
        now_ns = tick_clock_next(&clock, now_ns + 100 * MS);
    assert_float_equal(tick_clock_mean_rate(&clock), 4 / (0.001 + 0.010 + 2 * 0.110), 0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential), cmocka_unit_test(test_no_bursts),
        cmocka_unit_test(test_budget),      cmocka_unit_test(test_sum),
        cmocka_unit_test(test_long_pause),  cmocka_unit_test(test_mean_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
