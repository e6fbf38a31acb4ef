#define _XOPEN_SOURCE 700
#include "output/cli/screen_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One UTF-8 character: its bytes, or 0 when it is none. */
static size_t character_decode(const unsigned char *text, uint32_t *ret)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = *text < 0x80 ? 1 : *text < 0xC2 ? 0 : *text < 0xE0 ? 2 : *text < 0xF0 ? 3 : 4;
    if (size == 0 || *text > 0xF4)
        return 0;
    uint32_t value = size == 1 ? *text : *text & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3F);
    }
    *ret = value;
    return value >= least[size] && value <= 0x10FFFF && value >> 11 != 0x1B ? size : 0;
}

/* Unicode's C0, C1, and the marks that turn the direction of what follows. */
static bool is_control(uint32_t value)
{
    return value < 0x20 || (value >= 0x7F && value < 0xA0) || (value >= 0x200E && value <= 0x200F) ||
           (value >= 0x2028 && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069);
}

struct width_range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t value, const struct width_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (value >= ranges[i].first && value <= ranges[i].last)
            return true;
    return false;
}

/* The C library's wcwidth depends on the locale; the few blocks that matter do not. */
static size_t character_width(uint32_t value)
{
    static const struct width_range none[] = {
        { 0x300, 0x36F }, { 0x200B, 0x200D }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F },
    };
    static const struct width_range wide[] = {
        { 0x1100, 0x115F }, { 0x2E80, 0xA4CF }, { 0xAC00, 0xD7A3 },   { 0xF900, 0xFAFF },
        { 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 },   { 0x1F300, 0x1F64F },
        { 0x1F680, 0x1F6FF }, { 0x1F900, 0x1FAFF }, { 0x20000, 0x3FFFD },
    };
    if (in_ranges(value, none, sizeof none / sizeof *none))
        return 0;
    return in_ranges(value, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

size_t screen_text(const char *text, char *into, size_t size)
{
    size_t used = 0, columns = 0;
    while (*text) {
        uint32_t value = 0;
        char shown[16];
        size_t bytes = character_decode((const unsigned char *)text, &value), width = 1;
        if (bytes == 0) {
            strcpy(shown, "\xEF\xBF\xBD");
        } else if (is_control(value)) {
            width = (size_t)snprintf(shown, sizeof shown, value < 0x100 ? "\\x%02x" : "\\u%04x", value);
        } else {
            memcpy(shown, text, bytes);
            shown[bytes] = '\0';
            width = character_width(value);
        }
        if (used + strlen(shown) + 1 > size)
            break;
        strcpy(into + used, shown);
        used += strlen(shown);
        columns += width;
        text += bytes ? bytes : 1;
    }
    into[used] = '\0';
    return columns;
}
