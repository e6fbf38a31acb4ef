/* A view predicts, reads what it predicted in one call, and lets go of what has gone. */
#include "sampler/base/cleanup.h"
#include "tests/unit/view_world.h"

#include <string.h>

/* ---- prediction ---- */

static void test_what_was_fetched_is_predicted(void **state)
{
    struct world *world = *state;
    assert_int_equal(refill(world, 1), 0);
    assert_int_equal(world->memory.calls, 0);
    assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    for (int moment = 0; moment < 20; moment++) {
        world->bytes[SIZE / 2]++;
        assert_int_equal(refill(world, 1), 0);
        assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
        assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
        assert_int_equal(world->memory.calls, 1);
        assert_int_equal(world->memory.bytes, STATE_SIZE + FRAME_SIZE);
    }
}

static void test_many_scattered_frames(void **state)
{
    struct world *world = *state;
    for (int moment = 0; moment < 4; moment++) {
        assert_int_equal(refill(world, 1), 0);
        assert_int_equal(world->memory.calls, moment > 0);
        for (size_t i = 0; i < FRAMES; i++)
            assert_fetches(world, PIECE_FRAME, i * 4999 % (SIZE - FRAME_SIZE) & ~(size_t)7,
                           FRAME_SIZE);
    }
    assert_int_equal(world->memory.calls, 1);
}

static void test_neighbours_are_one_segment(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    for (size_t i = 0; i < 50; i++)
        assert_fetches(world, PIECE_FRAME, 4096 + i * 200, FRAME_SIZE);
    assert_fetches(world, PIECE_CODE, 4096 + 100, 40);
    assert_int_equal(refill(world, 1), 0);
    assert_int_equal(world->memory.pieces, 2); /* code is not read with frames */
    assert_int_equal(world->memory.bytes, 49 * 200 + FRAME_SIZE + 40);
    for (size_t i = 0; i < 50; i++)
        assert_fetches(world, PIECE_FRAME, 4096 + i * 200, FRAME_SIZE);
}

/* A whole page in between could be unmapped. */
static void test_a_page_in_between_is_not_read(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 0, 4096);
    assert_fetches(world, PIECE_FRAME, 2 * 4096, 4096);
    world_unmap(world, 4096, 2 * 4096);
    assert_int_equal(refill(world, 1), 0);
    assert_int_equal(world->memory.calls, 1);
    assert_fetches(world, PIECE_FRAME, 0, 4096);
    assert_fetches(world, PIECE_FRAME, 2 * 4096, 4096);
    assert_int_equal(world->memory.calls, 1);
}

static void test_chunks_serve_what_lies_in_them(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_CHUNK, 8192, 3000);
    assert_fetches(world, PIECE_CHUNK, 65536, 3000);
    unsigned calls = world->memory.calls;
    for (size_t at = 0; at + FRAME_SIZE <= 3000; at += 8) {
        assert_fetches(world, PIECE_FRAME, 8192 + at, FRAME_SIZE);
        assert_fetches(world, PIECE_FRAME, 65536 + at, FRAME_SIZE);
    }
    assert_int_equal(world->memory.calls, calls);
    assert_null(view_find(world->view, BASE + 8192 + 3000 - FRAME_SIZE + 1, FRAME_SIZE));
    assert_null(view_find(world->view, BASE + 8192 - 1, 1));
    assert_fetches(world, PIECE_FRAME, 8192 + 2990, FRAME_SIZE);
}

static void test_the_same_address_with_more_bytes(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    for (size_t size = 8; size <= 4096; size *= 2)
        assert_fetches(world, PIECE_CHUNK, 512, size);
    assert_int_equal(refill(world, 1), 0);
    assert_fetches(world, PIECE_CHUNK, 512, 4096);
    assert_int_equal(world->memory.calls, 1);
}

static void test_what_is_not_used_is_forgotten(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    for (int moment = 0; moment < 20; moment++) {
        assert_int_equal(refill(world, 1), 0);
        assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    }
    assert_int_equal(world->memory.bytes, STATE_SIZE);
    assert_null(view_find(world->view, BASE + SIZE / 2, FRAME_SIZE));
}

/* ---- more than can be held ---- */

/* Memory without end, in which every address has its own byte. */
static size_t endless_bytes;

static int endless_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                        size_t *ret_tail)
{
    (void)self;
    (void)ret_tail;
    for (size_t i = 0; i < count; i++) {
        endless_bytes += pieces[i].size;
        for (size_t at = 0; at < pieces[i].size; at++)
            ((uint8_t *)pieces[i].into)[at] = (uint8_t)((pieces[i].address + at) * 31 >> 6);
    }
    return (int)count;
}

static bool endless_agrees(const uint8_t *bytes, remote_addr address)
{
    return bytes && bytes[0] == (uint8_t)(address * 31 >> 6) &&
           bytes[FRAME_SIZE - 1] == (uint8_t)((address + FRAME_SIZE - 1) * 31 >> 6);
}

/* Frames just so far apart that neighbours would be read in one piece, gaps and all. */
static void test_gaps_leave_room_for_the_frames(void **state)
{
    enum { WIDE_FRAMES = 100000, DISTANCE = 4000 };
    struct view *view = ((struct world *)*state)->view;
    struct remote memory = { endless_read };
    for (int moment = 0; moment < 3; moment++) {
        endless_bytes = 0;
        assert_int_equal(view_refill(view, &memory, 1), 0);
        assert_true(endless_bytes <= 1 << 28);
        for (size_t i = 0; i < WIDE_FRAMES; i++) {
            int error = 0;
            remote_addr address = BASE + i * DISTANCE;
            if (!endless_agrees(view_fetch(view, &memory, PIECE_FRAME, address, FRAME_SIZE, &error),
                                address))
                fail_msg("frame %zu at moment %d: %d", i, moment, error);
        }
    }
}

