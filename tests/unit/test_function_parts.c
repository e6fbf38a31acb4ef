/* Outlined parts of a function, in made code: which jumps lead into one, and which only seem to. */
#include "symbols/function_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* Four functions of 256 bytes each, as the unwind table tells them apart. */
enum { START = 0x400000, SIZE = 256, FUNCTIONS = 4, TABLE = 0x500000, LOOP = 1, PART = 3 };

struct entry {
    int32_t function, fde;
};

struct made {
    unsigned char code[FUNCTIONS * SIZE];
    struct entry entries[FUNCTIONS];
    struct image_range ranges[2];
    struct image_remote memory;
    struct unwind_table table;
    struct code_range parts[4];
};

static remote_addr function_at(int index)
{
    return START + (remote_addr)index * SIZE;
}

static void made_init(struct made *made)
{
    memset(made, 0, sizeof *made);
    for (int i = 0; i < FUNCTIONS; i++)
        made->entries[i].function = (int32_t)(function_at(i) - TABLE);
    made->ranges[0] = (struct image_range){ START, made->code, sizeof made->code };
    made->ranges[1] = (struct image_range){ TABLE, made->entries, sizeof made->entries };
    image_remote_init(&made->memory, made->ranges, 2);
    made->table = (struct unwind_table){
        .start = START,
        .end = START + sizeof made->code,
        .base = TABLE,
        .entries = TABLE,
        .entry_count = FUNCTIONS,
    };
}

/* The jump's opcode, then the distance from its end. */
static void jump_put(struct made *made, remote_addr from, const char *opcode, remote_addr to)
{
    size_t length = strlen(opcode);
    int32_t distance = (int32_t)(to - (from + length + sizeof distance));
    memcpy(made->code + (from - START), opcode, length);
    memcpy(made->code + (from - START) + length, &distance, sizeof distance);
}

#define JUMP "\xe9"
#define JUMP_IF_ZERO "\x0f\x84"

static size_t find_parts(struct made *made)
{
    struct code_range loop = { function_at(LOOP), function_at(LOOP + 1) };
    return function_parts_find(&made->memory.remote, &made->table, loop, made->parts, 4);
}

#if defined(__x86_64__)

static void test_part(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    jump_put(&made, function_at(LOOP) + 20, JUMP_IF_ZERO, function_at(PART));
    jump_put(&made, function_at(LOOP) + 40, JUMP, function_at(PART) + 100);
    jump_put(&made, function_at(PART) + 60, JUMP, function_at(LOOP) + 26);
    assert_int_equal(find_parts(&made), 1);
    assert_int_equal(made.parts[0].start, function_at(PART));
    assert_int_equal(made.parts[0].end, made.table.end);
}

static void test_two_parts(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    jump_put(&made, function_at(LOOP) + 20, JUMP, function_at(PART) + 7);
    jump_put(&made, function_at(LOOP) + 40, JUMP_IF_ZERO, function_at(0) + 9);
    jump_put(&made, function_at(PART), JUMP_IF_ZERO, function_at(LOOP) + 1);
    jump_put(&made, function_at(0) + 250, JUMP, function_at(LOOP) + 255);
    assert_int_equal(find_parts(&made), 2);
    assert_int_equal(made.parts[1].start, function_at(0));
    assert_int_equal(made.parts[1].end, function_at(1));
}

/* A tail call goes to a start, and what it calls may call back to ours, but not into its middle. */
static void test_tail_calls(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    jump_put(&made, function_at(LOOP) + 20, JUMP, function_at(PART));
    jump_put(&made, function_at(LOOP) + 40, JUMP_IF_ZERO, function_at(2));
    jump_put(&made, function_at(PART) + 60, JUMP, function_at(LOOP) + 26);
    jump_put(&made, function_at(2) + 60, JUMP, function_at(LOOP));
    assert_int_equal(find_parts(&made), 0);
}

static void test_elsewhere(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    jump_put(&made, function_at(LOOP) + 20, JUMP_IF_ZERO, made.table.end);
    jump_put(&made, function_at(LOOP) + 40, JUMP_IF_ZERO, START - 1);
    jump_put(&made, function_at(LOOP) + 60, JUMP_IF_ZERO, function_at(LOOP) + 3);
    assert_int_equal(find_parts(&made), 0);
}

#else

static void test_unknown_jumps(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    jump_put(&made, function_at(LOOP) + 20, JUMP_IF_ZERO, function_at(PART));
    jump_put(&made, function_at(PART) + 60, JUMP, function_at(LOOP) + 26);
    assert_int_equal(find_parts(&made), 0);
}

#endif

/* Sizes come from a symbol, which may lie. */
static void test_bad_sizes(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    static const struct code_range ROWS[] = {
        { START, START },        { START + 8, START },
        { START, UINT64_MAX },   { START, START + FUNCTIONS * SIZE + 1 },
        { UINT64_MAX - 16, 16 }, { 0, 100 },
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_int_equal(
            function_parts_find(&made.memory.remote, &made.table, ROWS[i], made.parts, 4), 0);
}

static void test_functions(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    struct table_function found;
    struct remote *memory = &made.memory.remote;
    for (int i = 0; i < FUNCTIONS; i++) {
        assert_true(unwind_table_function(&made.table, memory, function_at(i) + 255, &found));
        assert_int_equal(found.start, function_at(i));
        assert_int_equal(found.end, function_at(i + 1));
        assert_int_equal(found.fde, TABLE);
    }
    assert_false(unwind_table_function(&made.table, memory, START - 1, &found));
    made.table.entry_count = 1000; /* more than there are */
    assert_false(unwind_table_function(&made.table, memory, function_at(2), &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_two_parts),
        cmocka_unit_test(test_tail_calls),
        cmocka_unit_test(test_elsewhere),
#else
        cmocka_unit_test(test_unknown_jumps),
#endif
        cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
