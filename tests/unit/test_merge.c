/*
 * Python and native frames in one stack: by addresses where there are anchors, by what the copied
 * stack holds where there are none, and nothing lost where nothing fits. Names and places come from
 * this file, in place of the modules that know them.
 */
#include "sampler/loop/native_merge.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 32, EVALUATOR = 1000, STACK_WORDS = 512 };

#define STACK ((remote_addr)0x7ffd00000000)

int native_symbols_find(struct native_symbols *symbols, remote_addr ip, struct native_symbol *ret)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    (void)symbols;
    *ret = (struct native_symbol){ .name = names[ip % 8], .module = "/lib/m.so", .offset = ip + 7 };
    return 0;
}

bool native_symbols_is_evaluator(struct native_symbols *symbols, remote_addr ip)
{
    (void)symbols;
    return ip == EVALUATOR;
}

struct py_place python_frame_place(const struct python *python, const struct py_frame *frame)
{
    static const char *const names[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7" };
    (void)python;
    return (struct py_place){
        .name = names[frame->offset],
        .file = "m.py",
        .line = 10 + (int)frame->offset,
        .column = 3,
    };
}

/* A C stack that is made from its innermost frame on, each part 0x100 long, and the Python frames.
 */
struct scene {
    struct py_frame python[FRAMES];
    struct py_stack stack;
    struct native_frame native[FRAMES];
    size_t native_count;
    uint64_t words[STACK_WORDS];
    struct stack_image image;
    bool placed;
};

static void native_push(struct scene *scene, remote_addr ip)
{
    remote_addr sp = STACK + 0x100 * scene->native_count;
    scene->native[scene->native_count++] = (struct native_frame){ ip, sp, sp + 0x100 };
}

static void python_push(struct scene *scene, bool is_entry, remote_addr anchor)
{
    size_t index = scene->stack.count++;
    scene->python[index] = (struct py_frame){
        .address = 0x5000 + 0x100 * index,
        .offset = (int64_t)index,
        .is_entry = is_entry,
        .anchor = anchor,
    };
}

/* An address in the part of the stack of that native frame. */
static remote_addr anchor_in(size_t native)
{
    return STACK + 0x100 * native + 0x40;
}

/* That part holds the address of that Python frame, as a saved register or a local would. */
static void word_put(struct scene *scene, size_t native, size_t python)
{
    scene->words[0x100 / 8 * native + 5] = 0x5000 + 0x100 * python;
}

/* The names of the merged stack, innermost first. */
static void assert_merged(struct scene *scene, const char *want)
{
    CLEANUP(arena_done) struct arena arena = { 0 };
    const struct frame_event *frames = NULL;
    char got[512] = "";
    scene->stack.frames = scene->python;
    scene->image = (struct stack_image){
        .stack_start = STACK,
        .bytes = scene->words,
        .size = sizeof scene->words,
    };
    const struct merge_input input = {
        .stack = &scene->stack,
        .native = scene->native,
        .native_count = scene->native_count,
        .image = &scene->image,
    };
    int count = frames_merge(&input, &arena, &frames, &scene->placed);
    for (int i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", frames[i].name);
    assert_string_equal(got, want);
}

/* ---- with anchors ---- */

static void test_runs_stand_where_their_evaluation_was(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 2);
    python_push(&scene, false, 0);
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, true, anchor_in(3));
    assert_merged(&scene, "a f0 f1 b f2 c");
    assert_true(scene.placed);
}

/* The evaluation may have no name, as in a stripped binary, or several C frames. */
static void test_anchors_need_no_names(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    for (remote_addr ip = 0; ip < 6; ip++)
        native_push(&scene, ip);
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, true, anchor_in(4));
    assert_merged(&scene, "a f0 c d f1 f");
    assert_true(scene.placed);
}

static void test_two_runs_in_one_frame(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, 1);
    native_push(&scene, 2);
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, true, anchor_in(1) + 8);
    python_push(&scene, true, anchor_in(2));
    assert_merged(&scene, "a f0 f1 f2");
}

/* Where unwinding skipped the frame that holds the anchor, the run comes in before what lies
 * further out. */
static void test_a_frame_that_was_not_unwound(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 3);
    scene.native[1] = scene.native[2];
    scene.native[2] = scene.native[3];
    scene.native_count = 3;
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, true, anchor_in(2));
    assert_merged(&scene, "a f0 f1 d");
    assert_true(scene.placed);
}

static void test_what_lies_beyond_the_copy_is_kept(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, false, 0);
    python_push(&scene, true, anchor_in(100));
    assert_merged(&scene, "a f0 f1 f2");
    assert_false(scene.placed);
}

/* Code without unwind tables: where it lies on the stack is known, and not who called it. */
static void test_what_a_walk_ends_in_is_shown(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 2);
    scene.native[2].cfa = scene.native[2].sp;
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, false, 0);
    python_push(&scene, true, anchor_in(3));
    assert_merged(&scene, "a f0 c f1 f2");
    assert_false(scene.placed);
}

