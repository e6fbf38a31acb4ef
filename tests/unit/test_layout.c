/* Layouts: each release's own numbers pass, what a target tells wins, what cannot be is refused by
 * name. */
#include "pyabi/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TABLE_WORDS = 256, VERSION_AT = 8, FREE_THREADED_AT = 16, FINAL = 0xf0 };

/* A target's _Py_DebugOffsets, as a finished build of the release would have them. */
struct table {
    uint64_t words[TABLE_WORDS];
};

static void table_put(struct table *table, uint16_t at, uint64_t value)
{
    table->words[at / sizeof(uint64_t)] = value;
}

static uint64_t table_get(const struct table *table, uint16_t at)
{
    return table->words[at / sizeof(uint64_t)];
}

static uint64_t version_word(const struct py_layout *release, unsigned level)
{
    return (uint64_t)release->major << 24 | (uint64_t)release->minor << 16 | level;
}

static bool row_is_size(const struct debug_offset *row)
{
    for (const struct layout_group *group = layout_groups; group->name; group++) {
        if (group->at == row->field)
            return true;
    }
    return false;
}

/* What a target would tell: the release's own number, or where it has none, any that can be. */
static uint32_t row_value(const struct py_layout *layout, const struct debug_offset *row)
{
    const struct py_offset from_target = FROM_TARGET;
    struct py_offset offset;

    memcpy(&offset, (const char *)layout + row->field, sizeof(offset));
    if (offset.plus_one == from_target.plus_one)
        return (1 << 14) + row->at * sizeof(uint64_t);
    return offset_present(offset) ? offset_of(offset) : UINT32_MAX;
}

/* Makes `row` come out as `value`, whatever the words beside it are. */
static void row_tell(struct table *table, const struct debug_offset *row, uint64_t value)
{
    if (row->plus)
        table_put(table, row->plus, value - table_get(table, row->at));
    else
        table_put(table, row->at, value + (row->minus ? table_get(table, row->minus) : 0));
}

static void table_fill(struct table *table, const struct py_layout *release)
{
    memset(table, 0, sizeof(*table));
    table_put(table, VERSION_AT, version_word(release, FINAL));
    table_put(table, FREE_THREADED_AT, release->free_threaded);
    for (const struct debug_offset *row = release->debug_offsets; row && row->at; row++) {
        if (row_is_size(row))
            row_tell(table, row, 1 << 20);
        else if (row_value(release, row) != UINT32_MAX)
            row_tell(table, row, row_value(release, row));
    }
}

static int table_resolve(const struct py_layout *release, const struct table *table,
                         struct py_layout *ret, struct failure *why)
{
    return layout_resolve(release, table, release->debug_offsets_size, ret, why);
}

static void every_release_accepts_its_own_numbers(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        struct py_layout layout;
        struct failure why = { 0 };
        struct table table;

        table_fill(&table, *release);
        assert_int_equal(table_resolve(*release, &table, &layout, &why), 0);
        assert_string_equal(layout.name, (*release)->name);
        assert_memory_equal(&layout.position, &(*release)->position,
                            sizeof(layout) - offsetof(struct py_layout, position));
    }
}

static void a_size_is_the_end_of_the_furthest_field(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        struct py_layout layout;
        struct table table;

        table_fill(&table, *release);
        assert_int_equal(table_resolve(*release, &table, &layout, NULL), 0);
        assert_int_equal(layout.frame.size, offset_of(layout.frame.localsplus));
        assert_int_equal(layout.tuple.size, offset_of(layout.tuple.items));
        assert_int_equal(layout.object.size, offset_of(layout.object.var_size) + 8);
        if (offset_present(layout.code.bytecode_inline))
            assert_int_equal(layout.code.size, offset_of(layout.code.bytecode_inline));
        if (!offset_present(layout.chunk.data))
            assert_int_equal(layout.chunk.size, 0);
    }
}

