/* Line tables: CPython's own answers for every release (tests/golden/lines), tables of any size,
 * broken ones. */
#include "pyabi/lines.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLE_LIMIT = 1 << 16, ENTRIES = 20000 };

/* One code object of a golden file while it is replayed. */
struct golden_code {
    enum line_table_shape shape;
    char name[128];
    uint8_t table[SAMPLE_LIMIT];
    size_t size;
    int first_line;
    struct code_position expected;
    int offset; /* up to here checked */
};

static void assert_position(const struct golden_code *code, int64_t offset)
{
    /* An own copy of the exact size, so that the address sanitizer sees a read behind the table. */
    AUTO_FREE uint8_t *table = malloc(code->size + !code->size);
    assert_non_null(table);
    memcpy(table, code->table, code->size);
    struct code_position got;
    int error = lines_find(code->shape, table, code->size, code->first_line, offset, &got);
    const struct code_position *want = &code->expected;
    if (error || got.line != want->line || got.column != want->column ||
        got.end_line != want->end_line || got.end_column != want->end_column)
        fail_msg("%s at %d: error %d, got %d:%d-%d:%d, want %d:%d-%d:%d", code->name, (int)offset,
                 error, got.line, got.column, got.end_line, got.end_column, want->line,
                 want->column, want->end_line, want->end_column);
}

static void golden_check_until(struct golden_code *code, int end)
{
    for (; code->offset < end; code->offset += 2)
        assert_position(code, code->offset);
}

static void golden_begin(struct golden_code *code, const char *hex)
{
    code->size = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        code->table[code->size++] = (uint8_t)byte;
    code->offset = 0;
    code->expected = (struct code_position){ code->first_line, 0, code->first_line, 0 };
    assert_position(code, -1);
    assert_position(code, -2);
}

/* A file says from which offset on a position holds, so a line checks the position before it. */
static size_t golden_replay(FILE *file, struct golden_code *code)
{
    static char line[2 * SAMPLE_LIMIT + 256], hex[2 * SAMPLE_LIMIT + 1];
    size_t codes = 0;
    while (fgets(line, sizeof(line), file)) {
        int offset;
        struct code_position next;
        if (sscanf(line, "code %127s %d %131072s", code->name, &code->first_line, hex) == 3) {
            golden_begin(code, hex);
        } else if (sscanf(line, "end %d", &offset) == 1) {
            golden_check_until(code, offset);
            codes++;
        } else {
            assert_int_equal(5, sscanf(line, "%d %d %d %d %d", &offset, &next.line, &next.end_line,
                                       &next.column, &next.end_column));
            golden_check_until(code, offset);
            code->expected = next;
        }
    }
    return codes;
}

/* Every release that we know must have its golden; a free-threaded build compiles as the ordinary
 * one does. */
