/* A bounded timeline keeps its peaks, its order and its span, whatever comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/timeline.h"
#include "sampler/base/cleanup.h"

#define AUTO_TIMELINE CLEANUP(timeline_done)
#define AUTO_ARENA CLEANUP(arena_done)

static void test_few(void **state)
{
    (void)state;
    AUTO_TIMELINE struct timeline timeline = { 0 };
    AUTO_ARENA struct arena arena = { 0 };
    struct point_list points;
    assert_int_equal(timeline_write(&timeline, &arena, &points), 0);
    assert_int_equal(points.count, 0);
    for (uint64_t i = 0; i < TIMELINE_POINTS; i++)
        assert_int_equal(timeline_add(&timeline, i * i, 1048576. * (double)(i % 7)), 0);
    assert_int_equal(timeline_write(&timeline, &arena, &points), 0);
    assert_int_equal(points.count, TIMELINE_POINTS);
    assert_int_equal(timeline_left_out(&timeline), 0);
    for (size_t i = 0; i < points.count; i++) {
        assert_float_equal(points.items[i].time_ns, (double)(i * i), 0);
        assert_float_equal(points.items[i].megabytes, (double)(i % 7), 0);
    }
}

static void check(const struct timeline *timeline, uint64_t last_ns, double most)
{
    double seen = 0;
    assert_in_range(timeline->count, TIMELINE_POINTS / 4, TIMELINE_POINTS);
    for (size_t i = 0; i < timeline->count; i++) {
        seen = timeline->points[i].bytes > seen ? timeline->points[i].bytes : seen;
        if (i > 0)
            assert_true(timeline->points[i].time_ns > timeline->points[i - 1].time_ns);
    }
    assert_float_equal(seen, most, 0);
    uint64_t span = (uint64_t)1 << timeline->shift;
    assert_true(timeline->points[timeline->count - 1].time_ns + span >= last_ns);
}

/* However many come, and however far apart: one short peak is there to the end. */
static void test_many(void **state)
{
    (void)state;
    AUTO_TIMELINE struct timeline timeline = { 0 };
    for (uint64_t i = 1; i <= 200000; i++) {
        double bytes = i == 777 ? 1e9 : (double)(i % 1000);
        assert_int_equal(timeline_add(&timeline, i * 12345, bytes), 0);
        if (i > 1000 && i % 5000 == 0)
            check(&timeline, i * 12345, 1e9);
    }
    assert_int_equal(timeline_left_out(&timeline), 200000 - timeline.count);
    bool found = false;
    for (size_t i = 0; i < timeline.count; i++)
        found |= timeline.points[i].time_ns == 777 * 12345;
    assert_true(found);
}

/* Times that go back, stand still and jump to the end of all time. */
static void test_odd_times(void **state)
{
    (void)state;
    AUTO_TIMELINE struct timeline timeline = { 0 };
    assert_int_equal(timeline_add(&timeline, 5000, 1), 0);
    assert_int_equal(timeline_add(&timeline, 3000, 2), 0);
    assert_int_equal(timeline.count, 1);
    assert_int_equal(timeline.points[0].time_ns, 5000);
    assert_float_equal(timeline.points[0].bytes, 2, 0);
    for (uint64_t i = 0; i < 3 * TIMELINE_POINTS; i++)
        assert_int_equal(timeline_add(&timeline, 6000 + i, 1), 0);
    for (unsigned bit = 13; bit < 64; bit++)
        assert_int_equal(timeline_add(&timeline, (uint64_t)1 << bit, (double)bit), 0);
    assert_int_equal(timeline_add(&timeline, UINT64_MAX, 3), 0);
    assert_int_equal(timeline_add(&timeline, 0, 4), 0);
    assert_true(timeline.count <= TIMELINE_POINTS);
    for (size_t i = 1; i < timeline.count; i++)
        assert_true(timeline.points[i].time_ns > timeline.points[i - 1].time_ns);
    assert_int_equal(timeline.points[timeline.count - 1].time_ns, UINT64_MAX);
    assert_float_equal(timeline.points[timeline.count - 1].bytes, 4, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_odd_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
