/* Colours of everything we print on a terminal: one palette, one decision whether to use it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum style {
    STYLE_HEADING,
    STYLE_PROGRAM,
    STYLE_LONG_OPTION,
    STYLE_SHORT_OPTION,
    STYLE_METAVAR,
    STYLE_FUNCTION,
    STYLE_NATIVE,
    STYLE_PLACE,
    STYLE_BUSY,
    STYLE_WAITING,
    STYLE_ERROR,
    STYLE_TIME,
    STYLE_MEMORY,
    STYLE_TASKS,
    STYLE_GPU,
    STYLE_KEYWORD,
    STYLE_CONSTANT,
    STYLE_STRING,
    STYLE_COMMENT,
    STYLE_DEFINED,
    STYLE_DECORATOR,
    STYLE_COUNT
};

/* On a terminal, unless NO_COLOR says no; in a pipe only when CLICOLOR_FORCE says yes. */
bool style_wanted(FILE *out);

/* Prints the text, coloured or not. */
void style_print(FILE *out, bool coloured, enum style style, const char *text);
