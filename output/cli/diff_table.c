#include "output/cli/diff_table.h"

#include "output/cli/screen_text.h"
#include "output/cli/style.h"
#include "output/model/format.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    WIDTH_MIN = 40,
    WIDTH_MAX = 500,
    TEXT_SIZE = 16 * WIDTH_MAX,
    REST_MIN = 36, /* columns of what a row is of */
    MARK_COLUMNS = 2,
};

enum cell { CELL_OLD, CELL_NEW, CELL_CHANGE, CELL_PERCENT, CELL_MARGIN, CELLS };

/* In display order; where there is not room for all, those of the lowest rank stay. */
static const struct cell_row {
    const char *title;
    size_t width;
    int rank;
} cells[CELLS] = {
    [CELL_OLD] = { "old", 8, 3 },       [CELL_NEW] = { "new", 8, 2 },
    [CELL_CHANGE] = { "change", 9, 0 }, [CELL_PERCENT] = { "", 8, 1 },
    [CELL_MARGIN] = { "margin", 8, 4 },
};

/* What stands before the place of a row. */
static const char marks[COMPARED_STATES] = {
    [COMPARED_SAME] = ' ',  [COMPARED_MOVED] = '>',   [COMPARED_EDITED] = '*',
    [COMPARED_ADDED] = '+', [COMPARED_REMOVED] = '-',
};

struct table {
    FILE *out;
    const struct comparison *comparison;
    struct diff_settings settings;
    bool is_shown[CELLS];
    size_t rest, place_columns;
    bool has_marks[COMPARED_STATES], has_margins; /* what the words below have to explain */
    bool is_empty;
};

static void table_lay_out(struct table *table)
{
    table->rest = table->settings.width - MARK_COLUMNS;
    for (int rank = 0; rank < CELLS; rank++)
        for (int i = 0; i < CELLS; i++)
            if (cells[i].rank == rank && (rank == 0 || table->rest >= cells[i].width + REST_MIN)) {
                table->is_shown[i] = true;
                table->rest -= cells[i].width + 1;
            }
}

/* ---- numbers ---- */

static const char *value_text(enum value_kind kind, double value, char *text, size_t size)
{
    if (isnan(value))
        return "?";
    if (format_value(kind, &value, text, size) == 0)
        snprintf(text, size, "0");
    return text;
}

/* The sign stands before the number that a view has anyway. */
static void signed_text(enum value_kind kind, double value, const char *positive, char *text,
                        size_t size)
{
    double absolute = fabs(value);
    snprintf(text, size, "%s", value < 0 ? "-" : positive);
    size_t used = strlen(text);
    if (format_value(kind, &absolute, text + used, size - used) == 0)
        snprintf(text, size, "0");
}

static void percent_text(const struct change *change, char *text, size_t size)
{
    double percent = change_percent(change);
    if (isnan(percent) || percent == 0)
        snprintf(text, size, "%s", "");
    else if (isinf(percent))
        snprintf(text, size, "new");
    else if (percent < 99999.5)
        snprintf(text, size, percent < 999.95 ? "%+.1f%%" : "%+.0f%%", percent);
    else
        snprintf(text, size, ">99999%%");
}

static void cell_text(enum cell cell, enum value_kind kind, const struct change *change, char *text,
                      size_t size)
{
    *text = '\0';
    if (cell == CELL_OLD)
        snprintf(text, size, "%s", value_text(kind, change->old_value, (char[32]){ "" }, 32));
    else if (cell == CELL_NEW)
        snprintf(text, size, "%s", value_text(kind, change->new_value, (char[32]){ "" }, 32));
    else if (isnan(change_difference(change)))
        snprintf(text, size, "%s", cell == CELL_CHANGE ? "?" : "");
    else if (cell == CELL_CHANGE)
        signed_text(kind, change_difference(change), "+", text, size);
    else if (cell == CELL_PERCENT)
        percent_text(change, text, size);
    else if (change->error > 0)
        signed_text(kind, change->error, "\xC2\xB1", text, size);
}

static enum style change_style(const struct change *change)
{
    if (!change_is_significant(change))
        return STYLE_PLACE;
    return change_difference(change) > 0 ? STYLE_BUSY : STYLE_WAITING;
}

static bool is_within(const struct change *change)
{
    return fabs(change_difference(change)) > 0 && !change_is_significant(change);
}

static void blanks_write(struct table *table, size_t count)
{
    fprintf(table->out, "%*s", (int)count, "");
}

