/* Dict tables and ints in made-up memory, for every layout: sizes no test process should have, and
 * lies. */
#include "pyabi/dicts.h"
#include "pyabi/thread_names.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum {
    DICT = 0x10000,
    KEYS = 0x20000,
    OTHER_KEYS = 0x28000,
    TEXTS = 0x18000,
    TEXT_ROOM = 256,
    TEXT_COUNT = 3,
    ENTRY_COUNT = 4,
    VALUE = 0x1000, /* of the first entry; the next has twice this */
};

static const char *const texts[TEXT_COUNT] = { "alpha", "beta", "alphabet" };

/* One dict {alpha, (dead), beta, alphabet}, its table where the size of the index puts it. */
struct made_dict {
    uint8_t dict[128], keys[128], texts[TEXT_COUNT * TEXT_ROOM];
    remote_addr entries[3 * ENTRY_COUNT];
    struct image_range ranges[4];
    struct image_remote image;
};

static void put(void *object, struct py_offset offset, const void *value, size_t size)
{
    memcpy((uint8_t *)object + offset_of(offset), value, size);
}

static void text_make(const struct py_layout *layout, uint8_t *into, const char *text)
{
    uint64_t length = strlen(text);
    uint32_t state = 1u << layout->unicode_kind_shift | 1u << layout->unicode_compact_shift |
                     1u << layout->unicode_ascii_shift;
    put(into, layout->unicode.length, &length, sizeof(length));
    put(into, layout->unicode.state, &state, sizeof(state));
    memcpy(into + offset_of(layout->unicode.ascii_data), text, length);
}

static uint64_t keys_make(struct made_dict *made, const struct py_layout *layout,
                          unsigned log2_size, unsigned width, uint64_t count)
{
    const struct keys_layout *at = &layout->keys;
    uint64_t slots = (uint64_t)1 << log2_size;
    put(made->keys, at->entry_count, &count, sizeof(count));
    if (offset_present(at->log2_size)) {
        uint8_t size = (uint8_t)log2_size, bytes = (uint8_t)(log2_size + __builtin_ctz(width));
        put(made->keys, at->log2_size, &size, 1);
        put(made->keys, at->log2_index_bytes, &bytes, 1);
    } else {
        put(made->keys, at->index_count, &slots, sizeof(slots));
    }
    return slots * width;
}

/* General entries: hash, key, value. The second one is dead. */
static void dict_make(struct made_dict *made, const struct py_layout *layout, unsigned log2_size,
                      unsigned width, uint64_t count)
{
    remote_addr keys = KEYS;
    memset(made, 0, sizeof(*made));
    put(made->dict, layout->dict.keys, &keys, sizeof(keys));
    for (size_t i = 0, text = 0; i < ENTRY_COUNT; i++) {
        if (i == 1)
            continue;
        text_make(layout, made->texts + text * TEXT_ROOM, texts[text]);
        made->entries[3 * i + 1] = TEXTS + text++ * TEXT_ROOM;
        made->entries[3 * i + 2] = VALUE * (i + 1);
    }
    uint64_t indices = keys_make(made, layout, log2_size, width, count);
    size_t head = offset_of(layout->keys.indices);
    made->ranges[0] = (struct image_range){ DICT, made->dict, sizeof(made->dict) };
    made->ranges[1] = (struct image_range){ TEXTS, made->texts, sizeof(made->texts) };
    made->ranges[2] = (struct image_range){ KEYS, made->keys, head };
    made->ranges[3] =
        (struct image_range){ KEYS + head + indices, made->entries, sizeof(made->entries) };
    image_remote_init(&made->image, made->ranges, 4);
}

static int sum_entry(void *context, remote_addr key, remote_addr value)
{
    assert_true(key >= TEXTS);
    *(remote_addr *)context += value;
    return 0;
}

