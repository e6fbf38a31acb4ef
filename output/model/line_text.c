#include "output/model/line_text.h"

#include <string.h>

enum { LETTERS_MIN = 4 }; /* a shorter line is everywhere */

size_t line_text_length(const char *text)
{
    size_t length = strlen(text);
    while (length && strchr(" \t\r\n\f", text[length - 1]))
        length--;
    return length;
}

struct key line_text_key_add(struct key key, const char *text, size_t length)
{
    key.part[0] ^= 0xCBF29CE484222325u;
    key.part[1] ^= 0x9E3779B97F4A7C15u;
    key.part[2] += length;
    for (size_t i = 0; i < length; i++) {
        key.part[0] = (key.part[0] ^ (unsigned char)text[i]) * 0x100000001B3u;
        key.part[1] = (key.part[1] + (unsigned char)text[i]) * 0xBF58476D1CE4E5B9u;
        key.part[1] ^= key.part[1] >> 29;
    }
    return key;
}

struct key line_text_key(const char *text)
{
    return line_text_key_add((struct key){ { 0 } }, text, line_text_length(text));
}

bool line_is_telling(const char *text)
{
    size_t letters = 0;
    for (; *text && letters < LETTERS_MIN; text++)
        letters += !strchr(" \t\r\n\f()[]{}:,", *text);
    return letters == LETTERS_MIN;
}

bool line_is_equal(const char *a, const char *b)
{
    size_t length = line_text_length(a);
    return line_text_length(b) == length && strncmp(a, b, length) == 0;
}

bool line_is_indented(const char *a, const char *b)
{
    a += strspn(a, " \t");
    b += strspn(b, " \t");
    return line_is_equal(a, b) && line_is_telling(a);
}

bool line_is_similar(const char *a, const char *b)
{
    a += strspn(a, " \t");
    b += strspn(b, " \t");
    size_t a_length = line_text_length(a), b_length = line_text_length(b), front = 0, back = 0;
    size_t shorter = a_length < b_length ? a_length : b_length;
    while (front < shorter && a[front] == b[front])
        front++;
    while (back < shorter - front && a[a_length - 1 - back] == b[b_length - 1 - back])
        back++;
    return shorter > 0 && 4 * (front + back) >= a_length + b_length;
}