static void changes_write(struct table *table, enum value_kind kind, const struct change *change)
{
    char text[64], shown[64];
    for (int i = 0; i < CELLS; i++) {
        if (!table->is_shown[i])
            continue;
        cell_text((enum cell)i, kind, change, text, sizeof text);
        size_t columns = screen_text_fit(text, cells[i].width, shown, sizeof shown);
        blanks_write(table, cells[i].width - columns);
        bool is_change = i == CELL_CHANGE || i == CELL_PERCENT;
        style_print(table->out, table->settings.coloured && is_change, change_style(change), shown);
        fputc(' ', table->out);
    }
    table->has_margins |= is_within(change);
    fputc(is_within(change) ? '~' : ' ', table->out);
}

static void heading_write(struct table *table, const char *title)
{
    char shown[TEXT_SIZE];
    fputc('\n', table->out);
    for (int i = 0; i < CELLS; i++) {
        if (!table->is_shown[i])
            continue;
        blanks_write(table, cells[i].width - strlen(cells[i].title));
        style_print(table->out, table->settings.coloured, STYLE_PLACE, cells[i].title);
        fputc(' ', table->out);
    }
    screen_text_fit(title, table->rest, shown, sizeof shown);
    fputs("  ", table->out);
    style_print(table->out, table->settings.coloured, STYLE_HEADING, shown);
    fputc('\n', table->out);
}

/* ---- what a row is of ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *path_of(const struct compared *compared)
{
    return compared->file ? compared->file : compared->old_file;
}

static void place_text(const struct compared *compared, char *text, size_t size)
{
    const char *path = base_name(path_of(compared));
    int64_t line = compared->lineno ? compared->lineno : compared->old_lineno;
    snprintf(text, size, "%s:%lld", path, (long long)line);
}

static void file_row_end(struct table *table, const struct compared *compared)
{
    char shown[TEXT_SIZE];
    size_t columns =
        screen_path_fit(path_of(compared), table->rest - MARK_COLUMNS, shown, sizeof shown);
    fputs(shown, table->out);
    if (compared->state == COMPARED_MOVED && columns + 12 < table->rest - MARK_COLUMNS) {
        screen_path_fit(compared->old_file, table->rest - MARK_COLUMNS - columns - 6, shown,
                        sizeof shown);
        fprintf(table->out, ", was %s", shown);
    }
}

/* Without its line's end and the space around it. */
static void code_text(const char *code, char *text, size_t size)
{
    code += strspn(code, " \t\f");
    size_t length = strcspn(code, "\r\n");
    while (length && strchr(" \t\f", code[length - 1]))
        length--;
    snprintf(text, size, "%.*s", length < size ? (int)length : (int)size - 1, code);
}

static void name_text(const struct compared *compared, char *text, size_t size)
{
    bool is_renamed = compared->old_name && strcmp(compared->old_name, compared->name) != 0;
    snprintf(text, size, "%s%s%s", compared->name, is_renamed ? ", was " : "",
             is_renamed ? compared->old_name : "");
}

/* The place, then the line's text or the function's name, each cut to what there is. */
static void line_row_end(struct table *table, const struct compared *compared)
{
    char text[TEXT_SIZE], shown[TEXT_SIZE];
    size_t room = table->rest - MARK_COLUMNS;
    place_text(compared, text, sizeof text);
    size_t columns = screen_text_fit(text, table->place_columns, shown, sizeof shown);
    fputs(shown, table->out);
    if (compared->name)
        name_text(compared, text, sizeof text);
    else
        code_text(compared->text, text, sizeof text);
    screen_text_fit(text, room - table->place_columns - 2, shown, sizeof shown);
    if (*shown)
        fprintf(table->out, "%*s%s", (int)(table->place_columns - columns + 2), "", shown);
}

static void row_write(struct table *table, const struct compared *compared, enum metric metric)
{
    changes_write(table, metric_rows[metric].kind, &compared->changes[metric]);
    fprintf(table->out, "%c ", marks[compared->state]);
    table->has_marks[compared->state] = true;
    if (compared->name || compared->text)
        line_row_end(table, compared);
    else
        file_row_end(table, compared);
    fputc('\n', table->out);
}

/* ---- sections ---- */

struct ranked {
    const struct compared *compared;
    double size;
    size_t place;
};

static int ranked_is_later(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? 1 : -1;
    return (left->place > right->place) - (left->place < right->place);
}

/* Places of the rows stand in a column, which leaves the texts half of the room. */
static void places_lay_out(struct table *table, const struct ranked *ranked, size_t count)
{
    size_t most = (table->rest - MARK_COLUMNS) / 2;
    table->place_columns = 0;
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_SIZE], shown[TEXT_SIZE];
        place_text(ranked[i].compared, text, sizeof text);
        size_t columns = screen_text_fit(text, most, shown, sizeof shown);
        if (columns > table->place_columns)
            table->place_columns = columns;
    }
}

