/* A view tells looks apart: what changes between them shows. */
#include "tests/unit/view_world.h"

#include <errno.h>
#include <string.h>

static unsigned change_at; /* the piece before which the target moves on */

static void change_one(struct counted_remote *memory)
{
    struct world *world = (struct world *)((char *)memory - offsetof(struct world, memory));
    if (memory->pieces == change_at)
        world->bytes[SIZE / 2 + 8]++;
}

/* Head, frame; frame; frame, head: wherever the frame changes between its first and its
 * last look, it shows. */
static void test_a_change_between_looks_shows(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_HEAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    world->memory.before_piece = change_one;
    for (change_at = 0; change_at <= 5; change_at++) {
        assert_int_equal(refill(world, VIEW_LOOKS), 0);
        assert_int_equal(world->memory.calls, 1);
        assert_int_equal(world->memory.pieces, 5);
        assert_false(view_has_grown(world->view));
        const uint8_t *first = view_find(world->view, BASE + SIZE / 2, FRAME_SIZE);
        bool shows = false;
        for (unsigned look = 1; look < VIEW_LOOKS; look++) {
            const uint8_t *later = view_find_again(world->view, look, BASE + SIZE / 2, FRAME_SIZE);
            assert_non_null(later);
            shows |= memcmp(first, later, FRAME_SIZE) != 0;
        }
        /* the frame's looks are the pieces 1, 2 and 3 */
        assert_int_equal(shows, change_at >= 2 && change_at <= 3);
        assert_non_null(view_find(world->view, BASE + STATE, STATE_SIZE));
        assert_memory_equal(view_find_again(world->view, VIEW_LOOKS - 1, BASE + STATE, STATE_SIZE),
                            world->bytes, STATE_SIZE);
    }
}

/* Of what lies in chunks alone: other threads write elsewhere. */
static void test_who_writes_to_a_chunk_has_moved(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_HEAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_CHUNK, SIZE / 2, FRAME_SIZE);
    assert_int_equal(refill(world, 1), 0);
    assert_false(view_has_moved(world->view));
    world->memory.before_piece = change_one;
    for (change_at = 0; change_at <= 5; change_at++) {
        assert_int_equal(refill(world, VIEW_LOOKS), 0);
        assert_int_equal(world->memory.pieces, 5);
        assert_int_equal(view_has_moved(world->view), change_at >= 2 && change_at <= 3);
    }
}

static void test_a_frame_elsewhere_does_not_tell_who_moved(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    world->memory.before_piece = change_one;
    change_at = 1;
    assert_int_equal(refill(world, VIEW_LOOKS), 0);
    assert_false(view_has_moved(world->view));
}

static void test_what_was_fetched_late_has_one_look(void **state)
{
    struct world *world = *state;
    assert_int_equal(refill(world, VIEW_LOOKS), 0);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    assert_true(view_has_grown(world->view));
    assert_null(view_find_again(world->view, 1, BASE, FRAME_SIZE));
    assert_int_equal(view_look_again(world->view, &world->memory.remote), 0);
    assert_false(view_has_grown(world->view));
    for (unsigned look = 1; look < VIEW_LOOKS; look++)
        assert_memory_equal(view_find_again(world->view, look, BASE, FRAME_SIZE), world->bytes,
                            FRAME_SIZE);
}

/* Code is looked at once only: its own fields never change, and the frame that leads to it is
 * looked at again. */
static void test_code_has_one_look(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    assert_fetches(world, PIECE_CODE, SIZE / 2, 128);
    assert_int_equal(refill(world, VIEW_LOOKS), 0);
    assert_int_equal(world->memory.bytes, VIEW_LOOKS * FRAME_SIZE + 128);
}

/* Head, frame, code; frame, code; frame, head: the looks lie apart. */
static void test_code_stands_between_the_looks(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_HEAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    assert_fetches(world, PIECE_CODE, SIZE / 4, 128);
    assert_fetches(world, PIECE_CODE, SIZE / 8, 128);
    world->memory.before_piece = change_one;
    for (change_at = 0; change_at <= 7; change_at++) {
        assert_int_equal(refill(world, VIEW_LOOKS), 0);
        assert_int_equal(world->memory.pieces, 7);
        const uint8_t *first = view_find(world->view, BASE + SIZE / 2, FRAME_SIZE);
        for (unsigned look = 1; look < VIEW_LOOKS; look++) {
            const uint8_t *again = view_find_again(world->view, look, BASE + SIZE / 2, FRAME_SIZE);
            bool shows = memcmp(first, again, FRAME_SIZE) != 0;
            assert_int_equal(shows, change_at >= 2 && change_at <= 2 * look + 1);
        }
        assert_non_null(view_find(world->view, BASE + SIZE / 4, 128));
        assert_non_null(view_find(world->view, BASE + SIZE / 8, 128));
        assert_non_null(view_find(world->view, BASE + STATE, STATE_SIZE));
    }
}

