#include "sampler/base/utf8.h"

#include <stdlib.h>
#include <string.h>

size_t utf8_decode(const char *text, uint32_t *ret_character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)*text;
    size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (size == 0 || first > 0xF4)
        return 0;
    uint32_t value = size == 1 ? first : first & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | ((unsigned char)text[i] & 0x3F);
    }
    bool is_surrogate = value >> 11 == 0x1B;
    if (value < least[size] || value > 0x10FFFF || is_surrogate)
        return 0;
    *ret_character = value;
    return size;
}

bool utf8_is_valid(const char *text)
{
    uint32_t character;
    while (*text) {
        size_t size = utf8_decode(text, &character);
        if (!size)
            return false;
        text += size;
    }
    return true;
}

char *utf8_repair(const char *text)
{
    uint32_t character;
    char *repaired = malloc(strlen(text) * strlen(UTF8_REPLACEMENT) + 1);
    char *to = repaired;
    while (repaired && *text) {
        size_t size = utf8_decode(text, &character);
        const char *from = size ? text : UTF8_REPLACEMENT;
        size_t written = size ? size : strlen(UTF8_REPLACEMENT);
        memcpy(to, from, written);
        to += written;
        text += size ? size : 1;
    }
    if (repaired)
        *to = '\0';
    return repaired;
}