/* The interpreter's own loop is none that anybody looks for, wherever a walk ends. */
static void test_an_evaluation_that_a_walk_ends_in(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    scene.native[1].cfa = scene.native[1].sp;
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, true, anchor_in(2));
    assert_merged(&scene, "a f0 f1");
    assert_false(scene.placed);
}

/* ---- without ---- */

static void test_the_stack_holds_the_frame(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 2);
    python_push(&scene, true, 0);
    python_push(&scene, true, 0);
    word_put(&scene, 1, 0);
    word_put(&scene, 3, 1);
    assert_merged(&scene, "a f0 b f1 c");
    assert_true(scene.placed);
}

/* An evaluation whose C frame was not unwound: the next one shows that it is further out. */
static void test_an_evaluation_that_was_skipped(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    python_push(&scene, true, 0);
    python_push(&scene, true, 0);
    python_push(&scene, true, 0);
    word_put(&scene, 1, 1);
    word_put(&scene, 3, 2);
    assert_merged(&scene, "a f0 f1 b f2");
}

/* Nothing on the stack tells: one evaluation, one frame. */
static void test_one_frame_an_evaluation(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    python_push(&scene, true, 0);
    python_push(&scene, true, 0);
    assert_merged(&scene, "f0 b f1");
}

/* ---- what is missing ---- */

static void test_python_alone(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    python_push(&scene, false, 0);
    python_push(&scene, true, anchor_in(1));
    assert_merged(&scene, "f0 f1");
    assert_false(scene.placed);
}

static void test_native_alone(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, 1);
    assert_merged(&scene, "a b");
    assert_true(scene.placed);
}

static void test_nothing_at_all(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    assert_merged(&scene, "");
}

static void test_more_python_than_evaluations(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    for (int i = 0; i < 3; i++)
        python_push(&scene, true, 0);
    assert_merged(&scene, "a f0 b f1 f2");
    assert_false(scene.placed);
}

/* An evaluation that begins has no Python frame yet, or is one that has just ended: no frame of
 * ours, no C function. */
static void test_more_evaluations_than_python(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 2);
    python_push(&scene, true, anchor_in(2));
    assert_merged(&scene, "b f0 c");
}

/* ---- the collector ---- */

static void test_the_collector_stands_before_who_set_it_off(void **state)
{
    (void)state;
    struct scene scene = { .native_count = 0 };
    native_push(&scene, 0);
    native_push(&scene, EVALUATOR);
    native_push(&scene, 1);
    native_push(&scene, EVALUATOR);
    python_push(&scene, true, anchor_in(1));
    python_push(&scene, false, 0);
    python_push(&scene, true, anchor_in(3));
    scene.stack.collecting = true;
    assert_merged(&scene, "a <GC> f0 b f1 f2");
    scene.stack.gc_index = 1;
    assert_merged(&scene, "a f0 b <GC> f1 f2");
    scene.native_count = 0;
    assert_merged(&scene, "f0 <GC> f1 f2");
}

static void test_facts_of_a_frame(void **state)
{
    (void)state;
    CLEANUP(arena_done) struct arena arena = { 0 };
    const struct frame_event *frames = NULL;
    const struct native_frame native = { .ip = 2, .sp = STACK, .cfa = STACK + 16 };
    const struct py_frame python = { .address = 0x5000, .offset = 4, .is_entry = true };
    const struct py_stack stack = { .frames = &python, .count = 1 };
    const struct stack_image image = { .stack_start = STACK };
    const struct merge_input input = {
        .stack = &stack,
        .native = &native,
        .native_count = 1,
        .image = &image,
    };
    bool placed;
    assert_int_equal(frames_merge(&input, &arena, &frames, &placed), 2);
    assert_int_equal(frames[0].kind, FRAME_NATIVE);
    assert_string_equal(frames[0].module, "/lib/m.so");
    assert_int_equal(frames[0].ip, 2);
    assert_int_equal(frames[0].offset, 9);
    assert_null(frames[0].file);
    assert_int_equal(frames[1].kind, FRAME_PYTHON);
    assert_string_equal(frames[1].file, "m.py");
    assert_int_equal(frames[1].line, 14);
    assert_int_equal(frames[1].column, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_stand_where_their_evaluation_was),
        cmocka_unit_test(test_anchors_need_no_names),
        cmocka_unit_test(test_two_runs_in_one_frame),
        cmocka_unit_test(test_a_frame_that_was_not_unwound),
        cmocka_unit_test(test_what_lies_beyond_the_copy_is_kept),
        cmocka_unit_test(test_what_a_walk_ends_in_is_shown),
        cmocka_unit_test(test_an_evaluation_that_a_walk_ends_in),
        cmocka_unit_test(test_the_stack_holds_the_frame),
        cmocka_unit_test(test_an_evaluation_that_was_skipped),
        cmocka_unit_test(test_one_frame_an_evaluation),
        cmocka_unit_test(test_python_alone),
        cmocka_unit_test(test_native_alone),
        cmocka_unit_test(test_nothing_at_all),
        cmocka_unit_test(test_more_python_than_evaluations),
        cmocka_unit_test(test_more_evaluations_than_python),
        cmocka_unit_test(test_the_collector_stands_before_who_set_it_off),
        cmocka_unit_test(test_facts_of_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