/* What does not say where the stack begins is asked for once. */
static void test_the_rest_of_a_thread_has_one_look(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_HEAD, SIZE / 4, 24);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    assert_int_equal(refill(world, VIEW_LOOKS), 0);
    assert_int_equal(world->memory.bytes, STATE_SIZE + 2 * 24 + VIEW_LOOKS * FRAME_SIZE);
}

/* Scattered frames are looked at in the order in which the last walk asked for them, to and fro,
 * out of step. */
static void test_scattered_frames_in_the_order_of_the_walk(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_HEAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 4, FRAME_SIZE);
    world->memory.before_piece = change_one;
    /* head, upper, lower; lower, upper; … */
    static const unsigned upper_at[VIEW_LOOKS_SCATTERED] = { 1, 4, 6, 7, 10 };
    for (unsigned look = 0; look + 1 < VIEW_LOOKS_SCATTERED; look++) {
        change_at = upper_at[look] + 1;
        assert_int_equal(refill(world, VIEW_LOOKS_SCATTERED), 0);
        assert_int_equal(world->memory.pieces, 12);
        const uint8_t *first = view_find(world->view, BASE + SIZE / 2, FRAME_SIZE);
        for (unsigned later = 1; later < VIEW_LOOKS_SCATTERED; later++) {
            const uint8_t *again = view_find_again(world->view, later, BASE + SIZE / 2, FRAME_SIZE);
            assert_int_equal(memcmp(first, again, FRAME_SIZE) != 0, later > look);
        }
        assert_non_null(view_find(world->view, BASE + SIZE / 4, FRAME_SIZE));
        assert_non_null(view_find(world->view, BASE + STATE, STATE_SIZE));
    }
}

static void unmap_all(struct counted_remote *memory)
{
    struct world *world = (struct world *)((char *)memory - offsetof(struct world, memory));
    if (memory->pieces == change_at)
        world_unmap(world, 0, SIZE - 1);
}

static void test_gone_between_looks_is_torn(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    world->memory.before_piece = unmap_all;
    change_at = 1;
    assert_int_equal(refill(world, VIEW_LOOKS), -EAGAIN);
}

/* The rest is whole at every look; code that has gone lies between two of them. */
static void test_what_has_gone_is_left_out_of_all_looks(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_HEAD, STATE, STATE_SIZE);
    for (size_t i = 1; i < 8; i++)
        assert_fetches(world, i < 4 ? PIECE_FRAME : PIECE_CODE, i * 65536, FRAME_SIZE);
    world_unmap(world, 3 * 65536, 5 * 65536); /* a frame and the first code */
    assert_int_equal(refill(world, VIEW_LOOKS), 0);
    assert_int_equal(world->memory.calls, 3);
    assert_non_null(view_find_again(world->view, VIEW_LOOKS - 1, BASE + STATE, STATE_SIZE));
    for (size_t i = 1; i < 8; i++) {
        bool gone = i == 3 || i == 4;
        assert_int_equal(!view_find(world->view, BASE + i * 65536, FRAME_SIZE), gone);
        for (unsigned look = 1; look < VIEW_LOOKS && i < 3; look++)
            assert_memory_equal(view_find_again(world->view, look, BASE + i * 65536, FRAME_SIZE),
                                world->bytes + i * 65536, FRAME_SIZE);
        if (!gone)
            assert_fetches(world, i < 4 ? PIECE_FRAME : PIECE_CODE, i * 65536, FRAME_SIZE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_change_between_looks_shows),
        TEST(test_who_writes_to_a_chunk_has_moved),
        TEST(test_a_frame_elsewhere_does_not_tell_who_moved),
        TEST(test_what_was_fetched_late_has_one_look),
        TEST(test_code_has_one_look),
        TEST(test_code_stands_between_the_looks),
        TEST(test_the_rest_of_a_thread_has_one_look),
        TEST(test_scattered_frames_in_the_order_of_the_walk),
        TEST(test_gone_between_looks_is_torn),
        TEST(test_what_has_gone_is_left_out_of_all_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
