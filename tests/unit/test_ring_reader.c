/* The reading end of the shim's ring: every kind of record, and whatever else may stand there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pyabi/layout.h"
#include "tests/unit/made_ring.h"

#include <math.h>

/* 3.10: two bytes of code on line 5, then two on line 8. */
static const uint8_t lines_5_8[] = { 2, 0, 2, 3 };
static const uint64_t NOW = MADE_START_NS + 1000000;

static void test_kinds(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    const struct record_frame frames[] = { { 1, 2 }, { 2, -1 }, { 1, 0 } };
    process_put(&made, 7, 1, false);
    code_put(&made, 7, 1, "f", "/srv/a.py", 5, lines_5_8, sizeof lines_5_8);
    code_put(&made, 7, 2, "<module>", "/srv/a.py", 1, "", 0);
    block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 3);
    change_put(&made, RECORD_RESIZED, 7, 1, 60);
    block_put(&made, RECORD_COPIED, 7, 0, 5000, NULL, 0);
    change_put(&made, RECORD_FREED, 7, 1, 0);
    assert_int_equal(made_drain(&made, NOW), 7);

    assert_int_equal(made.count, 5);
    assert_int_equal(made.events[0].change, MEMORY_EMPTIED);
    const struct memory_event *allocated = &made.events[1];
    assert_int_equal(allocated->change, MEMORY_ALLOCATED);
    assert_int_equal(allocated->time_ns, 500);
    assert_int_equal(allocated->pid, 7);
    assert_int_equal(allocated->tid, 8);
    assert_int_equal(allocated->block, 1);
    assert_int_equal(allocated->size_bytes, 100);
    assert_true(allocated->python);
    assert_float_equal(allocated->weight_bytes, 100 / (1 - exp(-0.1)), 1e-6);
    assert_int_equal(allocated->frame_count, 3);
    assert_int_equal(made.frames[1].kind, FRAME_PYTHON);
    assert_string_equal(made.frames[1].name, "f");
    assert_string_equal(made.frames[1].file, "/srv/a.py");
    assert_int_equal(made.frames[1].line, 8);
    assert_int_equal(made.frames[1].first_line, 5);
    assert_string_equal(allocated->frames[1].name, "<module>");
    assert_int_equal(allocated->frames[1].line, 1);
    assert_int_equal(allocated->frames[2].line, 5);
    assert_int_equal(made.events[2].change, MEMORY_RESIZED);
    assert_int_equal(made.events[2].size_bytes, 60);
    assert_int_equal(made.events[3].change, MEMORY_COPIED);
    assert_float_equal(made.events[3].weight_bytes, 5000, 0);
    assert_int_equal(made.events[4].change, MEMORY_FREED);
    assert_int_equal(made.events[4].block, 1);
    assert_int_equal(made_lost(&made), 0);
}

/* Times are those of profiling, and nobody writes in the future. */
static void test_times(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    struct change_record record = { head_of(RECORD_FREED, 7, sizeof record), 1, 0 };
    record.head.time_ns = 5;
    record_put(&made, &record, sizeof record);
    record.head.time_ns = UINT64_MAX;
    record_put(&made, &record, sizeof record);
    assert_int_equal(made_drain(&made, NOW), 2);
    assert_int_equal(made.events[0].time_ns, 0);
    assert_int_equal(made.events[1].time_ns, NOW - MADE_START_NS);
}

/* Records of many slots, many times round a small ring. */
static void test_round(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 16);
    struct record_frame frames[200] = { { 0, 0 } };
    process_put(&made, 7, 1, false);
    assert_int_equal(made_drain(&made, NOW), 1);
    for (uint64_t i = 1; i < 300; i++) {
        uint16_t count = i % 3 == 0 ? 200 : i % 3 == 1 ? 0 : 23; /* 23 fill a slot to its end */
        block_put(&made, RECORD_ALLOCATED, 7, i, i, frames, count);
        change_put(&made, RECORD_FREED, 7, i, 0);
        assert_int_equal(made_drain(&made, NOW), 2);
        assert_int_equal(made.events[0].block, i);
        assert_int_equal(made.events[0].frame_count, count);
        assert_int_equal(atomic_load(&made.head->taken), atomic_load(&made.head->next));
    }
    assert_int_equal(made_lost(&made), 0);
}

