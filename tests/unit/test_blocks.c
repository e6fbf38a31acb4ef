/* The table of sampled blocks: what was added is found by whoever frees it, and nothing else is. */
#include "sampler/shim/blocks.h"

#include <pthread.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MANY = 200000, THREADS = 4, ROUNDS = 50, EACH = 500 };

static const void *address_of(uint64_t number)
{
    return (const void *)(uintptr_t)(0x7f0000000000u + number * 48 / 16 * 16);
}

static struct block block_of(uint64_t number)
{
    return (struct block){ number, number * 3, number * 5, number * 7, number * 11 };
}

static void block_expect(uint64_t number)
{
    struct block wanted = block_of(number), found;
    assert_true(blocks_may_have(address_of(number)));
    assert_true(blocks_take(address_of(number), &found));
    assert_memory_equal(&found, &wanted, sizeof found);
}

/* More than the first levels have room for. */
static void test_many(void **state)
{
    (void)state;
    struct block found;
    for (uint64_t number = 1; number <= MANY; number++) {
        struct block block = block_of(number);
        assert_true(blocks_add(address_of(number), &block));
    }
    assert_false(blocks_take(address_of(MANY + 1), &found));
    for (uint64_t number = 2; number <= MANY; number += 2)
        block_expect(number);
    for (uint64_t number = 2; number <= MANY; number += 2)
        assert_false(blocks_take(address_of(number), &found));
    for (uint64_t number = 1; number <= MANY; number += 2)
        block_expect(number);
}

/* The filter's counts that were too many for it stay; all others go back to "no". */
static void test_filter(void **state)
{
    (void)state;
    const void *address = (const void *)(uintptr_t)0x550000001230u;
    struct block block = block_of(1), found;
    blocks_forget();
    assert_false(blocks_may_have(address));
    assert_true(blocks_add(address, &block));
    assert_true(blocks_may_have(address));
    assert_true(blocks_take(address, &found));
    assert_false(blocks_may_have(address));
    blocks_mark(address);
    blocks_mark(NULL);
    blocks_forget();
    assert_true(blocks_may_have(address));
    assert_false(blocks_take(address, &found));
    assert_false(blocks_take(NULL, &found)); /* as an empty place is marked */
}

static void test_forget(void **state)
{
    (void)state;
    struct block found;
    for (uint64_t number = 1; number <= EACH; number++) {
        struct block block = block_of(number);
        assert_true(blocks_add(address_of(number), &block));
    }
    blocks_forget();
    for (uint64_t number = 1; number <= EACH; number++) {
        assert_false(blocks_may_have(address_of(number)));
        assert_false(blocks_take(address_of(number), &found));
    }
}

/* Each thread adds blocks of its own, and takes those that its neighbour added the round before. */
static pthread_barrier_t barrier;

static void *thread_run(void *argument)
{
    uint64_t own = *(const int *)argument, other = (own + 1) % THREADS, wrong = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < EACH; i++) {
            uint64_t number = 1 + own + THREADS * i;
            struct block block = block_of(number);
            wrong += !blocks_add(address_of(number), &block);
        }
        pthread_barrier_wait(&barrier);
        for (uint64_t i = 0; i < EACH; i++) {
            struct block found = { 0 };
            uint64_t number = 1 + other + THREADS * i;
            wrong += !blocks_take(address_of(number), &found) || found.number != number ||
                     found.lost != 11 * number;
        }
        pthread_barrier_wait(&barrier);
    }
    return (void *)(uintptr_t)wrong;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int names[THREADS];
    blocks_forget();
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        names[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, thread_run, &names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_filter), /* marks for good */
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
