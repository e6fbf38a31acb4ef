/* An arena's pieces: zeroed, aligned, apart from each other, and where they were until it is
 * emptied. */
#include "sampler/base/arena.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum { PIECES = 400 };

static size_t piece_size(size_t i)
{
    return i * i * 7 % 20000 + (i % 37 == 0) * 200000;
}

static void assert_filled(const uint8_t *piece, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal(piece[i], value);
}

/* Takes pieces of many sizes and marks each; any two that overlap would show. */
static void pieces_take(struct arena *arena, uint8_t **pieces)
{
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = arena_take(arena, piece_size(i));
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_filled(pieces[i], piece_size(i), 0);
        memset(pieces[i], (int)i, piece_size(i));
    }
    for (size_t i = 0; i < PIECES; i++)
        assert_filled(pieces[i], piece_size(i), (uint8_t)i);
}

static void test_pieces_are_apart_and_zeroed(void **state)
{
    (void)state;
    uint8_t *pieces[PIECES];
    CLEANUP(arena_done) struct arena arena = { 0 };
    pieces_take(&arena, pieces);
}

/* The same again finds the same places, so that a steady state allocates nothing. */
static void test_emptied_memory_is_used_again(void **state)
{
    (void)state;
    uint8_t *first[PIECES], *again[PIECES];
    CLEANUP(arena_done) struct arena arena = { 0 };
    pieces_take(&arena, first);
    for (int round = 0; round < 3; round++) {
        arena_empty(&arena);
        pieces_take(&arena, again);
        assert_memory_equal(again, first, sizeof first);
    }
}

static void test_more_than_there_is(void **state)
{
    (void)state;
    CLEANUP(arena_done) struct arena arena = { 0 };
    assert_null(arena_take(&arena, SIZE_MAX));
    assert_null(arena_take(&arena, SIZE_MAX / 2));
    assert_non_null(arena_take(&arena, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_apart_and_zeroed),
        cmocka_unit_test(test_emptied_memory_is_used_again),
        cmocka_unit_test(test_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
