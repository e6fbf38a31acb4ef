#include "output/json/json_writer.h"

#include "sampler/base/utf8.h"

#include <inttypes.h>
#include <math.h>

/* What stands before a value or a key: its comma and its line. */
static void item_begin(struct json_writer *json)
{
    if (json->has_key) {
        json->has_key = false;
        return;
    }
    if (json->has_items)
        putc(',', json->into);
    if (json->depth > 0 && !(json->flat && json->depth >= json->flat))
        fprintf(json->into, "\n%*s", (int)(4 * json->depth), "");
    else if (json->has_items)
        putc(' ', json->into);
    json->has_items = true;
}

void json_begin(struct json_writer *json, char bracket)
{
    item_begin(json);
    putc(bracket, json->into);
    json->depth++;
    json->has_items = false;
}

void json_end(struct json_writer *json, char bracket)
{
    json->depth--;
    if (json->has_items && !(json->flat && json->depth + 1 >= json->flat))
        fprintf(json->into, "\n%*s", (int)(4 * json->depth), "");
    putc(bracket, json->into);
    json->has_items = true;
    if (json->depth == 0)
        putc('\n', json->into);
}

/* Control characters, and bytes that are no UTF-8, may stand in the names of a target. */
static void put_quoted(struct json_writer *json, const char *text)
{
    uint32_t character;
    putc('"', json->into);
    while (*text) {
        size_t size = utf8_decode(text, &character);
        if (size == 0)
            fputs(UTF8_REPLACEMENT, json->into);
        else if (character == '"' || character == '\\')
            fprintf(json->into, "\\%c", (char)character);
        else if (character == '\n')
            fputs("\\n", json->into);
        else if (character < 0x20 || character == 0x7F)
            fprintf(json->into, "\\u%04x", (unsigned)character);
        else
            fwrite(text, 1, size, json->into);
        text += size ? size : 1;
    }
    putc('"', json->into);
}

void json_key(struct json_writer *json, const char *key)
{
    item_begin(json);
    put_quoted(json, key);
    fputs(": ", json->into);
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

void json_integer(struct json_writer *json, int64_t number)
{
    item_begin(json);
    fprintf(json->into, "%" PRId64, number);
}

/* The shortest of at most six digits behind the point, and at least one. */
void json_float(struct json_writer *json, double number)
{
    char text[400];
    item_begin(json);
    int length = snprintf(text, sizeof text, "%.6f", isfinite(number) ? number : 0.0);
    while (text[length - 1] == '0' && text[length - 2] != '.')
        length--;
    fwrite(text, 1, (size_t)length, json->into);
}

void json_word(struct json_writer *json, const char *word)
{
    item_begin(json);
    fputs(word, json->into);
}
