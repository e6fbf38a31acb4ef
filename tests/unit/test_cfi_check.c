/* Call frame information that libunwind may be given, and lies that would lead it out of its
 * arrays. */
#include "symbols/cfi_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { START = 0x1000, RECORD = 64 };

/* A CIE and an FDE behind it, both as long as they can be: the rest are DW_CFA_nop. */
struct made {
    uint32_t cie_length, cie_id;
    unsigned char cie[RECORD];
    uint32_t fde_length, fde_distance;
    unsigned char fde[RECORD];
};

/* Version, "zR", alignments 1 and -8, return address in 16, one byte of data: pointers of four
 * bytes; the stack is register 7 and 8, the return address at its top. */
static const unsigned char CIE[] = {
    1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,
};
/* Start, length, no data; then the instructions of the row. */
static const unsigned char FDE_HEAD[] = { 0, 0, 0, 0, 16, 0, 0, 0, 0 };

static struct made made_new(const char *instructions, size_t size)
{
    struct made made = {
        .cie_length = sizeof made.cie_id + RECORD,
        .fde_length = sizeof made.fde_distance + RECORD,
        .fde_distance = offsetof(struct made, fde_distance),
    };
    memcpy(made.cie, CIE, sizeof CIE);
    memcpy(made.fde, FDE_HEAD, sizeof FDE_HEAD);
    memcpy(made.fde + sizeof FDE_HEAD, instructions, size);
    return made;
}

static bool made_check_first(const struct made *made, size_t size)
{
    struct image_remote memory;
    struct image_range range = { START, made, size };
    image_remote_init(&memory, &range, 1);
    return cfi_is_sound(&memory.remote, START + offsetof(struct made, fde_length));
}

static bool made_check(const struct made *made)
{
    return made_check_first(made, sizeof *made);
}

static void test_instructions(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool sound;
    } ROWS[] = {
#define ROW(text, sound) { text, sizeof text - 1, sound }
        ROW("", true),
        ROW("\x41\x0e\x10\x86\x02", true),          /* push rbp */
        ROW("\x0f\x03\x77\x08\x06", true),          /* the stack by an expression */
        ROW("\x10\x06\x02\x77\x00", true),          /* a register by one */
        ROW("\x0a\xc6\x0b", true),                  /* remember, restore */
        ROW("\x09\x03\x00", true),                  /* rbx is in rax */
        ROW("\x09\x03\xff\xff\xff\xff\x7f", false), /* in a register that is none */
        ROW("\x09\x7f\x00", false),
        ROW("\x05\x80\x80\x80\x80\x10\x01", false),
        ROW("\x0f\x7f", false), /* an expression beyond the end */
        ROW("\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", false),
        ROW("\x0e\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", false), /* a number without end */
        ROW("\x3f", false),                                             /* no instruction at all */
        ROW("\x15\x01\x01", false), /* one that libunwind does not know */
#undef ROW
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct made made = made_new(ROWS[i].bytes, ROWS[i].size);
        assert_int_equal(made_check(&made), ROWS[i].sound);
    }
}

/* One byte of the CIE is another. */
static void test_cie(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
        bool sound;
    } ROWS[] = {
        { 0, 3, true },     { 0, 4, false },   /* version */
        { 1, 'y', false },  { 2, 'Q', false }, /* augmentation */
        { 6, 200, false },                     /* return address in no register */
        { 7, 0x3f, false },                    /* augmentation data beyond the end */
        { 8, 0x01, false },                    /* pointers of variable length */
        { 9, 0x07, false },                    /* no rule for the stack */
        { 10, 99, false },                     /* the stack in no register */
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct made made = made_new("", 0);
        made.cie[ROWS[i].at] = ROWS[i].value;
        assert_int_equal(made_check(&made), ROWS[i].sound);
    }
}

static void test_records(void **state)
{
    (void)state;
    const struct made sound = made_new("", 0);
    struct made made = sound;
    assert_true(made_check(&made));
    for (size_t size = 0; size < sizeof made; size++)
        assert_false(made_check_first(&made, size));

    made = sound, made.cie_id = 1;
    assert_false(made_check(&made));
    made = sound, made.fde_distance = 0;
    assert_false(made_check(&made));
    made = sound, made.fde_distance = 1 << 30;
    assert_false(made_check(&made));
    made = sound, made.fde_length = UINT32_MAX;
    assert_false(made_check(&made));
    made = sound, made.cie_length = 3;
    assert_false(made_check(&made));
}

/* Each remembered state costs memory. */
static void test_remembers_too_much(void **state)
{
    (void)state;
    struct made made = made_new("", 0);
    memset(made.fde + sizeof FDE_HEAD, 0x0a, RECORD - sizeof FDE_HEAD);
    assert_true(made_check(&made));
    static struct {
        struct made made;
        unsigned char more[RECORD];
    } longer;
    longer.made = made;
    longer.made.fde_length += sizeof longer.more;
    memset(longer.more, 0x0a, sizeof longer.more);
    assert_false(made_check_first(&longer.made, sizeof longer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_cie),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_remembers_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
