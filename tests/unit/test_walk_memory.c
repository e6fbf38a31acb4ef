/* What is remembered of walks: a made stack with a frame every 128 bytes, each at a position of its
 * own. */

#include "symbols/walk_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { FRAME = 128, FRAMES = 1500, BYTES = FRAME * FRAMES, ROOM = 4096 };

static const remote_addr END = 0x7f0000000;

static uint8_t stack_bytes[BYTES];

static struct stack_image image_of(size_t frames)
{
    return (struct stack_image){
        .stack_start = END - frames * FRAME,
        .bytes = stack_bytes + BYTES - frames * FRAME,
        .size = frames * FRAME,
    };
}

/* Counted from the outermost, 1. */
static struct walk_position position_of(size_t number)
{
    remote_addr sp = END - number * FRAME;
    return (struct walk_position){ .ip = 0x1000 + number, .sp = sp, .fp = sp + 64 };
}

static struct native_frame frame_of(size_t number)
{
    remote_addr sp = END - number * FRAME;
    return (struct native_frame){ .ip = 0x1000 + number - 1, .sp = sp, .cfa = sp + FRAME };
}

/* Walks from the innermost of so many frames; how many it had to find by itself. */
static size_t walk(struct walk_memory *memory, size_t frames)
{
    static struct native_frame found[ROOM];
    const struct stack_image image = image_of(frames);
    size_t walked = 0, known = 0;
    walk_memory_begin(memory, &image);
    while (walked + known < frames) {
        struct walk_position position = position_of(frames - walked);
        found[walked] = frame_of(frames - walked);
        walk_memory_add(memory, &position, &found[walked++]);
        position = position_of(frames - walked);
        known = walk_memory_find(memory, &position, found + walked, ROOM - walked);
    }
    walk_memory_end(memory);
    assert_int_equal(walked + known, frames);
    for (size_t i = 0; i < frames; i++) {
        struct native_frame frame = frame_of(frames - i);
        assert_memory_equal(&found[i], &frame, sizeof frame);
    }
    return walked;
}

static int set_up(void **state)
{
    struct walk_memory *memory;
    memset(stack_bytes, 0, sizeof stack_bytes);
    assert_int_equal(walk_memory_new(&memory), 0);
    *state = memory;
    return 0;
}

static int tear_down(void **state)
{
    walk_memory_free(*state);
    return 0;
}

static void test_the_same_again(void **state)
{
    assert_int_equal(walk(*state, 20), 20);
    assert_int_equal(walk(*state, 20), 1); /* the innermost is at no known position */
    assert_int_equal(walk(*state, 20), 1);
}

static void test_deeper_and_back(void **state)
{
    walk(*state, 20);
    assert_int_equal(walk(*state, 25), 5);
    assert_int_equal(walk(*state, 25), 1);
    assert_int_equal(walk(*state, 12), 1);
    assert_int_equal(walk(*state, 20), 8);
}

static void test_what_changed_is_walked(void **state)
{
    walk(*state, 20);
    stack_bytes[BYTES - 10 * FRAME]++; /* in the tenth frame */
    assert_int_equal(walk(*state, 20), 11);
    assert_int_equal(walk(*state, 20), 1);
    stack_bytes[BYTES - 1]++;
    assert_int_equal(walk(*state, 20), 20);
}

static void assert_unknown(struct walk_memory *memory, struct walk_position position)
{
    static struct native_frame found[ROOM];
    const struct stack_image image = image_of(20);
    walk_memory_begin(memory, &image);
    assert_int_equal(walk_memory_find(memory, &position, found, ROOM), 0);
}

static void test_another_position(void **state)
{
    static struct native_frame found[ROOM];
    const struct stack_image image = image_of(20);
    struct walk_position position = position_of(5);
    walk(*state, 20);
    walk_memory_begin(*state, &image);
    assert_int_equal(walk_memory_find(*state, &position, found, ROOM), 5);

    position.fp++;
    assert_unknown(*state, position);
    position = position_of(5);
    position.ip++;
    assert_unknown(*state, position);
    position = position_of(5);
    position.sp += 16;
    assert_unknown(*state, position);
    position = position_of(5);
    position.interrupted = true;
    assert_unknown(*state, position);
    position = position_of(5);
    position.complete = true;
    assert_unknown(*state, position);
}

static void test_no_room_for_what_is_known(void **state)
{
    struct native_frame found[4];
    const struct stack_image image = image_of(20);
    struct walk_position position = position_of(5);
    walk(*state, 20);
    walk_memory_begin(*state, &image);
    assert_int_equal(walk_memory_find(*state, &position, found, 4), 0);
}

/* The outermost frames are what is kept of a deep one. */
static void test_deep(void **state)
{
    enum { KEPT_FRAMES = 1024 };
    assert_int_equal(walk(*state, FRAMES), FRAMES);
    assert_int_equal(walk(*state, FRAMES), FRAMES - KEPT_FRAMES);
    assert_int_equal(walk(*state, 500), 1);
}

static void test_forgotten(void **state)
{
    walk(*state, 20);
    walk_memory_forget(*state);
    assert_int_equal(walk(*state, 20), 20);
}

static bool is_known(struct walk_memory *memory, remote_addr end, size_t frames)
{
    static struct native_frame found[ROOM];
    struct stack_image image = image_of(frames);
    struct walk_position position = position_of(1);
    image.stack_start += end - END;
    position.sp += end - END;
    walk_memory_begin(memory, &image);
    size_t known = walk_memory_find(memory, &position, found, ROOM);
    const struct native_frame frame = { .sp = position.sp };
    if (!known)
        walk_memory_add(memory, &position, &frame);
    walk_memory_end(memory);
    return known;
}

static void test_several_stacks(void **state)
{
    enum { STACKS = 8, APART = 1 << 20 };
    for (unsigned i = 0; i < STACKS; i++)
        assert_false(is_known(*state, END + i * APART, 2));
    for (unsigned i = 0; i < STACKS; i++)
        assert_true(is_known(*state, END + i * APART, 2));
    assert_false(is_known(*state, END + STACKS * APART, 2)); /* in the place of the first */
    assert_true(is_known(*state, END + 1 * APART, 2));
    assert_false(is_known(*state, END, 2));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_same_again),
        TEST(test_deeper_and_back),
        TEST(test_what_changed_is_walked),
        TEST(test_another_position),
        TEST(test_no_room_for_what_is_known),
        TEST(test_deep),
        TEST(test_forgotten),
        TEST(test_several_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