static void test_golden(void **state)
{
    (void)state;
    static struct golden_code code;
    for (size_t i = 0; py_layouts[i]; i++) {
        const struct py_layout *layout = py_layouts[i];
        if (layout->free_threaded)
            continue;
        char path[1024];
        snprintf(path, sizeof(path), "%.*s/../golden/lines/%s.txt",
                 (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, layout->name);
        AUTO_FCLOSE FILE *file = fopen(path, "re");
        if (!file)
            fail_msg("no %s: make it with generate.py beside it", path);
        code.shape = layout->lines;
        assert_true(golden_replay(file, &code) > 0);
    }
}

/* An entry of a made-up table, before and after encoding. */
struct made_entry {
    unsigned units;
    int line_step;
    bool has_line, has_columns;
    unsigned lines, column, end_column;
};

struct made_table {
    uint8_t *bytes;
    size_t size, capacity;
};

static void made_byte(struct made_table *table, unsigned byte)
{
    if (table->size == table->capacity) {
        table->capacity = table->capacity * 2 + 64;
        table->bytes = realloc(table->bytes, table->capacity);
        assert_non_null(table->bytes);
    }
    table->bytes[table->size++] = (uint8_t)byte;
}

static void made_varint(struct made_table *table, unsigned value)
{
    for (; value >= 64; value >>= 6)
        made_byte(table, 0x40 | (value & 63));
    made_byte(table, value);
}

static unsigned signed_varint(int value)
{
    return value < 0 ? (unsigned)-value << 1 | 1 : (unsigned)value << 1;
}

static void encode_location(struct made_table *table, const struct made_entry *entry)
{
    unsigned length = entry->units - 1;
    unsigned width = entry->end_column - entry->column;
    if (!entry->has_line) {
        made_byte(table, 0x80 | 15 << 3 | length);
    } else if (!entry->has_columns) {
        made_byte(table, 0x80 | 13 << 3 | length);
        made_varint(table, signed_varint(entry->line_step));
    } else if (!entry->lines && !entry->line_step && entry->column < 80 && width < 16) {
        made_byte(table, 0x80 | (entry->column >> 3) << 3 | length);
        made_byte(table, (entry->column & 7) << 4 | width);
    } else if (!entry->lines && entry->line_step >= 0 && entry->line_step < 3 &&
               entry->end_column < 128) {
        made_byte(table, 0x80 | (10u + (unsigned)entry->line_step) << 3 | length);
        made_byte(table, entry->column);
        made_byte(table, entry->end_column);
    } else {
        made_byte(table, 0x80 | 14 << 3 | length);
        made_varint(table, signed_varint(entry->line_step));
        made_varint(table, entry->lines);
        made_varint(table, entry->column + 1);
        made_varint(table, entry->end_column + 1);
    }
}

/* Larger steps are cut up: all bytes first in co_lnotab, all lines first in the table of 3.10. */
static void encode_ranges(struct made_table *table, const struct made_entry *entry)
{
    int step = entry->has_line ? entry->line_step : 0;
    for (; step > 127; step -= 127)
        made_byte(table, 0), made_byte(table, 127);
    for (; step < -127; step += 127)
        made_byte(table, 0), made_byte(table, (uint8_t)-127);
    made_byte(table, entry->units * 2);
    made_byte(table, entry->has_line ? (uint8_t)step : 0x80);
}

static void encode_lnotab(struct made_table *table, const struct made_entry *entry, unsigned before)
{
    int step = entry->has_line ? entry->line_step : 0;
    for (; before > 255; before -= 255)
        made_byte(table, 255), made_byte(table, 0);
    for (; step > 127; step -= 127, before = 0)
        made_byte(table, before), made_byte(table, 127);
    for (; step < -128; step += 128, before = 0)
        made_byte(table, before), made_byte(table, 0x80);
    made_byte(table, before);
    made_byte(table, (uint8_t)step);
}

static unsigned random_next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static struct made_entry entry_make(uint32_t *seed, int line)
{
    static const int steps[] = { 0, 0, 0, 1, 1, 2, 3, 40, 300, 5000, -1, -2, -30, -700 };
    struct made_entry entry = {
        .units = random_next(seed) % 8 + 1,
        .line_step = steps[random_next(seed) % (sizeof(steps) / sizeof(steps[0]))],
        .has_line = random_next(seed) % 10 != 0,
        .has_columns = random_next(seed) % 5 != 0,
        .lines = random_next(seed) % 4 ? 0 : random_next(seed) % 100,
        .column = random_next(seed) % (random_next(seed) % 2 ? 60 : 6000),
    };
    entry.end_column = entry.column + random_next(seed) % 40;
    if (line + entry.line_step < 0)
        entry.line_step = 0;
    return entry;
}

static struct code_position entry_position(const struct made_entry *entry, bool located, int line)
{
    struct code_position position = { line, 0, line, 0 };
    if (located && entry->has_line && entry->has_columns) {
        position.end_line += (int)entry->lines;
        position.column = (int)entry->column + 1;
        position.end_column = (int)entry->end_column + 1;
    }
    return position;
}

/* Tables well over 64 KiB, walked to places all over them. */
static void check_large(enum line_table_shape shape)
{
    static struct made_entry entries[ENTRIES];
    static int line_of[ENTRIES], offset_of_entry[ENTRIES + 1];
    struct made_table made = { 0 };
    uint32_t seed = 7;
    int line = 10;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct made_entry *entry = &entries[i];
        *entry = entry_make(&seed, line);
        line += entry->has_line ? entry->line_step : 0;
        line_of[i] = line;
        offset_of_entry[i + 1] = offset_of_entry[i] + (int)entry->units * 2;
        if (shape == LINES_LOCATIONS)
            encode_location(&made, entry);
        else if (shape == LINES_RANGES)
            encode_ranges(&made, entry);
        else
            encode_lnotab(&made, entry, i ? entries[i - 1].units * 2 : 0);
    }
    AUTO_FREE uint8_t *table = made.bytes;
    assert_true(made.size > 1 << 16);
    for (size_t i = 0; i < ENTRIES; i += i % 97 + 1) {
        struct code_position got,
            want = entry_position(&entries[i], shape == LINES_LOCATIONS, line_of[i]);
        int last = offset_of_entry[i + 1] - 2;
        assert_int_equal(0, lines_find(shape, table, made.size, 10, offset_of_entry[i], &got));
        assert_memory_equal(&want, &got, sizeof(want));
        assert_int_equal(0, lines_find(shape, table, made.size, 10, last, &got));
        assert_memory_equal(&want, &got, sizeof(want));
    }
    struct code_position got;
    assert_int_equal(shape == LINES_LNOTAB ? 0 : -ENOENT,
                     lines_find(shape, table, made.size, 10, offset_of_entry[ENTRIES], &got));
}

