/* What was asked for blocks: found again by address and by what was given, or not at all. */
#include "sampler/shim/asked_sizes.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MANY = 20000, TOO_MANY = 400000, APART = 640, ASKED = 511, GIVEN = 640 };

static const void *address_of(uint64_t number)
{
    return (const void *)(uintptr_t)(0x7ffff0000000u + number * APART);
}

static size_t size_taken(uint64_t number, size_t given)
{
    return asked_size(asked_sizes_take(address_of(number)), given);
}

static void test_found_once(void **state)
{
    (void)state;
    asked_sizes_keep(address_of(1), ASKED, GIVEN);
    asked_sizes_keep(address_of(1), ASKED + 1, GIVEN); /* it grew */
    assert_int_equal(size_taken(2, GIVEN), 0);
    assert_int_equal(size_taken(1, GIVEN), ASKED + 1);
    assert_int_equal(size_taken(1, GIVEN), 0);
    assert_int_equal(asked_sizes_take(NULL), 0);
}

static void test_another_block(void **state)
{
    (void)state;
    asked_sizes_keep(address_of(1), ASKED, GIVEN);
    assert_int_equal(size_taken(1, GIVEN * 2), 0);
}

static void test_large(void **state)
{
    (void)state;
    size_t asked = ((size_t)5 << 40) + 1, given = asked + (100u << 20);
    asked_sizes_keep(address_of(1), asked, given);
    assert_int_equal(size_taken(1, given), asked);
    asked_sizes_keep(address_of(1), asked, given * 2); /* more than can be kept of it */
    assert_int_equal(size_taken(1, given * 2), 0);
    asked_sizes_keep(address_of(1), GIVEN + 1, GIVEN); /* who says so is wrong */
    assert_int_equal(size_taken(1, GIVEN), 0);
}

/* As many as one works on at a time are all there; of far too many none is another's. */
static void test_many(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t number = 0; number < MANY; number++)
        asked_sizes_keep(address_of(number), ASKED + number % 100, GIVEN);
    for (uint64_t number = 0; number < MANY; number++)
        found += size_taken(number, GIVEN) == ASKED + number % 100;
    assert_true(found > MANY / 100 * 99);
    for (uint64_t number = 0; number < TOO_MANY; number++)
        asked_sizes_keep(address_of(number), ASKED + number % 100, GIVEN);
    for (uint64_t number = found = 0; number < TOO_MANY; number++) {
        size_t size = size_taken(number, GIVEN);
        assert_true(size == 0 || size == ASKED + number % 100);
        found += size != 0;
    }
    assert_in_range(found, MANY, 1 << 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_once),
        cmocka_unit_test(test_another_block),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