static void check_whole(struct made_dict *made, const struct py_layout *layout)
{
    remote_addr sum = 0, value = 0;
    assert_int_equal(0, dict_walk(&made->image.remote, layout, DICT, sum_entry, &sum));
    assert_int_equal(VALUE * (1 + 3 + 4), sum);
    assert_int_equal(0, dict_find(&made->image.remote, layout, DICT, "alpha", &value));
    assert_int_equal(VALUE, value);
    assert_int_equal(0, dict_find(&made->image.remote, layout, DICT, "alphabet", &value));
    assert_int_equal(VALUE * 4, value);
    assert_int_equal(-ENOENT, dict_find(&made->image.remote, layout, DICT, "alph", &value));
}

static void test_index_sizes(void **state)
{
    (void)state;
    static const struct {
        unsigned log2_size, width;
    } sizes[] = { { 3, 1 }, { 7, 1 }, { 8, 2 }, { 15, 2 }, { 16, 4 }, { 31, 4 }, { 32, 8 } };
    for (size_t i = 0; py_layouts[i]; i++) {
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            struct made_dict made;
            dict_make(&made, py_layouts[i], sizes[j].log2_size, sizes[j].width, ENTRY_COUNT);
            check_whole(&made, py_layouts[i]);
        }
    }
}

static int walk(struct made_dict *made, const struct py_layout *layout, remote_addr dict)
{
    remote_addr sum = 0;
    return dict_walk(&made->image.remote, layout, dict, sum_entry, &sum);
}

static void test_implausible(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        struct made_dict made;
        dict_make(&made, layout, 3, 1, 9);
        assert_int_equal(-EBADMSG, walk(&made, layout, DICT)); /* more entries than slots */
        dict_make(&made, layout, 3, 1, UINT64_MAX);
        assert_int_equal(-EBADMSG, walk(&made, layout, DICT));
        dict_make(&made, layout, 31, 4, DICT_ENTRIES_MAX + 1);
        assert_int_equal(-EBADMSG, walk(&made, layout, DICT));
        dict_make(&made, layout, 31, 4, DICT_ENTRIES_MAX);
        assert_int_equal(-EFAULT, walk(&made, layout, DICT));
        dict_make(&made, layout, 33, 8, ENTRY_COUNT);
        assert_int_equal(-EBADMSG, walk(&made, layout, DICT));
        assert_int_equal(-EBADMSG, walk(&made, layout, 0));
        assert_int_equal(-EBADMSG, walk(&made, layout, DICT + 1));
        assert_int_equal(-EFAULT, walk(&made, layout, DICT - 0x1000));
    }
}

/* A key that cannot be read is skipped, and the ones behind it are still found. */
static void test_unreadable_key(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        struct made_dict made;
        remote_addr value = 0;
        dict_make(&made, py_layouts[i], 3, 1, ENTRY_COUNT);
        made.entries[1] = 0x7000000;
        assert_int_equal(0, dict_find(&made.image.remote, py_layouts[i], DICT, "alphabet", &value));
        assert_int_equal(VALUE * 4, value);
        assert_int_equal(-ENOENT,
                         dict_find(&made.image.remote, py_layouts[i], DICT, "alpha", &value));
    }
}

/* A target that gives the dict another table at every `calm`th read. */
struct moving_remote {
    struct remote remote;
    struct made_dict *made;
    const struct py_layout *layout;
    unsigned reads, moves, calm;
};

static int moving_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                       size_t *ret_tail)
{
    struct moving_remote *moving = (struct moving_remote *)self;
    remote_addr tables[] = { KEYS, OTHER_KEYS };
    if (++moving->reads % moving->calm == 0)
        put(moving->made->dict, moving->layout->dict.keys, &tables[++moving->moves % 2],
            sizeof(tables[0]));
    struct remote *image = &moving->made->image.remote;
    return image->read_pieces(image, pieces, count, ret_tail);
}

