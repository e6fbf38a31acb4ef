#include "output/cli/code_text.h"

#include "output/cli/screen_text.h"

#include <string.h>

enum { COLUMNS_MAX = 500, TEXT_SIZE = 16 * COLUMNS_MAX };

static const enum style styles[SOURCE_PART_COUNT] = {
    [SOURCE_PLAIN] = STYLE_COUNT,         [SOURCE_KEYWORD] = STYLE_KEYWORD,
    [SOURCE_CONSTANT] = STYLE_CONSTANT,   [SOURCE_STRING] = STYLE_STRING,
    [SOURCE_COMMENT] = STYLE_COMMENT,     [SOURCE_DEFINED] = STYLE_DEFINED,
    [SOURCE_DECORATOR] = STYLE_DECORATOR,
};

static void piece_write(FILE *out, bool coloured, enum style style, const char *text, size_t length)
{
    char piece[TEXT_SIZE];
    memcpy(piece, text, length);
    piece[length] = '\0';
    if (style < STYLE_COUNT)
        style_print(out, coloured, style, piece);
    else
        fputs(piece, out);
}

/* Neighbours of one style in one piece. */
static void parts_write(FILE *out, const char *text, const uint32_t *origins,
                        const struct source_colours *colours, size_t line)
{
    enum style last = STYLE_COUNT;
    size_t begin = 0, at = 0;
    uint32_t span = 0;
    for (; text[at]; at++) {
        enum style style = STYLE_COUNT;
        if (origins[at] != SCREEN_NOWHERE)
            style = styles[source_colours_find(colours, line, origins[at], &span)];
        if (style == last)
            continue;
        piece_write(out, true, last, text + begin, at - begin);
        begin = at;
        last = style;
    }
    piece_write(out, true, last, text + begin, at - begin);
}

size_t code_text_write(FILE *out, const char *code, size_t columns, bool coloured, enum style style,
                       const struct source_colours *colours, size_t line)
{
    char cut[TEXT_SIZE], shown[TEXT_SIZE];
    uint32_t origins[TEXT_SIZE];
    size_t length = strcspn(code, "\n");
    while (length && strchr(" \t\r\f", code[length - 1]))
        length--;
    snprintf(cut, sizeof cut, "%.*s", length < sizeof cut ? (int)length : TEXT_SIZE, code);
    size_t used = screen_text_map(cut, columns, shown, sizeof shown, origins);
    if (coloured && style == STYLE_COUNT && colours)
        parts_write(out, shown, origins, colours, line);
    else
        piece_write(out, coloured, style, shown, strlen(shown));
    return used;
}
