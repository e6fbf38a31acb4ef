/* The shim's walk of a stack that may be in the middle of a change: what cannot be read, or is no
 * frame of a code object, ends no program and gets no name. */
#include "sampler/shim/stack_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { DEPTH = 4, PAGE = 4096 };

struct made_code {
    const void *type;
    uint64_t units;
    uint16_t bytecode[8];
};

struct made_frame {
    const void *code, *previous, *instruction;
};

static const char code_type, other_type;

static const struct python python = {
    .layout =
        &(const struct ring_python){
            .thread_frame = 0,
            .frame_code = offsetof(struct made_frame, code),
            .frame_previous = offsetof(struct made_frame, previous),
            .frame_instruction = offsetof(struct made_frame, instruction),
            .frame_tlbc_index = RING_ABSENT,
            .code_bytecode_inline = offsetof(struct made_code, bytecode),
            .object_type = offsetof(struct made_code, type),
            .object_var_size = offsetof(struct made_code, units),
        },
    .code_type = &code_type,
};

struct made {
    struct made_code codes[DEPTH];
    struct made_frame frames[DEPTH];
    const void *state;
    struct walked_stack stack;
};

static void made_init(struct made *made)
{
    memset(made, 0, sizeof *made);
    for (int i = 0; i < DEPTH; i++) {
        made->codes[i] = (struct made_code){ &code_type, 8, { 0 } };
        made->frames[i] =
            (struct made_frame){ &made->codes[i], i + 1 < DEPTH ? &made->frames[i + 1] : NULL,
                                 &made->codes[i].bytecode[i] };
    }
    made->state = &made->frames[0];
}

/* Its number, from 1 on: the codes stand in a row. */
static const struct made *named;

static uint32_t code_number(const struct ring_python *layout, struct field_reader *reader,
                            const void *code)
{
    (void)layout;
    (void)reader;
    return (uint32_t)((const struct made_code *)code - named->codes) + 1;
}

static void walk(struct made *made, bool careful)
{
    struct field_reader reader = { .careful = careful };
    named = made;
    stack_walk(&python, &made->state, &reader, code_number, &made->stack);
}

static void test_whole(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    for (int careful = 0; careful < 2; careful++) {
        walk(&made, careful);
        assert_int_equal(made.stack.count, DEPTH);
        for (uint32_t i = 0; i < DEPTH; i++) {
            assert_int_equal(made.stack.frames[i].code_id, i + 1);
            assert_int_equal(made.stack.frames[i].offset, 2 * i);
        }
    }
}

/* The second is left out. */
static void check_second_missing(struct made *made)
{
    walk(made, true);
    assert_int_equal(made->stack.count, DEPTH - 1);
    assert_int_equal(made->stack.frames[0].code_id, 1);
    assert_int_equal(made->stack.frames[1].code_id, 3);
}

static void test_no_code(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made.codes[1].type = &other_type;
    check_second_missing(&made);
    made_init(&made);
    made.frames[1].code = NULL;
    check_second_missing(&made);
}

static void test_instruction_elsewhere(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    const uint16_t *bytecode = made.codes[1].bytecode;
    made.frames[1].instruction = bytecode - 1; /* of 3.11 and 3.12: nothing has run yet */
    walk(&made, true);
    assert_int_equal(made.stack.count, DEPTH);
    made.frames[1].instruction = bytecode - 2;
    check_second_missing(&made);
    made.frames[1].instruction = bytecode + 9;
    check_second_missing(&made);
    made.frames[1].instruction = (const void *)UINT64_MAX;
    check_second_missing(&made);
}

static void check_none(struct made *made)
{
    walk(made, true);
    assert_int_equal(made->stack.count, 0);
}

static void test_astray(void **state)
{
    (void)state;
    struct made made;
    void *closed = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(closed != MAP_FAILED);
    const void *const nowhere[] = { closed, (void *)-8, (void *)0x8000000000000000, (void *)8,
                                    (void *)0x10001 };
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        made_init(&made);
        made.frames[1].previous = nowhere[i];
        check_none(&made);
        made_init(&made);
        made.state = nowhere[i];
        check_none(&made);
    }
    made_init(&made);
    made.frames[1].code = closed;
    check_none(&made);
    munmap(closed, PAGE);
}

static void test_circle(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made.frames[DEPTH - 1].previous = &made.frames[0];
    walk(&made, true);
    assert_int_equal(made.stack.count, RING_FRAMES);
    assert_int_equal(made.stack.left_out, UINT16_MAX);
}

/* Of two pages the second is closed. */
static void test_probe(void **state)
{
    (void)state;
    struct field_reader reader = { .careful = true };
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    assert_true(field_holds(&reader, pages, PAGE));
    assert_true(field_holds(&reader, pages + PAGE, 0));
    assert_int_equal(field_u64(&reader, pages + PAGE - 8), 0);
    assert_false(reader.failed);
    assert_int_equal(field_u64(&reader, pages + PAGE - 7), 0);
    assert_true(reader.failed);
    assert_false(field_holds(&reader, pages, 1)); /* nor is anything else believed */
    munmap(pages, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),  cmocka_unit_test(test_no_code),
        cmocka_unit_test(test_astray), cmocka_unit_test(test_instruction_elsewhere),
        cmocka_unit_test(test_circle), cmocka_unit_test(test_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
