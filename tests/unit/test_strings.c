/* str and bytes in made-up memory, for every layout: what no real process holds, or holds too
 * rarely. */
#include "pyabi/strings.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { OBJECT = 0x10000, DATA = 0x20000000 };

/* A str object as the target would hold it, and data elsewhere when it is not compact. */
struct made_string {
    uint8_t object[4096];
    size_t size;
    struct image_range ranges[2];
    struct image_remote image;
};

struct made_form {
    unsigned width;
    bool ascii, compact;
};

static void put(uint8_t *object, struct py_offset offset, const void *value, size_t size)
{
    memcpy(object + offset_of(offset), value, size);
}

static size_t form_head(const struct py_layout *layout, struct made_form form)
{
    if (!form.compact)
        return offset_of(layout->unicode.any) + sizeof(remote_addr);
    return offset_of(form.ascii ? layout->unicode.ascii_data : layout->unicode.compact_data);
}

/* `size` bytes of character data; `length` may lie about them. */
static void string_make(struct made_string *made, const struct py_layout *layout,
                        struct made_form form, uint64_t length, const void *data, size_t size)
{
    size_t head = form_head(layout, form);
    remote_addr data_at = DATA;
    uint32_t state = form.width << layout->unicode_kind_shift |
                     (uint32_t)form.compact << layout->unicode_compact_shift |
                     (uint32_t)form.ascii << layout->unicode_ascii_shift;
    memset(made->object, 0, sizeof(made->object));
    put(made->object, layout->unicode.length, &length, sizeof(length));
    put(made->object, layout->unicode.state, &state, sizeof(state));
    made->size = head;
    if (form.compact) {
        assert_true(head + size <= sizeof(made->object));
        memcpy(made->object + head, data, size);
        made->size += size;
    } else {
        put(made->object, layout->unicode.any, &data_at, sizeof(data_at));
    }
    made->ranges[0] = (struct image_range){ OBJECT, made->object, made->size };
    made->ranges[1] = (struct image_range){ DATA, data, size };
    image_remote_init(&made->image, made->ranges, 2);
}

static int string_ask(struct made_string *made, const struct py_layout *layout, char **ret)
{
    return string_read(&made->image.remote, layout, OBJECT, ret);
}

static void expect_text(const struct py_layout *layout, struct made_form form, const void *data,
                        size_t size, const char *expected)
{
    struct made_string made;
    AUTO_FREE char *text = NULL;
    string_make(&made, layout, form, size / form.width, data, size);
    assert_int_equal(0, string_ask(&made, layout, &text));
    assert_string_equal(expected, text);
}

static void expect_refused(const struct py_layout *layout, struct made_form form, uint64_t length,
                           const void *data, size_t size, int error)
{
    struct made_string made;
    char *text = NULL;
    string_make(&made, layout, form, length, data, size);
    assert_int_equal(error, string_ask(&made, layout, &text));
    assert_null(text);
}

static const struct made_form ascii = { 1, true, true };
static const struct made_form latin = { 1, false, true };
static const struct made_form two = { 2, false, true };
static const struct made_form four = { 4, false, true };

/* The first and last character of every length of UTF-8, and what takes another's place. */
static void test_characters(void **state)
{
    (void)state;
    static const uint16_t bmp[] = { 0x7f,   0x80,   0x7ff,  0x800,  0xd7ff,
                                    0xd800, 0xdfff, 0xe000, 0xffff, 0 };
    static const uint32_t astral[] = { 0x10000, 0x10ffff, 0xdc80, 0, 'a' };
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        expect_text(layout, ascii, "", 0, "");
        expect_text(layout, ascii, "a\0b\x1b", 4,
                    "a\xe2\x90\x80"
                    "b\x1b");
        expect_text(layout, latin, "\x7f\x80\xff", 3, "\x7f\xc2\x80\xc3\xbf");
        expect_text(layout, two, bmp, sizeof(bmp),
                    "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbd\xef\xbf\xbd"
                    "\xee\x80\x80\xef\xbf\xbf\xe2\x90\x80");
        expect_text(layout, four, astral, sizeof(astral),
                    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xef\xbf\xbd\xe2\x90\x80"
                    "a");
    }
}

/* Ready, but not compact: what the old C API makes until 3.11, and subclasses of str everywhere. */
static void test_data_elsewhere(void **state)
{
    (void)state;
    static const uint16_t bmp[] = { 0x43f, 0x43e };
    static const uint32_t astral[] = { 0x1f600 };
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        expect_text(layout, (struct made_form){ 1, true, false }, "abc", 3, "abc");
        expect_text(layout, (struct made_form){ 1, false, false }, "\xe9", 1, "\xc3\xa9");
        expect_text(layout, (struct made_form){ 2, false, false }, bmp, sizeof(bmp), "по");
        expect_text(layout, (struct made_form){ 4, false, false }, astral, sizeof(astral), "😀");
    }
}

