/* A view predicts, reads what it predicted in one call, tells looks apart, and lets go of what has
 * gone. */
#include "pyabi/view.h"

#include "sampler/base/cleanup.h"
#include "tests/unit/counted_remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { SIZE = 1 << 20, STATE = 0, STATE_SIZE = 64, FRAME_SIZE = 80, FRAMES = 200 };

#define BASE ((remote_addr)0x7f0000000000)

struct world {
    uint8_t bytes[SIZE];
    struct image_range ranges[2]; /* the second begins where the first ends */
    struct counted_remote memory;
    struct view *view;
};

static int world_make(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    for (size_t i = 0; i < SIZE; i++)
        world->bytes[i] = (uint8_t)(i * 31 + i / 256);
    world->ranges[0] = (struct image_range){ BASE, world->bytes, SIZE };
    counted_remote_init(&world->memory, world->ranges, 1);
    assert_int_equal(view_new(&world->view), 0);
    *state = world;
    return 0;
}

static int world_free(void **state)
{
    struct world *world = *state;
    view_free(world->view);
    free(world);
    return 0;
}

/* Cuts out of what can be read the bytes from `from` to `to`. */
static void world_unmap(struct world *world, size_t from, size_t to)
{
    world->ranges[0] = (struct image_range){ BASE, world->bytes, from };
    world->ranges[1] = (struct image_range){ BASE + to, world->bytes + to, SIZE - to };
    image_remote_init(&world->memory.image, world->ranges, 2);
}

static int refill(struct world *world, unsigned looks)
{
    world->memory.calls = world->memory.pieces = 0;
    world->memory.bytes = 0;
    return view_refill(world->view, &world->memory.remote, looks);
}

static const void *fetch(struct world *world, enum piece_rank rank, size_t at, size_t size)
{
    int error = 0;
    const void *bytes =
        view_fetch(world->view, &world->memory.remote, rank, BASE + at, size, &error);
    assert_true(bytes ? error == 0 : error < 0);
    return bytes;
}

static void assert_fetches(struct world *world, enum piece_rank rank, size_t at, size_t size)
{
    const void *bytes = fetch(world, rank, at, size);
    assert_non_null(bytes);
    assert_memory_equal(bytes, world->bytes + at, size);
}

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

/* ---- looks ---- */

static unsigned change_at; /* the piece before which the target moves on */

static void change_one(struct counted_remote *memory)
{
    struct world *world = (struct world *)((char *)memory - offsetof(struct world, memory));
    if (memory->pieces == change_at)
        world->bytes[SIZE / 2 + 8]++;
}

/* Thread, frame; frame, thread; frame, thread: wherever the frame changes between its first and its
 * last look, it shows. */
static void test_a_change_between_looks_shows(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    world->memory.before_piece = change_one;
    for (change_at = 0; change_at <= 6; change_at++) {
        assert_int_equal(refill(world, VIEW_LOOKS), 0);
        assert_int_equal(world->memory.calls, 1);
        assert_int_equal(world->memory.pieces, 6);
        assert_false(view_has_grown(world->view));
        const uint8_t *first = view_find(world->view, BASE + SIZE / 2, FRAME_SIZE);
        bool shows = false;
        for (unsigned look = 1; look < VIEW_LOOKS; look++) {
            const uint8_t *later = view_find_again(world->view, look, BASE + SIZE / 2, FRAME_SIZE);
            assert_non_null(later);
            shows |= memcmp(first, later, FRAME_SIZE) != 0;
        }
        /* the frame's looks are the pieces 1, 2 and 4 */
        assert_int_equal(shows, change_at >= 2 && change_at <= 4);
        assert_non_null(view_find(world->view, BASE + STATE, STATE_SIZE));
        assert_non_null(view_find_again(world->view, 1, BASE + STATE, STATE_SIZE));
    }
}

/* Of what lies in chunks alone: other threads write elsewhere. */
static void test_who_writes_to_a_chunk_has_moved(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_CHUNK, SIZE / 2, FRAME_SIZE);
    assert_int_equal(refill(world, 1), 0);
    assert_false(view_has_moved(world->view));
    world->memory.before_piece = change_one;
    for (change_at = 0; change_at <= 6; change_at++) {
        assert_int_equal(refill(world, VIEW_LOOKS), 0);
        assert_int_equal(world->memory.pieces, 6);
        assert_int_equal(view_has_moved(world->view), change_at >= 2 && change_at <= 4);
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

/* Scattered frames are looked at in the order in which the last walk asked for them, to and fro,
 * out of step. */
static void test_scattered_frames_in_the_order_of_the_walk(void **state)
{
    struct world *world = *state;
    refill(world, 1);
    assert_fetches(world, PIECE_THREAD, STATE, STATE_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 2, FRAME_SIZE);
    assert_fetches(world, PIECE_FRAME, SIZE / 4, FRAME_SIZE);
    world->memory.before_piece = change_one;
    /* thread, upper, lower; lower, upper, thread; … */
    static const unsigned upper_at[VIEW_LOOKS_SCATTERED] = { 1, 4, 7, 10, 13, 16, 19 };
    for (unsigned look = 0; look + 1 < VIEW_LOOKS_SCATTERED; look++) {
        change_at = upper_at[look] + 1;
        assert_int_equal(refill(world, VIEW_LOOKS_SCATTERED), 0);
        assert_int_equal(world->memory.pieces, 21);
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_free)
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
        TEST(test_a_change_between_looks_shows),
        TEST(test_who_writes_to_a_chunk_has_moved),
        TEST(test_a_frame_elsewhere_does_not_tell_who_moved),
        TEST(test_what_was_fetched_late_has_one_look),
        TEST(test_code_has_one_look),
        TEST(test_scattered_frames_in_the_order_of_the_walk),
        TEST(test_gone_between_looks_is_torn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