/* However much went through it: of what was read no more is kept than a stretch. */
static void test_memory_is_given_back(void **state)
{
    enum { SLOTS = 8192, LAPS = 3, KEPT_MOST = 1 << 20 };
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, SLOTS);
    struct record_frame frames[1000] = { { 0, 0 } };
    process_put(&made, 7, 1, false);
    assert_int_equal(made_drain(&made, NOW), 1);
    while (atomic_load(&made.head->next) < LAPS * SLOTS) {
        block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 1000);
        change_put(&made, RECORD_FREED, 7, 1, 0);
        made_drain(&made, NOW);
        assert_int_equal(made.count, 2);
    }
    assert_int_equal(made_lost(&made), 0);
    struct stat status;
    assert_int_equal(fstat(ring_reader_fd(made.reader), &status), 0);
    assert_true(status.st_blocks > 0);
    assert_true(status.st_blocks * 512 < KEPT_MOST);
}

/* Of whom nobody told: frames without a name, which are Python all the same. */
static void test_unknown_code(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    const struct record_frame frames[] = { { 1, 0 }, { UINT32_MAX, 0 } };
    code_put(&made, 7, 1, "early", "/srv/a.py", 5, "", 0); /* before its process */
    process_put(&made, 7, 1, false);
    code_put(&made, 7, UINT32_MAX, "far", "/srv/a.py", 5, "", 0);
    block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 2);
    assert_int_equal(made_drain(&made, NOW), 4);
    assert_int_equal(made.events[1].frame_count, 2);
    assert_int_equal(made.frames[1].kind, FRAME_PYTHON);
    assert_null(made.frames[1].name);
    assert_null(made.frames[1].file);
}

static const char *name_of(struct made_ring *made, uint32_t pid, uint32_t id)
{
    const struct record_frame frame = { id, 0 };
    block_put(made, RECORD_ALLOCATED, pid, 1, 100, &frame, 1);
    assert_int_equal(made_drain(made, NOW), 1);
    return made->frames[0].name ?: "";
}

/* A child knows what its parent knew, until it says otherwise; after an exec nothing is known. */
static void test_processes(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    process_put(&made, 7, 1, false);
    code_put(&made, 7, 1, "one", "/srv/a.py", 5, "", 0);
    process_put(&made, 8, 7, true);
    code_put(&made, 7, 2, "two", "/srv/a.py", 5, "", 0);
    code_put(&made, 8, 2, "deux", "/srv/a.py", 5, "", 0);
    assert_true(ring_reader_has_news(made.reader));
    assert_int_equal(made_drain(&made, NOW), 5);
    assert_false(ring_reader_has_news(made.reader));
    assert_int_equal(made.process_count, 2);
    assert_int_equal(made.processes[1].pid, 8);
    assert_int_equal(made.processes[1].parent, 7);
    assert_string_equal(name_of(&made, 8, 1), "one");
    assert_string_equal(name_of(&made, 7, 2), "two");
    assert_string_equal(name_of(&made, 8, 2), "deux");
    process_put(&made, 8, 7, false);
    assert_int_equal(made_drain(&made, NOW), 1);
    assert_string_equal(name_of(&made, 8, 1), "");
    assert_true(ring_reader_knows(made.reader, 7));
    ring_reader_forget(made.reader, 7);
    assert_false(ring_reader_knows(made.reader, 7));
    assert_true(ring_reader_knows(made.reader, 8));
    assert_string_equal(name_of(&made, 7, 1), "");
}

/* Who has ended is still named where somebody else keeps its last records from being told. */
static void test_end_before_all_is_told(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    const struct change_record slow = { head_of(RECORD_FREED, 8, sizeof slow), 1, 0 };
    const struct record_frame frame = { 1, 0 };
    process_put(&made, 7, 1, false);
    code_put(&made, 7, 1, "last", "/srv/a.py", 5, "", 0);
    uint64_t ticket = tickets_take(&made, 1);
    block_put(&made, RECORD_ALLOCATED, 7, 1, 100, &frame, 1);
    assert_int_equal(made_drain(&made, NOW), 2);
    ring_reader_forget(made.reader, 7);
    assert_true(ring_reader_knows(made.reader, 7));
    record_fill(&made, ticket, &slow, sizeof slow);
    assert_int_equal(made_drain(&made, NOW), 2);
    assert_string_equal(made.frames[1].name, "last");
    assert_false(ring_reader_knows(made.reader, 7));
}

/* However many end meanwhile. */
static void test_many_ends(void **state)
{
    enum { MANY = 200 };
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 1024);
    for (uint32_t pid = 1; pid <= MANY; pid++)
        process_put(&made, pid, 0, false);
    assert_int_equal(made_drain(&made, NOW), MANY);
    tickets_take(&made, 1);
    for (pid_t pid = 1; pid <= MANY; pid++)
        ring_reader_forget(made.reader, pid);
    assert_false(ring_reader_knows(made.reader, 1));
    assert_true(ring_reader_knows(made.reader, MANY));
    made_drain(&made, NOW);
    made_drain(&made, NOW + RING_PATIENCE_NS);
    assert_false(ring_reader_knows(made.reader, MANY));
}

