/* What is left of an interval for idling. */
#include "sampler/loop/busy_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WALL = 1000 };

static void test_nobody(void **state)
{
    (void)state;
    struct busy_time busy = { 0 };
    busy_add(&busy, 0, 0);
    assert_int_equal(busy_rest(&busy, WALL, false), WALL);
}

static void test_one(void **state)
{
    (void)state;
    struct busy_time busy = { 0 };
    busy_add(&busy, 300, 100);
    assert_int_equal(busy_rest(&busy, WALL, true), WALL - 400);
}

/* Its account was read when it had run on: the next interval has that time, and not its CPU time.
 */
static void test_read_late(void **state)
{
    (void)state;
    struct busy_time late = { 0 }, next = { 0 };
    busy_add(&late, 1500, 0);
    busy_add(&next, 500, 0);
    assert_int_equal(busy_rest(&late, WALL, true) + busy_rest(&next, WALL, true), 0);
}

static void test_overlap(void **state)
{
    (void)state;
    struct busy_time busy = { 0 };
    busy_add(&busy, 900, 0);
    busy_add(&busy, 0, 800);
    assert_int_equal(busy_rest(&busy, WALL, true), 0);
}

static void test_several_ran(void **state)
{
    (void)state;
    struct busy_time busy = { 0 };
    busy_add(&busy, 300, 0);
    busy_add(&busy, 300, 0);
    assert_int_equal(busy_rest(&busy, WALL, true), 0);
    assert_int_equal(busy_rest(&busy, WALL, false), WALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),      cmocka_unit_test(test_one),
        cmocka_unit_test(test_read_late),   cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_several_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
