/*
 * From a sampler to a report: what is said of lines is what they did, as near as samples can tell,
 * and no nearer to one side. Twenty runs, each with its own chances, give the mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_ring.h"
#include "tests/unit/replay.h"

#include <math.h>

enum { SEEDS = 20, LINES = 6, BYTES_A_LINE = 2000000, PID = 7 };

#define MAIN "/srv/cache/main.py"

/* The window is MADE_WINDOW: most of these are rarely sampled, some nearly always. */
static const uint64_t sizes[LINES] = { 16, 64, 500, 3000, 20000, 777 };

/* What a line frees of all that it allocates. */
static const double freed[LINES] = { 0, 1, 0.5, 0.25, 0.75, 0.5 };

struct means {
    double allocated, live, freed, mallocs;
};

struct run {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct made_ring ring;
    struct profile *profile;
    uint64_t chance, block;
    double countdown;
};

static int event_pass(struct ring_sink *sink, const struct memory_event *event)
{
    return profile_add_memory(((struct run *)sink)->profile, event);
}

/* splitmix64, between 0 and 1 */
static double chance_take(struct run *run)
{
    uint64_t number = run->chance += 0x9E3779B97F4A7C15u;
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
    number = (number ^ number >> 27) * 0x94D049BB133111EBu;
    return (double)((number ^ number >> 31) >> 11) * 0x1p-53;
}

static double countdown_draw(struct run *run)
{
    return -log1p(-chance_take(run)) * MADE_WINDOW;
}

/* As the shim does it. */
static bool is_sampled(struct run *run, uint64_t size)
{
    run->countdown -= (double)size;
    if (run->countdown >= 0)
        return false;
    run->countdown = countdown_draw(run);
    return true;
}

static void ring_pass(struct run *run)
{
    assert_true(ring_reader_drain(run->ring.reader, MADE_START_NS + 1000, &run->sink) >= 0);
}

static void block_live(struct run *run, uint32_t line)
{
    const struct record_frame frame = { line + 1, 0 };
    bool goes = chance_take(run) < freed[line];
    if (!is_sampled(run, sizes[line]))
        return;
    block_put(&run->ring, RECORD_ALLOCATED, PID, ++run->block, sizes[line], &frame, 1);
    if (goes)
        change_put(&run->ring, RECORD_FREED, PID, run->block, 0);
    ring_pass(run);
}

static void lines_tell(struct run *run)
{
    process_put(&run->ring, PID, 1, false);
    for (uint32_t i = 0; i < LINES; i++)
        code_put(&run->ring, PID, i + 1, "f", MAIN, (int)i + 1, "", 0);
    ring_pass(run);
}

/* The lines take turns; each allocates the same in all. */
static void lines_run(struct run *run)
{
    uint64_t done[LINES] = { 0 };
    for (uint64_t step = 0; step < BYTES_A_LINE; step += sizes[0])
        for (uint32_t i = 0; i < LINES; i++)
            for (; done[i] < step; done[i] += sizes[i])
                block_live(run, i);
}

static struct report *run_report(uint64_t seed)
{
    struct profile_settings settings = replay_settings("/srv/cache");
    struct run run = { .sink = { .memory = event_pass }, .chance = seed << 32 };
    struct report *report = NULL;
    settings.program = MAIN;
    settings.memory = true;
    run.countdown = countdown_draw(&run);
    made_ring_open(&run.ring, 64);
    assert_int_equal(profile_new(&settings, &run.profile), 0);
    lines_tell(&run);
    lines_run(&run);
    assert_int_equal(made_lost(&run.ring), 0);
    assert_int_equal(profile_report(run.profile, &report), 0);
    profile_free(run.profile);
    made_ring_close(&run.ring);
    return report;
}

static void assert_near(double mean, double truth, uint32_t line, const char *what)
{
    if (fabs(mean - truth) > 0.02 * truth)
        fail_msg("line %u: %s is %g in the mean, not %g", line + 1, what, mean, truth);
}

static void test_means(void **state)
{
    (void)state;
    struct means means[LINES] = { { 0, 0, 0, 0 } };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO_REPORT struct report *report = run_report(seed);
        for (uint32_t i = 0; i < LINES; i++) {
            const struct line_stats *line = line_find(report, MAIN, i + 1);
            means[i].allocated += line->allocated_mb * 1048576 / SEEDS;
            means[i].live += line->live_mb * 1048576 / SEEDS;
            means[i].freed += line->freed_mb * 1048576 / SEEDS;
            means[i].mallocs += (double)line->n_mallocs / SEEDS;
            assert_float_equal(line->allocated_mb, line->freed_mb + line->live_mb, 1e-6);
        }
    }
    for (uint32_t i = 0; i < LINES; i++) {
        double truth = BYTES_A_LINE;
        assert_near(means[i].allocated, truth, i, "allocated");
        assert_near(means[i].mallocs, truth / (double)sizes[i], i, "mallocs");
        /* what is freed is a matter of chance in the program itself */
        assert_near(means[i].freed + truth, (1 + freed[i]) * truth, i, "freed");
        assert_near(means[i].live + truth, (2 - freed[i]) * truth, i, "live");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