/* What changed in that metric, most first. */
static int section_write(struct table *table, const char *title, const struct compared_list *list,
                         enum metric metric)
{
    AUTO_FREE struct ranked *ranked = calloc(list->count + 1, sizeof *ranked);
    size_t count = 0;
    if (!ranked)
        return -ENOMEM;
    for (size_t i = 0; i < list->count; i++) {
        double size = fabs(change_difference(&list->items[i].changes[metric]));
        if (size > 0)
            ranked[count++] = (struct ranked){ &list->items[i], size, i };
    }
    if (!count)
        return 0;
    qsort(ranked, count, sizeof *ranked, ranked_is_later);
    table->is_empty = false;
    size_t top = table->settings.top, shown = top && top < count ? top : count;
    heading_write(table, title);
    places_lay_out(table, ranked, shown);
    for (size_t i = 0; i < shown; i++)
        row_write(table, ranked[i].compared, metric);
    if (count > shown)
        fprintf(table->out, "  and %zu more, which changed less\n", count - shown);
    return 0;
}

static void totals_write(struct table *table)
{
    heading_write(table, "The whole");
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct change *change = &table->comparison->totals[i];
        if (!(change->old_value > 0) && !(change->new_value > 0))
            continue;
        changes_write(table, metric_rows[i].kind, change);
        fprintf(table->out, "  %s\n", metric_rows[i].title);
    }
}

static int sections_write(struct table *table)
{
    const struct comparison *comparison = table->comparison;
    int error = section_write(table, "Files, by time", &comparison->files, METRIC_TIME);
    if (!error)
        error = section_write(table, "Functions, by time", &comparison->functions, METRIC_TIME);
    if (!error)
        error = section_write(table, "Lines, by time", &comparison->lines, METRIC_TIME);
    if (!error)
        error = section_write(table, "Functions, by memory allocated", &comparison->functions,
                              METRIC_ALLOCATED);
    if (!error)
        error = section_write(table, "Lines, by memory allocated", &comparison->lines,
                              METRIC_ALLOCATED);
    if (!error)
        error = section_write(table, "Lines, by memory copied", &comparison->lines, METRIC_COPIED);
    return error;
}

/* ---- words ---- */

static void words_write(struct table *table, const char *text)
{
    size_t used = 0;
    for (const char *word = text; *word;) {
        size_t length = strcspn(word, " ");
        bool breaks = used && used + 1 + length > table->settings.width;
        fprintf(table->out, "%s%.*s", !used ? "" : breaks ? "\n" : " ", (int)length, word);
        used = !used || breaks ? length : used + 1 + length;
        word += length + (word[length] == ' ');
    }
    fputc('\n', table->out);
}

static void legend_write(struct table *table)
{
    static const char *const meanings[COMPARED_STATES] = {
        [COMPARED_MOVED] = "> moved",
        [COMPARED_EDITED] = "* edited",
        [COMPARED_ADDED] = "+ only in the new profile",
        [COMPARED_REMOVED] = "- only in the old profile",
    };
    fputc('\n', table->out);
    if (table->has_margins)
        words_write(table, "~ within the margin of sampling: it may not have changed at all");
    for (int i = 0; i < COMPARED_STATES; i++)
        if (table->has_marks[i] && meanings[i])
            words_write(table, meanings[i]);
    for (size_t i = 0; i < table->comparison->note_count; i++)
        words_write(table, table->comparison->notes[i]);
}

static void names_write(struct table *table)
{
    char shown[TEXT_SIZE];
    const char *const names[][2] = { { "old: ", table->settings.old_name },
                                     { "new: ", table->settings.new_name } };
    for (size_t i = 0; i < 2; i++) {
        screen_path_fit(names[i][1], table->settings.width - strlen(names[i][0]), shown,
                        sizeof shown);
        style_print(table->out, table->settings.coloured, STYLE_HEADING, names[i][0]);
        fprintf(table->out, "%s\n", shown);
    }
}

int diff_table_write(FILE *out, const struct comparison *comparison,
                     const struct diff_settings *settings)
{
    struct table table = {
        .out = out, .comparison = comparison, .settings = *settings, .is_empty = true
    };
    size_t *width = &table.settings.width;
    *width = *width < WIDTH_MIN ? WIDTH_MIN : *width > WIDTH_MAX ? WIDTH_MAX : *width;
    table_lay_out(&table);
    names_write(&table);
    totals_write(&table);
    int error = sections_write(&table);
    if (error)
        return error;
    if (table.is_empty)
        fputs("\nNo file, function or line changed.\n", out);
    const bool *marked = table.has_marks;
    if (table.has_margins || comparison->note_count || marked[COMPARED_MOVED] ||
        marked[COMPARED_EDITED] || marked[COMPARED_ADDED] || marked[COMPARED_REMOVED])
        legend_write(&table);
    return 0;
}