/* What does not fit any more is refused, and neither spoils what is there nor the next moment. */
static void test_chunks_leave_room_for_the_frames(void **state)
{
    enum { CHUNK = 1 << 25, CHUNKS = 10 };
    struct view *view = ((struct world *)*state)->view;
    struct remote memory = { endless_read };
    size_t taken = 0;
    for (int moment = 0; moment < 2; moment++) {
        assert_int_equal(view_refill(view, &memory, 1), 0);
        for (size_t i = 0; i < CHUNKS; i++) {
            int error = 0;
            remote_addr address = BASE + i * 2 * CHUNK;
            const void *chunk = view_fetch(view, &memory, PIECE_CHUNK, address, CHUNK, &error);
            taken += chunk != NULL;
            assert_int_equal(error, chunk ? 0 : -ENOMEM);
            assert_true(endless_agrees(
                view_fetch(view, &memory, PIECE_FRAME, address + CHUNK / 2, FRAME_SIZE, &error),
                address + CHUNK / 2));
        }
    }
    assert_true(taken && taken < 2 * CHUNKS && taken % 2 == 0);
}

/* ---- memory that goes away ---- */

static void test_what_has_gone_is_dropped(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    for (size_t i = 0; i < 8; i++)
        assert_fetches(world, PIECE_FRAME, i * 65536, FRAME_SIZE);
    world_unmap(world, 3 * 65536, 5 * 65536);
    assert_int_equal(refill(world, 1), 0);
    for (size_t i = 0; i < 8; i++) {
        bool gone = i == 3 || i == 4;
        assert_int_equal(!view_find(world->view, BASE + i * 65536, FRAME_SIZE), gone);
        if (!gone)
            assert_fetches(world, PIECE_FRAME, i * 65536, FRAME_SIZE);
    }
    assert_null(fetch(world, PIECE_FRAME, 3 * 65536, FRAME_SIZE));
    assert_int_equal(refill(world, 1), 0);
    assert_int_equal(world->memory.calls, 1);
    assert_int_equal(world->memory.pieces, 6);
}

/* A segment that can be read no more takes its pieces with it; those that still can come back by
 * themselves. */
static void test_half_a_segment_gone(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 4000, FRAME_SIZE);
    assert_fetches(world, PIECE_FRAME, 4200, FRAME_SIZE);
    world_unmap(world, 4096, 8192);
    assert_int_equal(refill(world, 1), 0);
    assert_fetches(world, PIECE_FRAME, 4000, FRAME_SIZE);
    assert_null(fetch(world, PIECE_FRAME, 4200, FRAME_SIZE));
    assert_int_equal(refill(world, 1), 0);
    assert_non_null(view_find(world->view, BASE + 4000, FRAME_SIZE));
    assert_int_equal(world->memory.pieces, 1);
}

/* Others' pieces come with the same read, once, whatever becomes of the view's own. */
static void test_others_come_along(void **state)
{
    struct world *world = *state;
    uint64_t other = 0;
    const struct remote_piece others[] = { { BASE + 999, &other, sizeof other } };
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    assert_fetches(world, PIECE_FRAME, 65536, FRAME_SIZE);
    world->memory.calls = 0;
    assert_int_equal(view_refill_with(world->view, &world->memory.remote, VIEW_LOOKS, others, 1),
                     0);
    assert_int_equal(world->memory.calls, 1);
    assert_memory_equal(&other, world->bytes + 999, sizeof other);
    assert_fetches(world, PIECE_FRAME, 65536, FRAME_SIZE);
    assert_false(view_has_grown(world->view));

    world_unmap(world, 65536, 2 * 65536);
    other = 0;
    assert_int_equal(view_refill_with(world->view, &world->memory.remote, 1, others, 1), 0);
    assert_memory_equal(&other, world->bytes + 999, sizeof other);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    assert_null(view_find(world->view, BASE + 65536, FRAME_SIZE));

    world_unmap(world, 900, 1100);
    assert_int_equal(view_refill_with(world->view, &world->memory.remote, 1, others, 1), -EFAULT);
}

static void test_others_come_without_a_view(void **state)
{
    struct world *world = *state;
    uint64_t other = 0;
    const struct remote_piece others[] = { { BASE + 999, &other, sizeof other } };
    assert_int_equal(view_refill_with(world->view, &world->memory.remote, 1, others, 1), 0);
    assert_memory_equal(&other, world->bytes + 999, sizeof other);
}

static void test_the_end_of_the_target(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_FRAME, 0, FRAME_SIZE);
    world->memory.error = -ESRCH;
    assert_int_equal(refill(world, 1), -ESRCH);
    assert_int_equal(refill(world, VIEW_LOOKS), -ESRCH);
    int error = 0;
    assert_null(view_fetch(world->view, &world->memory.remote, PIECE_FRAME, BASE + 999, 8, &error));
    assert_int_equal(error, -ESRCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_fetched_is_predicted),
        TEST(test_many_scattered_frames),
        TEST(test_neighbours_are_one_segment),
        TEST(test_a_page_in_between_is_not_read),
        TEST(test_chunks_serve_what_lies_in_them),
        TEST(test_the_same_address_with_more_bytes),
        TEST(test_what_is_not_used_is_forgotten),
        TEST(test_gaps_leave_room_for_the_frames),
        TEST(test_chunks_leave_room_for_the_frames),
        TEST(test_what_has_gone_is_dropped),
        TEST(test_half_a_segment_gone),
        TEST(test_others_come_along),
        TEST(test_others_come_without_a_view),
        TEST(test_the_end_of_the_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
