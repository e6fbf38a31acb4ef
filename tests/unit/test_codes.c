/* The shim's ids of code objects: one for each, none beyond its room, and all anew for the next who
 * listens. */
#include "sampler/shim/codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 140000, ROUNDS = 3, ROOM = 200, ASCII_STATE = 1 << 2 | 1 << 5 | 1 << 6 };

/* As far as ids look at one. A text, or a table without a state. */
struct made_text {
    uint64_t length;
    uint32_t state;
    char data[ROOM];
};

struct made_code {
    const void *name, *file, *table;
    uint32_t first_line;
};

static struct made_code made[MANY];

static struct made_text made_name, made_file, made_table;

static const struct ring_python layout = {
    .code_qualname = RING_ABSENT,
    .unicode_length = offsetof(struct made_text, length),
    .unicode_state = offsetof(struct made_text, state),
    .unicode_ascii_data = offsetof(struct made_text, data),
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .bytes_length = offsetof(struct made_text, length),
    .bytes_data = offsetof(struct made_text, data),
    .code_name = offsetof(struct made_code, name),
    .code_filename = offsetof(struct made_code, file),
    .code_line_table = offsetof(struct made_code, table),
    .code_firstlineno = offsetof(struct made_code, first_line),
};

static void made_init(void)
{
    made_name = (struct made_text){ 4, ASCII_STATE, "name" };
    made_file = (struct made_text){ 25, ASCII_STATE, "/srv/templates/a/index.py" };
    made_table = (struct made_text){ ROOM, 0, { 0 } };
    for (uint32_t i = 0; i < MANY; i++)
        made[i] = (struct made_code){ &made_name, &made_file, &made_table, i };
}

static uint32_t identify(const struct made_code *code)
{
    struct field_reader reader = { .careful = false };
    return code_identify(&layout, &reader, code);
}

static void test_ids(void **state)
{
    (void)state;
    made_init();
    uint32_t first = identify(&made[0]);
    uint32_t second = identify(&made[1]);
    assert_true(first && second && first != second);
    assert_int_equal(identify(&made[0]), first);
    code_set_told(first);
    assert_true(code_is_told(first) && !code_is_told(second));
    made[0].first_line++; /* another one, where the first was */
    assert_int_not_equal(identify(&made[0]), first);
}

/* Another code object where the first was, and its texts where the first's were. */
static void test_successors(void **state)
{
    (void)state;
    char *const differ[] = {
        made_name.data,  &made_name.data[3],   &made_file.data[16],       &made_file.data[24],
        made_table.data, &made_table.data[31], &made_table.data[ROOM - 1]
    };
    made_init();
    const uint32_t first = identify(&made[0]);
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
        ++*differ[i];
        assert_int_not_equal(identify(&made[0]), first);
        --*differ[i];
        assert_int_equal(identify(&made[0]), first);
    }
    made_table.length--;
    assert_int_not_equal(identify(&made[0]), first);
}

static uint32_t ids_give(void)
{
    uint32_t count = 0;
    for (size_t i = 0; i < MANY; i++)
        count += identify(&made[i]) != 0;
    return count;
}

static void test_full(void **state)
{
    (void)state;
    uint32_t most = 0;
    made_init();
    for (int i = 0; i < ROUNDS; i++) {
        codes_forget();
        assert_false(codes_are_full());
        uint32_t given = ids_give();
        assert_true(given > MANY / 2 && given < MANY);
        assert_true(codes_are_full());
        assert_true(!most || given == most);
        most = given;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_successors),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