static void test_implausible(void **state)
{
    (void)state;
    static const uint32_t beyond = 0x110000;
    static const struct made_form no_width = { 0, false, true }, odd_width = { 3, false, true };
    static const struct made_form wide_ascii = { 2, true, true };
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        expect_refused(layout, no_width, 1, "aaaa", 4, -EBADMSG);
        expect_refused(layout, odd_width, 1, "aaaa", 4, -EBADMSG);
        expect_refused(layout, wide_ascii, 1, "aaaa", 4, -EBADMSG);
        expect_refused(layout, ascii, 1, "\x80", 1, -EBADMSG);
        expect_refused(layout, four, 1, &beyond, 4, -EBADMSG);
        expect_refused(layout, ascii, STRING_SIZE_MAX + 1, "a", 1, -EBADMSG);
        expect_refused(layout, four, STRING_SIZE_MAX / 4 + 1, "aaaa", 4, -EBADMSG);
        expect_refused(layout, two, UINT64_MAX / 2 + 1, "aa", 2, -EBADMSG);
        expect_refused(layout, ascii, 2, "a", 1, -EFAULT);
        expect_refused(layout, ascii, STRING_SIZE_MAX, "a", 1, -EFAULT);
    }
}

static void test_no_object(void **state)
{
    (void)state;
    struct made_string made;
    char *text = NULL;
    const struct py_layout *layout = py_layouts[0];
    string_make(&made, layout, ascii, 1, "a", 1);
    assert_int_equal(-EBADMSG, string_read(&made.image.remote, layout, 0, &text));
    assert_int_equal(-EBADMSG, string_read(&made.image.remote, layout, OBJECT + 4, &text));
    assert_int_equal(-EFAULT, string_read(&made.image.remote, layout, OBJECT - 8, &text));
    made.ranges[0].size = string_head_size(layout) - 1;
    assert_int_equal(-EFAULT, string_ask(&made, layout, &text));
    assert_null(text);
}

/* The largest text there can be, and a plan from a head that ends before the pointer to the data.
 */
static void test_plan(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        struct made_string made;
        struct string_plan plan;
        size_t head = string_head_size(layout);
        string_make(&made, layout, (struct made_form){ 2, false, false }, 3, "aabbcc", 6);
        assert_int_equal(0, string_plan(layout, OBJECT, made.object, head, &plan));
        assert_int_equal(0, plan.data);
        assert_int_equal(OBJECT + offset_of(layout->unicode.any), plan.pointer);
        assert_int_equal(0, string_plan(layout, OBJECT, made.object, made.size, &plan));
        assert_int_equal(DATA, plan.data);
        assert_int_equal(0, plan.pointer);
        assert_int_equal(6, plan.size);
        assert_int_equal(-EBADMSG, string_plan(layout, OBJECT, made.object, head - 1, &plan));

        string_make(&made, layout, latin, STRING_SIZE_MAX, "", 0);
        assert_int_equal(0, string_plan(layout, OBJECT, made.object, head, &plan));
        AUTO_FREE uint8_t *zeros = calloc(1, plan.size);
        AUTO_FREE char *text = malloc(string_text_size(&plan));
        assert_non_null(zeros);
        assert_non_null(text);
        assert_int_equal(3 * STRING_SIZE_MAX, string_decode(&plan, zeros, text));
    }
}

static void bytes_check(const struct py_layout *layout, uint64_t size, size_t there, size_t limit,
                        int expected)
{
    size_t head = offset_of(layout->bytes.data), got = 77;
    AUTO_FREE uint8_t *object = calloc(1, head + there);
    AUTO_FREE uint8_t *data = NULL;
    assert_non_null(object);
    put(object, layout->bytes.length, &size, sizeof(size));
    for (size_t i = 0; i < there; i++)
        object[head + i] = (uint8_t)(i * 31 >> 3);
    const struct image_range range = { OBJECT, object, head + there };
    struct image_remote image;
    image_remote_init(&image, &range, 1);
    int error = bytes_read(&image.remote, layout, OBJECT, limit, &data, &got);
    assert_int_equal(expected, error);
    if (!error) {
        assert_int_equal(size, got);
        assert_non_null(data);
        assert_memory_equal(object + head, data, size);
    } else {
        assert_null(data);
        assert_int_equal(77, got);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        bytes_check(layout, 0, 0, 0, 0);
        bytes_check(layout, 100, 100, 100, 0);
        bytes_check(layout, 100, 100, 99, -EBADMSG);
        bytes_check(layout, 100, 99, 100, -EFAULT);
        bytes_check(layout, 300000, 300000, BYTES_SIZE_MAX, 0);
        bytes_check(layout, BYTES_SIZE_MAX + 1, 10, SIZE_MAX, -EBADMSG);
        bytes_check(layout, UINT64_MAX, 10, SIZE_MAX, -EBADMSG);
    }
    bytes_check(py_layouts[0], BYTES_SIZE_MAX, BYTES_SIZE_MAX, BYTES_SIZE_MAX, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters),  cmocka_unit_test(test_data_elsewhere),
        cmocka_unit_test(test_implausible), cmocka_unit_test(test_no_object),
        cmocka_unit_test(test_plan),        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