static void test_large(void **state)
{
    (void)state;
    check_large(LINES_LNOTAB);
    check_large(LINES_RANGES);
    check_large(LINES_LOCATIONS);
}

struct broken_table {
    const char *what;
    enum line_table_shape shape;
    int first_line;
    const char *bytes;
    size_t size;
    int error;
};

#define TABLE(text) text, sizeof(text) - 1

static void test_broken(void **state)
{
    (void)state;
    static const struct broken_table tables[] = {
        { "half a pair", LINES_LNOTAB, 1, TABLE("\x02\x01\x02"), -EBADMSG },
        { "half a pair", LINES_RANGES, 1, TABLE("\x02"), -EBADMSG },
        { "below line 0", LINES_LNOTAB, 1, TABLE("\x00\x80"), -EBADMSG },
        { "below line 0", LINES_RANGES, 1, TABLE("\x02\x81"), -EBADMSG },
        { "above int", LINES_RANGES, INT32_MAX, TABLE("\x02\x01"), -EBADMSG },
        { "no entry's first byte", LINES_LOCATIONS, 1, TABLE("\x00\x00"), -EBADMSG },
        { "short, cut", LINES_LOCATIONS, 1, TABLE("\x80"), -EBADMSG },
        { "short, followed by an entry", LINES_LOCATIONS, 1, TABLE("\x80\x80"), -EBADMSG },
        { "one line, cut", LINES_LOCATIONS, 1, TABLE("\xd0\x01"), -EBADMSG },
        { "one line, followed by an entry", LINES_LOCATIONS, 1, TABLE("\xd0\x01\xf8"), -EBADMSG },
        { "no columns, cut", LINES_LOCATIONS, 1, TABLE("\xe8"), -EBADMSG },
        { "long, cut", LINES_LOCATIONS, 1, TABLE("\xf0\x02\x00\x01"), -EBADMSG },
        { "varint without end", LINES_LOCATIONS, 1, TABLE("\xe8\x7f\x7f"), -EBADMSG },
        { "varint over 32 bits", LINES_LOCATIONS, 1, TABLE("\xe8\x7f\x7f\x7f\x7f\x7f\x3f"),
          -EBADMSG },
        { "varint of seven bytes", LINES_LOCATIONS, 1, TABLE("\xe8\x40\x40\x40\x40\x40\x40\x00"),
          -EBADMSG },
        { "column above int", LINES_LOCATIONS, 1, TABLE("\xf0\x02\x00\x7f\x7f\x7f\x7f\x7f\x03\x01"),
          -EBADMSG },
        { "below line 0", LINES_LOCATIONS, 1, TABLE("\xe8\x07"), -EBADMSG },
        { "empty", LINES_RANGES, 1, TABLE(""), -ENOENT },
        { "empty", LINES_LOCATIONS, 1, TABLE(""), -ENOENT },
        { "empty", LINES_LNOTAB, 1, TABLE(""), 0 },
        { "whole", LINES_LOCATIONS, 1, TABLE("\xf0\x02\x00\x01\x01"), 0 },
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        AUTO_FREE uint8_t *copy = malloc(tables[i].size + !tables[i].size);
        assert_non_null(copy);
        memcpy(copy, tables[i].bytes, tables[i].size);
        struct code_position got = { .line = -7 };
        int error =
            lines_find(tables[i].shape, copy, tables[i].size, tables[i].first_line, 0, &got);
        if (error != tables[i].error || (error && got.line != -7))
            fail_msg("%s, shape %d: %d", tables[i].what, tables[i].shape, error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
