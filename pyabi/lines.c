/*
 * The line tables: co_lnotab (3.8, 3.9) and the pairs of 3.10 (both in CPython's
 * Objects/lnotab_notes.txt of their branch), location entries (3.11+, Objects/locations.md, now
 * InternalDocs/code_objects.md). Each is walked once from its start; tables come from another
 * process and are not trusted.
 */
#include "pyabi/lines.h"

#include <limits.h>

enum location_code {
    LOCATION_ONE_LINE = 10, /* to 12; below: short */
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15,
};

#define NO_LINE_STEP (-128)
#define CODE_UNIT 2

struct table_cursor {
    const uint8_t *next;
    const uint8_t *end;
};

/* Where the entry that covers the offset stands. Lines may leave the range of int on the way. */
struct location {
    int64_t line, end_line;
    int64_t column, end_column; /* 1-based, 0 unknown */
};

static int lnotab_find(struct table_cursor cursor, int64_t offset, struct location *location)
{
    int64_t start = 0;
    if ((cursor.end - cursor.next) % 2)
        return -EBADMSG;
    for (; cursor.next < cursor.end; cursor.next += 2) {
        start += cursor.next[0];
        if (start > offset)
            break;
        location->line += (int8_t)cursor.next[1];
    }
    return 0;
}

static int ranges_find(struct table_cursor cursor, int64_t offset, struct location *location)
{
    int64_t end = 0;
    if ((cursor.end - cursor.next) % 2)
        return -EBADMSG;
    for (; cursor.next < cursor.end; cursor.next += 2) {
        int8_t step = (int8_t)cursor.next[1];
        end += cursor.next[0];
        if (step != NO_LINE_STEP)
            location->line += step;
        if (end > offset)
            return 0;
    }
    return -ENOENT;
}

/* Six bits a byte, lowest first, bit 6: more follow; bit 7 would begin the next entry. */
static int varint_read(struct table_cursor *cursor, uint32_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 36; shift += 6) {
        if (cursor->next == cursor->end || *cursor->next & 0x80)
            return -EBADMSG;
        uint8_t byte = *cursor->next++;
        value |= (uint64_t)(byte & 0x3f) << shift;
        if (byte & 0x40)
            continue;
        if (value > UINT32_MAX)
            return -EBADMSG;
        *ret = (uint32_t)value;
        return 0;
    }
    return -EBADMSG;
}

/* The sign is bit 0. */
static int line_step(struct table_cursor *cursor, struct location *location)
{
    uint32_t value;
    int error = varint_read(cursor, &value);
    if (error)
        return error;
    int64_t size = value >> 1;
    location->line += value & 1 ? -size : size;
    return 0;
}

static int location_read_long(struct table_cursor *cursor, struct location *location)
{
    uint32_t lines, column, end_column;
    int error = line_step(cursor, location);
    if (!error)
        error = varint_read(cursor, &lines);
    if (!error)
        error = varint_read(cursor, &column);
    if (!error)
        error = varint_read(cursor, &end_column);
    if (error)
        return error;
    location->end_line = location->line + lines;
    location->column = column; /* stored plus one, 0 for none: as we count */
    location->end_column = end_column;
    return 0;
}

static int location_read_short(struct table_cursor *cursor, unsigned code,
                               struct location *location)
{
    if (cursor->next == cursor->end)
        return -EBADMSG;
    uint8_t byte = *cursor->next++;
    location->end_line = location->line;
    location->column = (int64_t)code * 8 + (byte >> 4) + 1;
    location->end_column = location->column + (byte & 15);
    return byte & 0x80 ? -EBADMSG : 0;
}

static int location_read_one_line(struct table_cursor *cursor, unsigned code,
                                  struct location *location)
{
    if (cursor->end - cursor->next < 2)
        return -EBADMSG;
    location->line += code - LOCATION_ONE_LINE;
    location->end_line = location->line;
    if ((cursor->next[0] | cursor->next[1]) & 0x80)
        return -EBADMSG;
    location->column = *cursor->next++ + 1;
    location->end_column = *cursor->next++ + 1;
    return 0;
}

static int location_read_bare(struct table_cursor *cursor, bool has_line, struct location *location)
{
    int error = has_line ? line_step(cursor, location) : 0;
    location->end_line = location->line;
    location->column = 0;
    location->end_column = 0;
    return error;
}

/* One entry: a first byte 1cccc nnn (code, code units less one), then what the code asks for. */
static int location_read(struct table_cursor *cursor, struct location *location,
                         unsigned *ret_bytes)
{
    uint8_t first = *cursor->next++;
    unsigned code = first >> 3 & 15;
    if (!(first & 0x80))
        return -EBADMSG;
    *ret_bytes = ((first & 7u) + 1) * CODE_UNIT;
    if (code < LOCATION_ONE_LINE)
        return location_read_short(cursor, code, location);
    if (code < LOCATION_NO_COLUMNS)
        return location_read_one_line(cursor, code, location);
    if (code == LOCATION_LONG)
        return location_read_long(cursor, location);
    return location_read_bare(cursor, code == LOCATION_NO_COLUMNS, location);
}

static int locations_find(struct table_cursor cursor, int64_t offset, struct location *location)
{
    int64_t end = 0;
    while (cursor.next < cursor.end) {
        unsigned bytes = 0;
        int error = location_read(&cursor, location, &bytes);
        if (error)
            return error;
        end += bytes;
        if (end > offset)
            return 0;
    }
    return -ENOENT;
}

int lines_find(enum line_table_shape shape, const uint8_t *table, size_t size, int first_line,
               int64_t byte_offset, struct code_position *ret)
{
    struct table_cursor cursor = { table, table + size };
    struct location at = { .line = first_line };
    int error = 0;
    if (byte_offset >= 0) {
        switch (shape) {
        case LINES_LNOTAB:
            error = lnotab_find(cursor, byte_offset, &at);
            break;
        case LINES_RANGES:
            error = ranges_find(cursor, byte_offset, &at);
            break;
        case LINES_LOCATIONS:
            error = locations_find(cursor, byte_offset, &at);
            break;
        }
    }
    if (error)
        return error;
    if (at.end_line == 0)
        at.end_line = at.line;
    if (at.line < 0 || at.line > INT_MAX || at.end_line < 0 || at.end_line > INT_MAX ||
        at.column > INT_MAX || at.end_column > INT_MAX)
        return -EBADMSG;
    *ret = (struct code_position){ (int)at.line, (int)at.column, (int)at.end_line,
                                   (int)at.end_column };
    return 0;
}
