#include "output/json/json_writer.h"

#include "sampler/base/utf8.h"

#include <math.h>
#include <string.h>

static void bytes_flush(struct json_writer *json)
{
    fwrite(json->bytes, 1, json->used, json->into);
    json->used = 0;
}

static void put_bytes(struct json_writer *json, const char *bytes, size_t size)
{
    if (size > sizeof json->bytes - json->used)
        bytes_flush(json);
    if (size > sizeof json->bytes) {
        fwrite(bytes, 1, size, json->into);
        return;
    }
    memcpy(json->bytes + json->used, bytes, size);
    json->used += size;
}

static void put_byte(struct json_writer *json, char byte)
{
    put_bytes(json, &byte, 1);
}

static void put_text(struct json_writer *json, const char *text)
{
    put_bytes(json, text, strlen(text));
}

static void put_line_end(struct json_writer *json)
{
    put_byte(json, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        put_bytes(json, "    ", 4);
}

/* What stands before a value or a key: its comma and its line. */
static void item_begin(struct json_writer *json)
{
    if (json->has_key) {
        json->has_key = false;
        return;
    }
    if (json->has_items)
        put_byte(json, ',');
    if (json->depth > 0 && !(json->flat && json->depth >= json->flat))
        put_line_end(json);
    else if (json->has_items)
        put_byte(json, ' ');
    json->has_items = true;
}

void json_begin(struct json_writer *json, char bracket)
{
    item_begin(json);
    put_byte(json, bracket);
    json->depth++;
    json->has_items = false;
}

void json_end(struct json_writer *json, char bracket)
{
    json->depth--;
    if (json->has_items && !(json->flat && json->depth + 1 >= json->flat))
        put_line_end(json);
    put_byte(json, bracket);
    json->has_items = true;
    if (json->depth > 0)
        return;
    put_byte(json, '\n');
    bytes_flush(json);
}

/* What stands for itself: nearly all there is. */
static size_t plain_length(const char *text)
{
    size_t length = 0;
    while (text[length] >= ' ' && text[length] != '"' && text[length] != '\\' &&
           text[length] != 0x7F)
        length++;
    return length;
}

/* Control characters, and bytes that are no UTF-8, may stand in the names of a target. */
static size_t put_character(struct json_writer *json, const char *text)
{
    uint32_t character;
    size_t size = utf8_decode(text, &character);
    char escape[8] = { '\\', *text };
    if (size == 0)
        put_text(json, UTF8_REPLACEMENT);
    else if (character == '"' || character == '\\')
        put_bytes(json, escape, 2);
    else if (character == '\n')
        put_text(json, "\\n");
    else if (character < 0x20 || character == 0x7F) {
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)character);
        put_text(json, escape);
    } else
        put_bytes(json, text, size);
    return size ? size : 1;
}

static void put_quoted(struct json_writer *json, const char *text)
{
    put_byte(json, '"');
    while (*text) {
        size_t length = plain_length(text);
        put_bytes(json, text, length);
        text += length;
        if (*text)
            text += put_character(json, text);
    }
    put_byte(json, '"');
}

void json_key(struct json_writer *json, const char *key)
{
    item_begin(json);
    put_quoted(json, key);
    put_bytes(json, ": ", 2);
    json->has_key = true;
}

void json_text(struct json_writer *json, const char *text)
{
    if (!text) {
        json_word(json, "null");
        return;
    }
    item_begin(json);
    put_quoted(json, text);
}

/* Digits of a number, at least as many as wanted, before `end`. Where they begin. */
static char *digits_put(char *end, uint64_t number, int wanted)
{
    for (; number || wanted > 0; number /= 10, wanted--)
        *--end = (char)('0' + number % 10);
    return end;
}

void json_integer(struct json_writer *json, int64_t number)
{
    char text[32], *end = text + sizeof text;
    uint64_t positive = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *begin = digits_put(end, positive, 1);
    if (number < 0)
        *--begin = '-';
    item_begin(json);
    put_bytes(json, begin, (size_t)(end - begin));
}

/* As "%.6f" writes it, where it is sure how that rounds: not near the middle of two. Its length, or
 * 0. */
static size_t fixed_put(double number, char *into)
{
    char text[32], *end = text + sizeof text;
    double scaled = fabs(number) * 1e6, whole = floor(scaled);
    if (!(scaled < 1e12) || fabs(scaled - whole - 0.5) < 1e-3)
        return 0;
    uint64_t millionths = (uint64_t)whole + (scaled - whole > 0.5);
    char *begin = digits_put(end, millionths % 1000000, 6);
    *--begin = '.';
    begin = digits_put(begin, millionths / 1000000, 1);
    if (number < 0)
        *--begin = '-';
    memcpy(into, begin, (size_t)(end - begin));
    return (size_t)(end - begin);
}

/* The shortest of at most six digits behind the point, and at least one. */
void json_float(struct json_writer *json, double number)
{
    char text[400];
    item_begin(json);
    if (number == 0) { /* as most are */
        put_bytes(json, "0.0", 3);
        return;
    }
    size_t length = fixed_put(number, text);
    if (!length)
        length = (size_t)snprintf(text, sizeof text, "%.6f", isfinite(number) ? number : 0.0);
    while (text[length - 1] == '0' && text[length - 2] != '.')
        length--;
    put_bytes(json, text, length);
}

void json_word(struct json_writer *json, const char *word)
{
    item_begin(json);
    put_text(json, word);
}
