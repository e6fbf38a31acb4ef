#define _GNU_SOURCE 1 /* memrchr */
#include "output/cli/screen_text.h"

#include "sampler/base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Unicode's C0, C1, and the marks that turn the direction of what follows. */
static bool is_control(uint32_t value)
{
    return value < 0x20 || (value >= 0x7F && value < 0xA0) || value == 0x61C ||
           (value >= 0x200E && value <= 0x200F) || (value >= 0x2028 && value <= 0x202E) ||
           (value >= 0x2066 && value <= 0x2069);
}

/* The C library's wcwidth depends on the locale; Unicode's own tables do not. */
static const struct width_range {
    uint32_t first, last;
    size_t columns;
} widths[] = {
#define WIDTH(columns, first, last) { first, last, columns },
#include "output/cli/character_widths.def"
#undef WIDTH
};

static size_t character_width(uint32_t value)
{
    size_t low = 0, high = sizeof widths / sizeof *widths;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value > widths[middle].last)
            low = middle + 1;
        else if (value < widths[middle].first)
            high = middle;
        else
            return widths[middle].columns;
    }
    return 1;
}

/* A character as it is shown, which may be another text and has no NUL at its end, and how many
 * bytes it came from. */
struct shown {
    char text[16];
    size_t length, bytes, columns;
    size_t last; /* columns of the last one that takes any; 0 at the begin */
};

/* Variation selector 16: behind a character of one column it asks for a picture, which many
 * terminals draw in two. */
#define AS_PICTURE 0xFE0F

static size_t width_behind(size_t last, uint32_t value)
{
    return value == AS_PICTURE ? last == 1 : character_width(value);
}

static void character_show(const char *text, struct shown *ret)
{
    uint32_t value = 0;
    if (*text >= ' ' && *text < 0x7F) { /* nearly all */
        ret->text[0] = *text;
        ret->length = ret->bytes = ret->columns = ret->last = 1;
        return;
    }
    ret->bytes = utf8_decode(text, &value);
    if (ret->bytes == 0) {
        ret->length = strlen(UTF8_REPLACEMENT);
        memcpy(ret->text, UTF8_REPLACEMENT, ret->length);
        ret->bytes = ret->columns = ret->last = 1;
    } else if (is_control(value)) {
        ret->length = ret->columns = (size_t)snprintf(ret->text, sizeof ret->text,
                                                      value < 0x100 ? "\\x%02x" : "\\u%04x", value);
        ret->last = 1;
    } else {
        ret->length = ret->bytes;
        memcpy(ret->text, text, ret->bytes);
        ret->columns = width_behind(ret->last, value);
        if (ret->columns)
            ret->last = value == AS_PICTURE ? 2 : ret->columns;
    }
}

size_t screen_text(const char *text, char *into, size_t size)
{
    size_t used = 0, columns = 0;
    struct shown shown = { .last = 0 };
    for (; *text; text += shown.bytes) {
        character_show(text, &shown);
        if (used + shown.length + 1 > size)
            break;
        memcpy(into + used, shown.text, shown.length);
        used += shown.length;
        columns += shown.columns;
    }
    into[used] = '\0';
    return columns;
}

static void tab_show(size_t column, struct shown *ret)
{
    enum { TAB = 8 };
    ret->bytes = ret->last = 1;
    ret->length = ret->columns = TAB - column % TAB;
    memset(ret->text, ' ', ret->length);
}

static const char ellipsis[] = "\xE2\x80\xA6";

/* The bytes of what was just written came from here. */
static void origins_fill(uint32_t *origins, size_t from, size_t count, size_t origin)
{
    for (size_t i = 0; origins && i < count; i++)
        origins[from + i] = (uint32_t)origin;
}

size_t screen_text_map(const char *text, size_t limit, char *into, size_t size, uint32_t *origins)
{
    const char *begin = text;
    size_t used = 0, columns = 0;
    size_t kept = 0, kept_columns = 0; /* what leaves room for the ellipsis */
    struct shown shown = { .last = 0 };
    for (; *text; text += shown.bytes) {
        if (columns < limit) {
            kept = used;
            kept_columns = columns;
        }
        if (*text == '\t')
            tab_show(columns, &shown);
        else
            character_show(text, &shown);
        if (columns + shown.columns > limit || used + shown.length + sizeof ellipsis > size) {
            strcpy(into + kept, limit ? ellipsis : "");
            origins_fill(origins, kept, sizeof ellipsis - 1, SCREEN_NOWHERE);
            return limit ? kept_columns + 1 : 0;
        }
        memcpy(into + used, shown.text, shown.length);
        origins_fill(origins, used, shown.length, (size_t)(text - begin));
        used += shown.length;
        columns += shown.columns;
    }
    into[used] = '\0';
    return columns;
}

size_t screen_text_fit(const char *text, size_t limit, char *into, size_t size)
{
    return screen_text_map(text, limit, into, size, NULL);
}

/* From the last folder on, as many as there is room for. */
size_t screen_path_fit(const char *path, size_t limit, char *into, size_t size)
{
    size_t columns = screen_text_fit(path, SIZE_MAX, into, size);
    if (columns <= limit)
        return columns;
    const char *best = NULL, *slash = strrchr(path, '/');
    while (slash && slash > path && screen_text_fit(slash, SIZE_MAX, into, size) < limit) {
        best = slash;
        slash = memrchr(path, '/', (size_t)(slash - path));
    }
    if (!best)
        return screen_text_fit(slash ? slash + 1 : path, limit, into, size);
    strcpy(into, ellipsis);
    return 1 + screen_text_fit(best, limit - 1, into + strlen(ellipsis), size - strlen(ellipsis));
}
