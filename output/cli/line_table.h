/*
 * Rows of lines and functions for a terminal: the columns of columns.def that have something to say
 * and find room, in display order, then the code. Nothing wraps.
 */
#pragma once

#include "output/cli/profile_table.h"
#include "output/cli/style.h"
#include "output/model/columns.h"
#include "output/model/source_colours.h"

enum {
#define COLUMN(...) +1
    LINE_TABLE_COLUMNS =
#include "output/model/columns.def"
#undef COLUMN
};

struct line_cell {
    size_t width; /* 0: not shown */
    enum style style;
};

struct line_table {
    FILE *out;
    const struct report *report;
    struct table_settings settings;
    struct line_cell cells[LINE_TABLE_COLUMNS]; /* as columns[] */
    /* For a file's name and the line's number, and of that for a colon and the longest number; 0:
     * the number has a column. */
    size_t place_columns, place_digits;
    size_t code_columns;
    size_t blanks; /* owed before the next text, so that no line ends with them */
};

/* Files and lists that the columns must do for. */
struct line_sample {
    struct line_stats *items;
    size_t count;
};

/* What places there are; all zero: rows name no file. */
struct line_places {
    size_t path_columns, digits; /* of the widest */
};

void line_table_lay_out(struct line_table *table, const struct line_sample *samples, size_t count,
                        struct line_places places);

void line_table_heading(struct line_table *table);

/* `file` is named where rows have a place; `colours` may be NULL. */
void line_table_row(struct line_table *table, const struct report_file *file,
                    const struct line_stats *stats, const struct source_colours *colours);

/* What threads waited for there, and what ran below it, where that is much. */
void line_table_details(struct line_table *table, const struct line_stats *stats);

/* Lines that are left out. */
void line_table_dots(struct line_table *table);

/* A row of words alone, behind the line's number; a heading at the margin. */
void line_table_words(struct line_table *table, enum style style, const char *text);
void line_table_title(struct line_table *table, const char *text);

/* Something happened on the line itself … */
bool line_is_active(const struct line_table *table, const struct line_stats *stats);
/* … or below it. */
bool line_has_cost(const struct line_table *table, const struct line_stats *stats);

/* Does any shown column but the line's number say something of it? */
bool line_table_tells(const struct line_table *table, const struct line_stats *stats);