static void test_moving(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        struct made_dict made;
        remote_addr value = 7;
        dict_make(&made, py_layouts[i], 3, 1, ENTRY_COUNT);
        struct moving_remote moving = { { moving_read }, &made, py_layouts[i], 0, 0, 2 };
        assert_int_equal(-EAGAIN, dict_find(&moving.remote, py_layouts[i], DICT, "alpha", &value));
        assert_int_equal(7, value);
        assert_true(moving.reads < 64);
        dict_make(&made, py_layouts[i], 3, 1, ENTRY_COUNT);
        moving = (struct moving_remote){ { moving_read }, &made, py_layouts[i], 0, 1, 3 };
        assert_int_equal(0, dict_find(&moving.remote, py_layouts[i], DICT, "alpha", &value));
    }
}

static int integer_ask(const struct py_layout *layout, uint64_t word, const uint32_t *digits,
                       size_t count, int64_t *ret)
{
    uint8_t object[128] = { 0 };
    size_t head = offset_of(layout->integer.digits);
    put(object, layout->integer.tag, &word, sizeof(word));
    memcpy(object + head, digits, count * sizeof(*digits));
    const struct image_range range = { DICT, object, head + count * sizeof(*digits) };
    struct image_remote image;
    image_remote_init(&image, &range, 1);
    return integer_read(&image.remote, layout, DICT, ret);
}

static void test_integers(void **state)
{
    (void)state;
    static const uint32_t two_to_63[] = { 0, 0, 8 }, broken[] = { 1u << 30 };
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        bool tag = layout->integers == INTEGER_TAG;
        uint64_t one = tag ? 1 << 3 : 1, three = tag ? 3 << 3 : 3;
        uint64_t minus_three = tag ? 3 << 3 | 2 : (uint64_t)-3;
        int64_t value = 7;
        assert_int_equal(0, integer_ask(layout, three, two_to_63, 3, &value));
        assert_true((uint64_t)value == (uint64_t)1 << 63);
        assert_int_equal(0, integer_ask(layout, minus_three, two_to_63, 3, &value));
        assert_true(value == INT64_MIN);
        value = 7;
        assert_int_equal(-EBADMSG, integer_ask(layout, one, broken, 1, &value));
        assert_int_equal(-EFAULT, integer_ask(layout, three, two_to_63, 2, &value));
        assert_int_equal(
            -ERANGE, integer_ask(layout, (uint64_t)INT64_MAX & ~(uint64_t)7, two_to_63, 3, &value));
        if (tag) {
            assert_int_equal(-EBADMSG, integer_ask(layout, one | 3, two_to_63, 3, &value));
            assert_int_equal(-EBADMSG, integer_ask(layout, one | 1, two_to_63, 3, &value));
            assert_int_equal(-EBADMSG, integer_ask(layout, 0, two_to_63, 3, &value));
        }
        assert_int_equal(7, value);
    }
}

static int no_name(void *context, uint64_t ident, const char *name)
{
    (void)context, (void)ident, (void)name;
    fail();
    return 0;
}

/* Releases whose targets tell where `modules` stands get an offset here. */
static void test_threading_not_imported(void **state)
{
    (void)state;
    for (size_t i = 0; py_layouts[i]; i++) {
        struct made_dict made;
        struct py_layout layout = *py_layouts[i];
        remote_addr modules = DICT;
        layout.interp.modules = (struct py_offset)AT(sizeof(made.dict) - sizeof(modules));
        dict_make(&made, &layout, 3, 1, ENTRY_COUNT);
        put(made.dict, layout.interp.modules, &modules, sizeof(modules));
        assert_int_equal(-ENOENT,
                         thread_names_walk(&made.image.remote, &layout, DICT, no_name, NULL));
        modules = 0;
        put(made.dict, layout.interp.modules, &modules, sizeof(modules));
        assert_int_equal(-ENOENT,
                         thread_names_walk(&made.image.remote, &layout, DICT, no_name, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_sizes),    cmocka_unit_test(test_implausible),
        cmocka_unit_test(test_unreadable_key), cmocka_unit_test(test_moving),
        cmocka_unit_test(test_integers),       cmocka_unit_test(test_threading_not_imported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