static void what_the_target_tells_wins(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        struct py_layout layout;
        struct table table;

        if (!(*release)->debug_offsets)
            continue;
        table_fill(&table, *release);
        for (const struct debug_offset *row = (*release)->debug_offsets; row->at; row++) {
            if (row->field == offsetof(struct py_layout, thread.native_id))
                row_tell(&table, row, 4096);
            if (row->field == offsetof(struct py_layout, interp.gc_collecting))
                row_tell(&table, row, 8192);
            if (row->field == offsetof(struct py_layout, gil.locked))
                row_tell(&table, row, 64);
        }
        assert_int_equal(table_resolve(*release, &table, &layout, NULL), 0);
        assert_int_equal(offset_of(layout.thread.native_id), 4096);
        assert_int_equal(offset_of(layout.interp.gc_collecting), 8192);
        assert_int_equal(offset_of(layout.gil.locked), 64);
        assert_int_equal(layout.thread.size, 4096 + 8);
        assert_int_equal(offset_of(layout.thread.datastack_top),
                         offset_of((*release)->thread.datastack_top));
    }
}

static void assert_refused(const struct py_layout *release, const struct table *table,
                           const struct layout_group *group, const char *field)
{
    struct py_layout layout = { .name = "untouched" };
    struct failure why = { 0 };
    char named[64];

    snprintf(named, sizeof(named), "%s.%s ", group->name, field);
    assert_int_equal(table_resolve(release, table, &layout, &why), -EBADMSG);
    assert_int_equal(why.code, -EBADMSG);
    assert_non_null(strstr(why.text, named));
    assert_non_null(strstr(why.text, release->name));
    assert_string_equal(layout.name, "untouched");
}

static const struct layout_group *row_group(const struct debug_offset *row, size_t *ret_index)
{
    const struct layout_group *group = layout_groups;

    while (group[1].name && group[1].at <= row->field)
        group++;
    *ret_index = (row->field - group->at) / sizeof(struct py_offset) - 1;
    return group;
}

static void a_field_only_the_target_knows_is_taken_from_it(void **state)
{
    const struct py_layout *release = layout_find(3, 14, true);
    struct py_layout layout;
    struct table table;

    (void)state;
    table_fill(&table, release);
    assert_int_equal(table_resolve(release, &table, &layout, NULL), 0);
    for (const struct debug_offset *row = release->debug_offsets; row->at; row++) {
        if (row->field == offsetof(struct py_layout, interp.tlbc_generation))
            assert_int_equal(offset_of(layout.interp.tlbc_generation), table_get(&table, row->at));
    }
    layout = *release;
    layout.debug_offsets = NULL;
    assert_int_equal(layout_resolve(&layout, NULL, 0, &layout, NULL), -EBADMSG);
}

/* Each field that a release is told, told wrongly in each of the ways that can be seen. */
static void an_implausible_offset_is_refused_field_by_field(void **state)
{
    size_t refused = 0;

    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        for (const struct debug_offset *row = (*release)->debug_offsets; row && row->at; row++) {
            struct table good;
            struct table bad;
            size_t index;
            const struct layout_group *group = row_group(row, &index);

            if (row_is_size(row) || row_value(*release, row) == UINT32_MAX)
                continue;
            const struct layout_field *field = &group->fields[index];
            table_fill(&good, *release);
            for (size_t way = 0; way < 4; way++) {
                const uint64_t values[] = { UINT64_MAX, (uint64_t)UINT32_MAX + 1, group->limit + 8,
                                            row_value(*release, row) + 1 };

                if (way == 3 && field->width < 2)
                    continue;
                bad = good;
                /* Words that several rows share cannot be told wrongly for one of them alone. */
                row_tell(&bad, row, values[way]);
                if (!strcmp(group->name, "object") || !strcmp(group->name, "tuple") ||
                    !strcmp(group->name, "unicode")) {
                    assert_int_equal(table_resolve(*release, &bad, &(struct py_layout){ 0 }, NULL),
                                     -EBADMSG);
                } else {
                    assert_refused(*release, &bad, group, field->name);
                }
                refused++;
            }
        }
    }
    assert_true(refused > 500);
}

static void a_field_beyond_the_told_size_is_refused(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        for (const struct debug_offset *row = (*release)->debug_offsets; row && row->at; row++) {
            struct py_layout layout;
            struct table table;

            if (!row_is_size(row))
                continue;
            table_fill(&table, *release);
            row_tell(&table, row, 1);
            assert_int_equal(table_resolve(*release, &table, &layout, NULL), -EBADMSG);
        }
    }
}

