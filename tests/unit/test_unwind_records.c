/* Walks over made stacks without unwind tables: chains of frame records, sound ones and lies. */
#include "sampler/base/cleanup.h"
#include "symbols/unwinder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { FRAMES = 128, CODE = 0x10000, STACK = 0x7f0000000000, WORDS = 64 };

static const char MADE_MAPS[] = "00010000-00020000 r-xp 00000000 00:00 0 \n"
                                "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";

struct made {
    struct image_remote memory;
    struct maps maps;
    struct native_unwind *unwind;
    uint64_t words[WORDS];
    struct stack_image image;
    struct native_frame frames[FRAMES];
};

static void made_open(struct made *made)
{
    image_remote_init(&made->memory, NULL, 0);
    assert_int_equal(maps_parse(MADE_MAPS, sizeof MADE_MAPS - 1, &made->maps), 0);
    assert_int_equal(unwinder_libunwind.open(&made->memory.remote, -1, &made->unwind), 0);
    assert_int_equal(unwinder_libunwind.set_maps(made->unwind, &made->maps), 0);
    made->image = (struct stack_image){
        .registers = { .ip = CODE, .sp = STACK, .fp = STACK },
        .stack_start = STACK,
        .bytes = made->words,
        .size = sizeof made->words,
    };
}

static void made_close(struct made *made)
{
    unwinder_libunwind.close(made->unwind);
    maps_done(&made->maps);
}

#define AUTO_MADE CLEANUP(made_close) struct made

static int made_walk(struct made *made)
{
    return unwinder_libunwind.walk(made->unwind, &made->image, made->frames, FRAMES);
}

static void record_put(struct made *made, size_t index, uint64_t fp, uint64_t return_address)
{
    made->words[index] = fp;
    made->words[index + 1] = return_address;
}

static void test_frame_records(void **state)
{
    (void)state;
    AUTO_MADE made = { 0 };
    made_open(&made);
    record_put(&made, 0, STACK + 8 * 10, CODE + 1);
    record_put(&made, 10, STACK + 8 * 20, CODE + 2);
    record_put(&made, 20, 0, CODE + 3);
    assert_int_equal(made_walk(&made), 4);
    for (int i = 1; i < 4; i++)
        assert_int_equal(made.frames[i].ip, CODE + i - 1);
    assert_int_equal(made.frames[0].cfa, STACK + 8 * 2);
    assert_int_equal(made.frames[1].cfa, STACK + 8 * 12);
    assert_int_equal(made.frames[2].cfa, STACK + 8 * 22);
    assert_int_equal(made.frames[3].cfa, made.frames[3].sp);
}

/* Each row is a chain that must end after that many frames. */
static void test_bad_frame_records(void **state)
{
    static const struct {
        uint64_t first_fp, saved_fp, return_address;
        int frames;
    } ROWS[] = {
        { STACK, STACK, CODE, 2 },                   /* to itself */
        { STACK + 8, STACK, CODE, 2 },               /* downwards */
        { STACK, STACK + 8 * (WORDS - 1), CODE, 2 }, /* the next record hangs over the end */
        { STACK, UINT64_MAX - 7, CODE, 2 },          /* the next one wraps around */
        { STACK, STACK + 17, CODE, 2 },              /* not aligned */
        { STACK, STACK + 16, STACK, 1 },             /* returns into data */
        { STACK, STACK + 16, 0, 1 },                 /* nowhere */
        { STACK + 1, STACK, CODE, 1 },               /* not aligned from the start */
        { STACK - 8, STACK, CODE, 1 },               /* below the stack */
        { STACK + 8 * WORDS, STACK, CODE, 1 },       /* above the copy */
    };
    (void)state;
    AUTO_MADE made = { 0 };
    made_open(&made);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        memset(made.words, 0, sizeof made.words);
        made.image.registers.fp = ROWS[i].first_fp;
        record_put(&made, (ROWS[i].first_fp - STACK) / 8 % (WORDS - 1), ROWS[i].saved_fp,
                   ROWS[i].return_address);
        assert_int_equal(made_walk(&made), ROWS[i].frames);
    }
}

static void test_call_of_nothing(void **state)
{
    (void)state;
    AUTO_MADE made = { 0 };
    made_open(&made);
    made.image.registers.ip = 0;
#if defined(__x86_64__)
    made.words[0] = CODE + 5;
#else
    made.image.registers.all[30] = CODE + 5;
    made.image.registers.count = 33;
    made.image.registers.fp = 0;
#endif
    assert_int_equal(made_walk(&made), 2);
    assert_int_equal(made.frames[0].ip, 0);
    assert_int_equal(made.frames[1].ip, CODE + 4);
}

/* Whatever a stack holds, the walk ends, ascends, and stays within the copy. */
static void test_random_stacks(void **state)
{
    (void)state;
    AUTO_MADE made = { 0 };
    made_open(&made);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < WORDS; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            made.words[i] = (random & 1 ? CODE : STACK) + (random >> 8) % (8 * WORDS);
        }
        made.image.registers.fp = STACK + random % 256;
        int count = made_walk(&made);
        assert_in_range(count, 1, WORDS / 2 + 1);
        for (int i = 0; i + 1 < count; i++)
            assert_true(made.frames[i].sp < made.frames[i].cfa &&
                        made.frames[i].cfa <= STACK + 8 * WORDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_records),
        cmocka_unit_test(test_bad_frame_records),
        cmocka_unit_test(test_call_of_nothing),
        cmocka_unit_test(test_random_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
