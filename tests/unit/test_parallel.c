/* Pieces of work on all cores. */
#include "sampler/base/parallel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { PIECES = 1000000, BAD = 500 };

struct tally {
    atomic_int times[PIECES];
    size_t bad;
};

static int piece_count(void *context, size_t index)
{
    struct tally *tally = context;
    atomic_fetch_add(&tally->times[index], 1);
    return index == tally->bad ? -ENOMEM : 0;
}

static void test_each_once(void **state)
{
    (void)state;
    static struct tally tally = { .bad = PIECES };
    assert_int_equal(parallel_run(PIECES, piece_count, &tally), 0);
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(tally.times[i], 1);
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(parallel_run(0, piece_count, NULL), 0);
}

static void test_first_error_ends_it(void **state)
{
    (void)state;
    static struct tally tally = { .bad = BAD };
    assert_int_equal(parallel_run(PIECES, piece_count, &tally), -ENOMEM);
    size_t done = 0;
    for (size_t i = 0; i < PIECES; i++) {
        assert_in_range(tally.times[i], i <= BAD, 1);
        done += (size_t)tally.times[i];
    }
    assert_in_range(done, BAD + 1, PIECES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_first_error_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
