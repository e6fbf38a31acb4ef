/*
 * An hour of a program that allocates all the time, told in a moment: a thousand stacks' worth of
 * lines, threads that come and go, blocks that live on for a while. What the profiler has of it
 * after six minutes is all that it ever has, and so is its profile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/json/profile_json.h"
#include "tests/unit/made_ring.h"
#include "tests/unit/replay.h"

#include <malloc.h>

#define MAIN "/srv/cache/main.py"
#define HOUR_NS 3600000000000u

enum {
    STEPS = 500000, /* of an hour: each allocates a block, and most end one */
    TENTHS = 10,
    LINES = 300,
    DEPTH = 12,
    LIVE = 5000,
    SLOTS = 256,
    PID = 7,
};

struct storm {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct made_ring ring;
    struct profile *profile;
    uint64_t chance, block, now_ns;
};

static int event_pass(struct ring_sink *sink, const struct memory_event *event)
{
    return profile_add_memory(((struct storm *)sink)->profile, event);
}

/* splitmix64 */
static uint64_t chance_take(struct storm *storm)
{
    uint64_t number = storm->chance += 0x9E3779B97F4A7C15u;
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
    number = (number ^ number >> 27) * 0x94D049BB133111EBu;
    return number ^ number >> 31;
}

static void ring_pass(struct storm *storm)
{
    assert_true(ring_reader_drain(storm->ring.reader, storm->now_ns, &storm->sink) >= 0);
}

static void lines_tell(struct storm *storm)
{
    process_put(&storm->ring, PID, 1, false);
    for (uint32_t i = 0; i < LINES; i++) {
        code_put(&storm->ring, PID, i + 1, "f", MAIN, (int)i + 1, "", 0);
        ring_pass(storm);
    }
}

static struct record_head head_now(struct storm *storm, enum record_kind kind, size_t size)
{
    struct record_head head = head_of(kind, PID, size);
    head.time_ns = storm->now_ns;
    head.tid = (uint32_t)(PID + storm->now_ns / 1000000000u); /* each second another thread */
    return head;
}

static void block_allocate(struct storm *storm)
{
    enum { SIZE = sizeof(struct block_record) + DEPTH * sizeof(struct record_frame) };
    _Alignas(struct block_record) char room[SIZE] = { 0 };
    struct block_record *record = (struct block_record *)room;
    record->head = head_now(storm, RECORD_ALLOCATED, SIZE);
    record->block = ++storm->block;
    record->size = 1 + chance_take(storm) % (1 << 20);
    record->domain = DOMAIN_OBJECT;
    record->frame_count = DEPTH;
    for (size_t i = 0; i < DEPTH; i++)
        record->frames[i].code_id = 1 + (uint32_t)(chance_take(storm) % LINES);
    record_put(&storm->ring, record, SIZE);
}

static void block_change(struct storm *storm, enum record_kind kind, uint64_t block)
{
    const struct change_record record = { head_now(storm, kind, sizeof record), block, 1 };
    record_put(&storm->ring, &record, sizeof record);
}

static void step(struct storm *storm)
{
    storm->now_ns += HOUR_NS / STEPS;
    block_allocate(storm);
    if (storm->block % 16 == 0)
        block_change(storm, RECORD_RESIZED, storm->block);
    if (storm->block > LIVE)
        block_change(storm, RECORD_FREED, storm->block - LIVE);
    ring_pass(storm);
}

struct extent {
    size_t held, text;
};

static struct extent extent_take(const struct storm *storm)
{
    AUTO_REPORT struct report *report = NULL;
    AUTO_FREE char *text = NULL;
    struct extent extent;
    struct mallinfo2 info = mallinfo2();
    extent.held = info.uordblks + info.hblkhd;
    assert_int_equal(profile_report(storm->profile, &report), 0);
    AUTO_FCLOSE FILE *into = open_memstream(&text, &extent.text);
    assert_int_equal(profile_json_write(report, into), 0);
    assert_int_equal(fflush(into), 0);
    return extent;
}

static void test_an_hour(void **state)
{
    (void)state;
    struct profile_settings settings = replay_settings("/srv/cache");
    struct storm storm = { .sink = { .memory = event_pass }, .now_ns = MADE_START_NS + 1000 };
    settings.program = MAIN;
    settings.memory = true;
    made_ring_open(&storm.ring, SLOTS);
    assert_int_equal(profile_new(&settings, &storm.profile), 0);
    lines_tell(&storm);
    struct extent early = { 0, 0 }, late;
    for (size_t i = 1; i <= STEPS; i++) {
        step(&storm);
        if (i == STEPS / TENTHS)
            early = extent_take(&storm);
    }
    late = extent_take(&storm);
    assert_int_equal(made_lost(&storm.ring), 0);
    if (late.held > early.held + early.held / 10)
        fail_msg("%zu bytes are held after an hour, %zu after a tenth", late.held, early.held);
    if (late.text > early.text + early.text / 10)
        fail_msg("the profile of an hour has %zu bytes, that of a tenth %zu", late.text,
                 early.text);
    profile_free(storm.profile);
    made_ring_close(&storm.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
