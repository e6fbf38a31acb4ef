/* Where a thread looks for a script, and when it does not. */
#include "pyabi/python.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { INTERPRETER = 0x10000, THREAD = 0x20000, RUNTIME = 0x30000, REMOTE_DEBUG = 64 };

struct made {
    struct python python;
    struct image_remote image;
    struct image_range ranges[3];
    int32_t enabled;
    uint8_t thread[512];
    uint64_t audit_hooks;
};

static void made_init(struct made *made, unsigned minor, bool free_threaded, int32_t enabled)
{
    *made = (struct made){ .enabled = enabled };
    struct py_layout *layout = &made->python.layout;
    *layout = *layout_find(3, minor, free_threaded);
    if (offset_present(layout->interp.remote_debug)) /* else the target tells it */
        layout->interp.remote_debug = (struct py_offset)AT(REMOTE_DEBUG);
    remote_addr hooks = RUNTIME + offset_of(layout->runtime.audit_hooks);
    made->ranges[0] = (struct image_range){ INTERPRETER + REMOTE_DEBUG, &made->enabled, 4 };
    made->ranges[1] = (struct image_range){ THREAD, made->thread, sizeof made->thread };
    made->ranges[2] = (struct image_range){ hooks, &made->audit_hooks, 8 };
    image_remote_init(&made->image, made->ranges, 3);
    made->python.memory = &made->image.remote;
    made->python.runtime = RUNTIME;
}

static void attach(struct made *made)
{
    made->thread[offset_of(made->python.layout.thread.attach_state)] = 1;
}

static int place_of(struct made *made, struct py_script_place *ret)
{
    const struct py_thread thread = { .state = THREAD, .interpreter = INTERPRETER };
    return python_script_place(&made->python, &thread, ret);
}

static void test_place(void **state)
{
    (void)state;
    static const struct {
        unsigned minor;
        bool free_threaded;
        uint32_t pending;
    } rows[] = { { 14, false, 304 }, { 14, true, 304 }, { 15, false, 344 }, { 15, true, 344 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made made;
        struct py_script_place place;
        made_init(&made, rows[i].minor, rows[i].free_threaded, 1);
        assert_int_equal(place_of(&made, &place), 0);
        assert_int_equal(place.pending, THREAD + rows[i].pending);
        assert_int_equal(place.path, place.pending + 4);
        assert_int_equal(place.breaker, THREAD + 24);
        assert_int_equal(place.bit, 32);
        assert_false(place.is_attached || place.is_watched);
        attach(&made);
        assert_int_equal(place_of(&made, &place), 0);
        assert_true(place.is_attached);
    }
}

static void test_watched(void **state)
{
    (void)state;
    struct made made;
    struct py_script_place place;
    made_init(&made, 14, false, 1);
    made.audit_hooks = 0x7f0000001000;
    assert_int_equal(place_of(&made, &place), 0);
    assert_true(place.is_watched);
    made_init(&made, 15, true, 1);
    made.thread[offset_of(made.python.layout.debugger.tracer)] = 1;
    assert_int_equal(place_of(&made, &place), 0);
    assert_true(place.is_watched);
    made_init(&made, 14, true, 1);
    made.thread[offset_of(made.python.layout.debugger.profiler) + 7] = 1;
    assert_int_equal(place_of(&made, &place), 0);
    assert_true(place.is_watched);
}

static void test_disabled(void **state)
{
    (void)state;
    struct made made;
    struct py_script_place place;
    made_init(&made, 14, false, 0);
    assert_int_equal(place_of(&made, &place), -ENOTSUP);
    made_init(&made, 14, false, -1);
    assert_int_equal(place_of(&made, &place), -ENOTSUP);
}

static void test_earlier_releases(void **state)
{
    (void)state;
    for (unsigned minor = 8; minor < 14; minor++) {
        struct made made;
        struct py_script_place place;
        made_init(&made, minor, false, 1);
        assert_int_equal(place_of(&made, &place), -ENOTSUP);
    }
}

static void test_unreadable(void **state)
{
    (void)state;
    struct made made;
    struct py_script_place place;
    made_init(&made, 15, false, 1);
    made.image.count = 0;
    assert_int_equal(place_of(&made, &place), -EFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),      cmocka_unit_test(test_watched),
        cmocka_unit_test(test_disabled),   cmocka_unit_test(test_earlier_releases),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
