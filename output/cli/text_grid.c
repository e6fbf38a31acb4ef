#include "output/cli/text_grid.h"

#include "output/cli/screen_text.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, GAP = 2, TEXT_LEAST = 10, SHOWN_SIZE = 8 * GRID_TEXT };

char (*grid_row(struct grid *grid))[GRID_TEXT]
{
    size_t wanted = grid->count + grid->column_count;
    if (wanted > grid->room) {
        size_t room = 2 * wanted;
        void *grown = realloc(grid->cells, room * sizeof *grid->cells);
        if (!grown)
            return NULL;
        grid->cells = grown;
        grid->room = room;
    }
    char(*row)[GRID_TEXT] = grid->cells + grid->count;
    memset(row, 0, grid->column_count * sizeof *row);
    grid->count = wanted;
    return row;
}

void grid_done(struct grid *grid)
{
    free(grid->cells);
}

/* 0: nothing in it. */
static size_t column_width(const struct grid *grid, size_t column)
{
    char shown[SHOWN_SIZE];
    size_t widest = 0;
    for (size_t i = column; i < grid->count; i += grid->column_count) {
        size_t width = screen_text(grid->cells[i], shown, sizeof shown);
        widest = width > widest ? width : widest;
    }
    size_t title = screen_text(grid->columns[column].title, shown, sizeof shown);
    return widest && title > widest ? title : widest;
}

/* What a column makes do with. */
static size_t width_least(const struct grid_column *column, size_t width)
{
    size_t least = column->least ? column->least : TEXT_LEAST;
    return column->right || width < least ? width : least;
}

/* More than there is room for, were all texts as short as can be; or, of the widths as they are. */
static size_t excess(const struct grid *grid, const size_t *widths, size_t room, bool shortest)
{
    size_t used = 0;
    for (size_t i = 0; i < grid->column_count; i++)
        if (widths[i])
            used += GAP + (shortest ? width_least(&grid->columns[i], widths[i]) : widths[i]);
    return used > room + GAP ? used - room - GAP : 0;
}

/* Who goes next; as many as there are columns: nobody. */
static size_t drop_find(const struct grid *grid, const size_t *widths)
{
    size_t found = grid->column_count;
    for (size_t i = 0; i < grid->column_count; i++) {
        const struct grid_column *column = &grid->columns[i];
        if (widths[i] && (column->right || column->drop) &&
            (found == grid->column_count || column->drop >= grid->columns[found].drop))
            found = i;
    }
    return found;
}

/* From the last one on, texts give up what is too much; the first ones stay whole longest. */
static void texts_shrink(const struct grid *grid, size_t *widths, size_t room, bool to_least)
{
    for (size_t i = grid->column_count; i-- > 0;) {
        size_t over = excess(grid, widths, room, false);
        size_t least = to_least ? width_least(&grid->columns[i], widths[i]) : 1;
        if (!widths[i] || grid->columns[i].right || widths[i] <= least)
            continue;
        widths[i] -= over < widths[i] - least ? over : widths[i] - least;
    }
}

static void widths_fit(const struct grid *grid, size_t *widths, size_t room)
{
    while (excess(grid, widths, room, true)) {
        size_t next = drop_find(grid, widths);
        if (next == grid->column_count)
            break;
        widths[next] = 0;
    }
    texts_shrink(grid, widths, room, true);
    texts_shrink(grid, widths, room, false);
}

static void cell_write(FILE *out, bool coloured, const struct grid_column *column, enum style style,
                       const char *text, size_t width, size_t *blanks)
{
    char shown[SHOWN_SIZE];
    size_t rest = width - screen_text_fit(text, width, shown, sizeof shown);
    *blanks += column->right ? rest : 0;
    if (*shown) {
        fprintf(out, "%*s", (int)*blanks, "");
        *blanks = 0;
        if (style < STYLE_COUNT)
            style_print(out, coloured, style, shown);
        else
            fputs(shown, out);
    }
    *blanks += GAP + (column->right ? 0 : rest);
}

/* Row 0 is the titles. */
static void row_write(FILE *out, const struct grid *grid, const size_t *widths, bool coloured,
                      size_t row)
{
    size_t blanks = INDENT;
    for (size_t i = 0; i < grid->column_count; i++) {
        const struct grid_column *column = &grid->columns[i];
        if (!widths[i])
            continue;
        const char *text = row ? grid->cells[(row - 1) * grid->column_count + i] : column->title;
        cell_write(out, coloured, column, row ? column->style : STYLE_PLACE, text, widths[i],
                   &blanks);
    }
    fputc('\n', out);
}

void grid_write(FILE *out, const struct grid *grid, size_t width, bool coloured)
{
    size_t widths[GRID_COLUMNS];
    for (size_t i = 0; i < grid->column_count; i++)
        widths[i] = column_width(grid, i);
    widths_fit(grid, widths, width - INDENT);
    for (size_t row = 0; row <= grid->count / grid->column_count; row++)
        row_write(out, grid, widths, coloured, row);
}