/* Names are bytes; what is shown is text. */
static void test_odd_names(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    process_put(&made, 7, 1, false);
    code_put(&made, 7, 1, "a\xFF", "", 5, "", 0);
    assert_int_equal(made_drain(&made, NOW), 2);
    assert_string_equal(name_of(&made, 7, 1), "a\xEF\xBF\xBD");
    assert_null(made.frames[0].file);
}

/* ---- who does not come ---- */

static void test_dead_writer(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    change_put(&made, RECORD_FREED, 7, 1, 0);
    tickets_take(&made, 3);
    change_put(&made, RECORD_FREED, 7, 2, 0);
    assert_int_equal(made_drain(&made, NOW), 1);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS - 1), 0);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS), 1);
    assert_int_equal(made.events[0].block, 2);
    assert_int_equal(made_lost(&made), 1);
    assert_int_equal(made_drain(&made, NOW + 2 * RING_PATIENCE_NS), 0);
}

/* One that only was slow is told in its turn. */
static void test_slow_writer(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    const struct change_record slow = { head_of(RECORD_FREED, 7, sizeof slow), 1, 0 };
    uint64_t ticket = tickets_take(&made, 1);
    change_put(&made, RECORD_FREED, 7, 2, 0);
    assert_int_equal(made_drain(&made, NOW), 0);
    record_fill(&made, ticket, &slow, sizeof slow);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS / 2), 2);
    assert_int_equal(made.events[0].block, 1);
    assert_int_equal(made.events[1].block, 2);
    assert_int_equal(made_lost(&made), 0);
}

/* Many that died at once are given up at once; each has its own patience no more than once. */
static void test_dead_writers(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    for (uint64_t i = 0; i < 10; i++) {
        tickets_take(&made, 2);
        change_put(&made, RECORD_FREED, 7, i + 1, 0);
    }
    assert_int_equal(made_drain(&made, NOW), 0);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS), 10);
    assert_int_equal(made_lost(&made), 10);
}

/* One that died in the middle of a record takes that one along. */
static void test_died_within(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    struct record_frame frames[100] = { { 0, 0 } };
    uint64_t ticket = block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 100);
    atomic_store(&slot_at(&made, ticket + 1)->turn, 0);
    change_put(&made, RECORD_FREED, 7, 2, 0);
    assert_int_equal(made_drain(&made, NOW), 0);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS), 1);
    assert_int_equal(made.events[0].block, 2);
    assert_int_equal(made_lost(&made), 1);
}

/* A writer that comes a lap too late writes what nobody believes. */
static void test_late_writer(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 16);
    const struct change_record late = { head_of(RECORD_FREED, 7, sizeof late), 99, 0 };
    uint64_t ticket = tickets_take(&made, 1);
    assert_int_equal(made_drain(&made, NOW), 0);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS), 0);
    for (uint64_t i = 0; i < 15; i++)
        change_put(&made, RECORD_FREED, 7, 1, 0);
    assert_int_equal(made_drain(&made, NOW + RING_PATIENCE_NS), 15);
    change_put(&made, RECORD_FREED, 7, 2,
               0); /* in the slot of the late one, which writes over it */
    record_fill(&made, ticket, &late, sizeof late);
    change_put(&made, RECORD_FREED, 7, 3, 0);
    made_drain(&made, NOW + RING_PATIENCE_NS);
    assert_int_equal(made_drain(&made, NOW + 3 * RING_PATIENCE_NS), 1);
    assert_int_equal(made.events[0].block, 3);
}

/* ---- the head ---- */

static void test_losses(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    struct memory_loss_event loss;
    made_ring_open(&made, 64);
    atomic_store(&made.head->lost[RECORD_ALLOCATED], 3);
    atomic_store(&made.head->lost_bytes[RECORD_ALLOCATED], 3000);
    atomic_store(&made.head->lost[RECORD_FREED], 2);
    atomic_store(&made.head->lost_bytes[RECORD_FREED], 200);
    atomic_store(&made.head->lost_bytes[RECORD_RESIZED], 20);
    atomic_store(&made.head->lost_bytes[RECORD_COPIED], 7);
    change_put(&made, RECORD_FREED, 7, 1, 0);
    made_drain(&made, NOW);
    ring_reader_losses(made.reader, &loss);
    assert_int_equal(loss.records, 1);
    assert_int_equal(loss.lost, 5);
    assert_int_equal(loss.allocated_bytes, 3000);
    assert_int_equal(loss.freed_bytes, 220);
    assert_int_equal(loss.copied_bytes, 7);
    atomic_store(&made.head->lost[RECORD_CODE], UINT64_MAX);
    assert_int_equal(made_lost(&made), UINT64_MAX);
}

