/* A small table of texts for a terminal: each column as wide as its widest text. Where there is no
 * room for that, whole columns go before texts are cut to what says nothing, and columns with
 * nothing in them are left out anyway. */
#pragma once

#include "output/cli/style.h"

#include <stddef.h>

enum { GRID_COLUMNS = 10, GRID_TEXT = 512 };

struct grid_column {
    const char *title;
    enum style style;
    bool right; /* a number: flush right, and never cut, for half of one says something wrong */
    unsigned
        drop; /* the larger, the sooner it goes; 0: a text that stays, a number that goes last */
    unsigned least; /* of a text: columns that leave enough of it; 0: ten */
};

struct grid {
    const struct grid_column *columns;
    size_t column_count;
    char (*cells)[GRID_TEXT]; /* row by row */
    size_t count, room;       /* cells */
};

/* The next row's cells, empty, to be filled in; NULL when out of memory. */
char (*grid_row(struct grid *grid))[GRID_TEXT];

void grid_write(FILE *out, const struct grid *grid, size_t width, bool coloured);
void grid_done(struct grid *grid);