static void two_fields_in_one_place_are_refused(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        struct table table;

        table_fill(&table, *release);
        for (const struct debug_offset *row = (*release)->debug_offsets; row && row->at; row++) {
            if (row->field == offsetof(struct py_layout, thread.next)) {
                row_tell(&table, row, offset_of((*release)->thread.prev));
                assert_refused(*release, &table, row_group(row, &(size_t){ 0 }), "next");
            }
        }
    }
}

/* Where the readers copy the head of a code object, and nothing behind it. */
static void a_field_away_from_its_neighbours_is_refused(void **state)
{
    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        struct table table;

        for (const struct debug_offset *row = (*release)->debug_offsets; row && row->at; row++) {
            table_fill(&table, *release);
            if (row->field == offsetof(struct py_layout, code.name)) {
                row_tell(&table, row, 400);
                assert_refused(*release, &table, row_group(row, &(size_t){ 0 }), "name");
                row_tell(&table, row, 0);
                assert_refused(*release, &table, row_group(row, &(size_t){ 0 }), "name");
            }
        }
    }
}

static void a_table_of_another_version_is_refused(void **state)
{
    const struct py_layout *release = layout_find(3, 14, false);
    struct py_layout layout;
    struct table table;

    (void)state;
    table_fill(&table, layout_find(3, 13, false));
    assert_int_equal(table_resolve(release, &table, &layout, NULL), -EBADMSG);
    table_fill(&table, release);
    table_put(&table, FREE_THREADED_AT, 1);
    assert_int_equal(table_resolve(release, &table, &layout, NULL), -EBADMSG);
    table_fill(&table, release);
    assert_int_equal(
        layout_resolve(release, &table, release->debug_offsets_size - 1, &layout, NULL), -EBADMSG);
    assert_int_equal(layout_resolve(release, NULL, 0, &layout, NULL), -EBADMSG);
}

static void a_pre_release_is_refused(void **state)
{
    const struct py_layout *release = layout_find(3, 15, false);
    struct py_layout layout;
    struct failure why;
    struct table table;

    (void)state;
    table_fill(&table, release);
    for (unsigned level = 0xa; level <= 0xc; level++) {
        table_put(&table, VERSION_AT, version_word(release, level << 4 | 4));
        assert_int_equal(table_resolve(release, &table, &layout, &why), -ENOTSUP);
        assert_non_null(strstr(why.text, "pre-release of 3.15"));
    }
    table_put(&table, VERSION_AT, version_word(release, 0xf0));
    assert_int_equal(table_resolve(release, &table, &layout, &why), 0);
}

static void releases_are_found_by_version_and_named(void **state)
{
    char names[256] = "";

    (void)state;
    for (const struct py_layout *const *release = py_layouts; *release; release++) {
        assert_ptr_equal(
            layout_find((*release)->major, (*release)->minor, (*release)->free_threaded), *release);
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "",
                 (*release)->name);
    }
    assert_string_equal(layout_known_names(), names);
    assert_null(layout_find(3, 7, false));
    assert_null(layout_find(3, 16, false));
    assert_null(layout_find(3, 12, true));
    assert_null(layout_find(2, 7, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_release_accepts_its_own_numbers),
        cmocka_unit_test(a_size_is_the_end_of_the_furthest_field),
        cmocka_unit_test(what_the_target_tells_wins),
        cmocka_unit_test(a_field_only_the_target_knows_is_taken_from_it),
        cmocka_unit_test(an_implausible_offset_is_refused_field_by_field),
        cmocka_unit_test(a_field_beyond_the_told_size_is_refused),
        cmocka_unit_test(two_fields_in_one_place_are_refused),
        cmocka_unit_test(a_field_away_from_its_neighbours_is_refused),
        cmocka_unit_test(a_table_of_another_version_is_refused),
        cmocka_unit_test(a_pre_release_is_refused),
        cmocka_unit_test(releases_are_found_by_version_and_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