/* Who maps the ring may write over its head; the others' records are read all the same. */
static void test_hostile_head(void **state)
{
    (void)state;
    static const uint64_t nexts[] = { 0, 3, UINT64_MAX, (uint64_t)1 << 63, 1000 };
    for (size_t i = 0; i < sizeof nexts / sizeof *nexts; i++) {
        AUTO_RING struct made_ring made;
        made_ring_open(&made, 16);
        for (int n = 0; n < 20; n++) {
            change_put(&made, RECORD_FREED, 7, 1, 0);
            assert_int_equal(made_drain(&made, NOW), 1);
        }
        struct ring_head kept = *made.head;
        made.head->window = 0;
        made.head->slots_at = UINT64_MAX;
        made.head->slot_size = 0;
        made.head->slot_count = 0;
        atomic_store(&made.head->taken, UINT64_MAX);
        atomic_store(&made.head->next, nexts[i]);
        assert_int_equal(made_drain(&made, NOW), 0);
        made.head->slot_count = kept.slot_count;
        change_put(&made, RECORD_FREED, 7, 5, 0);
        assert_int_equal(made_drain(&made, NOW), 1);
        assert_int_equal(made.events[0].block, 5);
        assert_int_equal(made_lost(&made), 1);
    }
}

static void test_head(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    assert_memory_equal(made.head->magic, RING_MAGIC, 8);
    assert_int_equal(made.head->window, MADE_WINDOW);
    assert_int_equal(made.head->copy_window, 7);
    assert_int_equal(atomic_load(&made.head->armed), 0);
    ring_reader_arm(made.reader, true);
    assert_int_equal(atomic_load(&made.head->armed), 1);
    uint32_t count = 0;
    for (; py_layouts[count]; count++) {
        const struct ring_python *python = &made.head->pythons[count];
        assert_int_equal(python->minor, py_layouts[count]->minor);
        assert_int_equal(python->free_threaded, py_layouts[count]->free_threaded);
        assert_int_equal(python->frame_previous, offset_of(py_layouts[count]->frame.previous));
        assert_int_equal(python->object_type, offset_of(py_layouts[count]->object.type));
        assert_int_equal(python->object_var_size, offset_of(py_layouts[count]->object.var_size));
        assert_int_equal(python->code_qualname == RING_ABSENT,
                         !offset_present(py_layouts[count]->code.qualname));
    }
    assert_int_equal(made.head->python_count, count);
    assert_int_equal(ftruncate(ring_reader_fd(made.reader), 0), -1);
}

static void test_refusals(void **state)
{
    (void)state;
    static const uint64_t counts[] = { 0, 1, 3, 100, (uint64_t)1 << 40, UINT64_MAX };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const struct ring_settings settings = { counts[i], 1, 1, 0 };
        struct ring_reader *reader = NULL;
        struct failure why = { 0 };
        assert_int_equal(ring_reader_new(&settings, &reader, &why), -EINVAL);
        assert_true(*why.text);
    }
}

/* Who does not take an event gets the next one the next time. */
static void test_sink_fails(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    change_put(&made, RECORD_FREED, 7, 1, 0);
    change_put(&made, RECORD_FREED, 7, 2, 0);
    made.answer = -ENOMEM;
    assert_int_equal(made_drain(&made, NOW), -ENOMEM);
    made.answer = 0;
    assert_int_equal(made_drain(&made, NOW), 1);
    assert_int_equal(made.events[0].block, 2);
}

/* Any number of processes and names leaves the reader as it is. */
static void test_bounds(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    for (uint32_t pid = 1; pid < 10000; pid++) {
        char name[32];
        snprintf(name, sizeof name, "f%u", pid);
        process_put(&made, pid, pid - 1, pid % 2);
        code_put(&made, pid, pid, name, "/srv/a.py", 1, "", 0);
        assert_int_equal(made_drain(&made, NOW), 2);
    }
    assert_true(ring_reader_knows(made.reader, 4000));
    assert_false(ring_reader_knows(made.reader, 9999));
    assert_string_equal(name_of(&made, 4000, 4000), "f4000");
    assert_string_equal(name_of(&made, 9999, 9999), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_memory_is_given_back),
        cmocka_unit_test(test_end_before_all_is_told),
        cmocka_unit_test(test_many_ends),
        cmocka_unit_test(test_unknown_code),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_dead_writer),
        cmocka_unit_test(test_slow_writer),
        cmocka_unit_test(test_dead_writers),
        cmocka_unit_test(test_died_within),
        cmocka_unit_test(test_late_writer),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_hostile_head),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sink_fails),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
