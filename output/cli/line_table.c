#include "output/cli/line_table.h"

#include "output/cli/code_text.h"
#include "output/cli/screen_text.h"
#include "output/model/format.h"

#include <string.h>

enum {
    TEXT_SIZE = 8000,
    WIDE = 150,
    CODE_MIN = 40,
    CODE_LEAST = 5, /* whatever was asked for */
    CODE_MIN_BESIDE_MEMORY = 30,
    CODE_INDENTED = 16,
    DETAIL_INDENT = 10,
};

/* Shares, in percent, from which on a row is hot (as in Scalene), and says what it waited for or
 * ran. */
#define HOT_PERCENT 33.0
#define DETAIL_PERCENT 10.0

/* From here on copying is worth a look. */
#define COPY_MB_S 1.0

static const struct {
    const char *group;
    enum style style;
} group_styles[] = {
    { "cpu", STYLE_TIME },    { "gpu", STYLE_GPU },   { "memory", STYLE_MEMORY },
    { "async", STYLE_TASKS }, { "time", STYLE_TIME },
};

/*
 * Who gets room first where there is not enough for all; the others follow in the table's order. A
 * narrow window shows where the time went rather than code that is found by its number anyway, and
 * where memory was profiled, where that went rather than parts of a time that has its share
 * already.
 */
static const char *const essential[] = { "lineno", "n_cpu_percent_python", "n_cpu_percent_c",
                                         "n_sys_percent" };
static const char *const telling[] = { "n_gpu_percent", "n_async_await_percent", "n_peak_mb" };
static const char *const useful[] = {
    "n_usage_fraction", "memory_samples", "n_avg_mb",     "n_copy_mb_s", "cpu_kernel_s",
    "idle_s",           "error_percent",  "cumulative_s", "n_malloc_mb", "wait_s",
};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

/* ---- what is worth showing ---- */

static bool reaches(double value, double threshold)
{
    return value > 0 && value >= threshold;
}

static double wait_percent(const struct line_table *table, const struct line_stats *stats)
{
    double elapsed_s = table->report->totals.elapsed_s;
    return elapsed_s > 0 ? 100 * wait_times_sum(&stats->wait_s) / elapsed_s : 0;
}

bool line_is_active(const struct line_table *table, const struct line_stats *stats)
{
    double least = table->settings.cpu_percent_threshold;
    return reaches(line_percent(stats), least) || reaches(stats->n_gpu_percent, least) ||
           reaches(stats->n_async_await_percent, least) ||
           reaches(100 * stats->n_usage_fraction, least) ||
           reaches((double)stats->n_mallocs, (double)table->settings.malloc_threshold) ||
           reaches(stats->n_copy_mb_s, COPY_MB_S) || reaches(wait_percent(table, stats), least);
}

bool line_has_cost(const struct line_table *table, const struct line_stats *stats)
{
    double base_s = report_base_s(table->report);
    double below = base_s > 0 ? 100 * stats->cumulative_s / base_s : 0;
    return line_is_active(table, stats) || reaches(below, table->settings.cpu_percent_threshold);
}

static bool line_is_hot(const struct line_stats *stats)
{
    return line_percent(stats) >= HOT_PERCENT || stats->n_gpu_percent >= HOT_PERCENT ||
           100 * stats->n_usage_fraction >= HOT_PERCENT;
}

/* ---- which columns, and how wide ---- */

static bool column_is_wanted(const struct column *column, const struct line_sample *samples,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (column_is_used(column, samples[i].items, samples[i].count))
            return true;
    return false;
}

static enum style column_style(const struct column *column)
{
    for (size_t i = 0; i < COUNT_OF(group_styles); i++)
        if (strcmp(group_styles[i].group, column->group) == 0)
            return group_styles[i].style;
    return STYLE_PLACE;
}

/* A course over time is told by a few cells, too. */
static size_t column_width(const struct line_table *table, const struct column *column)
{
    char title[64];
    size_t least = screen_text(column->title, title, sizeof title), width = (size_t)column->width;
    if (column->kind == VALUE_SPARK && table->settings.width < WIDE)
        width = least;
    return width > least ? width : least;
}

/* Where it leaves so much for the code, and is not there already. */
static void column_lay_out(struct line_table *table, const struct column *column, size_t code_min)
{
    struct line_cell *cell = &table->cells[column - columns];
    size_t width = column_width(table, column);
    if (cell->width || width + 1 + code_min > table->code_columns)
        return;
    *cell = (struct line_cell){ width, column_style(column) };
    table->code_columns -= width + 1;
}

static void columns_lay_out(struct line_table *table, const bool *wanted, const char *const *keys,
                            size_t count, size_t code_min)
{
    for (size_t i = 0; i < count; i++) {
        const struct column *column = column_find(keys[i]);
        if (wanted[column - columns])
            column_lay_out(table, column, code_min);
    }
}

/* The code gets nearly half of the width at least; beside memory, a third. */
static size_t code_least(const struct line_table *table)
{
    bool memory = table->report->memory;
    size_t width = table->settings.width, share = memory ? width / 3 : 9 * width / 20;
    size_t least = memory ? CODE_MIN_BESIDE_MEMORY : CODE_MIN;
    return share > least ? share : least;
}

static void place_lay_out(struct line_table *table, struct line_places places)
{
    size_t most = places.path_columns ? places.path_columns + 1 + places.digits : 0;
    size_t width = table->settings.width;
    table->place_digits = 1 + places.digits;
    table->place_columns = most < width / 4 ? most : width / 4;
    if (most && table->place_columns <= table->place_digits)
        table->place_columns = table->place_digits + 1;
    table->code_columns = width - 1 - (most ? table->place_columns + 1 : 0);
}

void line_table_lay_out(struct line_table *table, const struct line_sample *samples, size_t count,
                        struct line_places places)
{
    const struct column *sort = table->settings.selection.sort;
    size_t least = code_least(table);
    bool wanted[LINE_TABLE_COLUMNS];
    place_lay_out(table, places);
    for (size_t i = 0; i < column_count; i++)
        wanted[i] = columns[i].width && !(table->place_columns && columns[i].kind == VALUE_LINE) &&
                    column_is_wanted(&columns[i], samples, count);
    if (sort && sort->kind != VALUE_LINE && sort->kind != VALUE_SOURCE)
        column_lay_out(table, sort, CODE_LEAST);
    /* it takes its room from the code, which the reader finds by its place */
    least -= least / 2 < table->place_columns ? least / 2 : table->place_columns;
    columns_lay_out(table, wanted, essential, COUNT_OF(essential), CODE_LEAST);
    columns_lay_out(table, wanted, telling, COUNT_OF(telling), table->settings.width / 4);
    columns_lay_out(table, wanted, useful, COUNT_OF(useful), least);
    for (size_t i = 0; i < column_count; i++)
        if (wanted[i])
            column_lay_out(table, &columns[i], least);
}

/* ---- rows ---- */

static void blanks_put(struct line_table *table)
{
    static const char blanks[] = "                                                                ";
    while (table->blanks) {
        size_t count = table->blanks < sizeof blanks - 1 ? table->blanks : sizeof blanks - 1;
        fwrite(blanks, 1, count, table->out);
        table->blanks -= count;
    }
}

static void text_put(struct line_table *table, enum style style, const char *text)
{
    if (!*text)
        return;
    blanks_put(table);
    if (style < STYLE_COUNT)
        style_print(table->out, table->settings.coloured, style, text);
    else
        fputs(text, table->out);
}

static void row_end(struct line_table *table)
{
    table->blanks = 0;
    fputc('\n', table->out);
}

static void cell_put(struct line_table *table, size_t width, bool right, enum style style,
                     const char *text)
{
    char shown[TEXT_SIZE];
    if (!*text) { /* as most are */
        table->blanks += width + 1;
        return;
    }
    size_t blanks = width - screen_text_fit(text, width, shown, sizeof shown);
    table->blanks += right ? blanks : 0;
    text_put(table, style, shown);
    table->blanks += 1 + (right ? 0 : blanks);
}

void line_table_heading(struct line_table *table)
{
    for (size_t i = 0; i < column_count; i++)
        if (table->cells[i].width)
            cell_put(table, table->cells[i].width, format_is_number(columns[i].kind), STYLE_HEADING,
                     columns[i].title);
    table->blanks++;
    if (table->place_columns)
        cell_put(table, table->place_columns, false, STYLE_HEADING, "Where");
    text_put(table, STYLE_HEADING, column_find("line")->title);
    row_end(table);
}

/* The end of the path, and the line's number whole. */
static void place_put(struct line_table *table, const struct report_file *file, int64_t lineno,
                      enum style style)
{
    char number[32], text[TEXT_SIZE];
    size_t room = table->place_columns - table->place_digits;
    snprintf(number, sizeof number, ":%lld", (long long)lineno);
    screen_path_fit(file->path, room, text, sizeof text - sizeof number);
    strcat(text, number);
    cell_put(table, table->place_columns, false, style, text);
}

/* Indented where it stands among its neighbours and there is room to show it. */
static void code_put(struct line_table *table, const struct line_stats *stats, bool hot,
                     const struct source_colours *colours)
{
    const char *code = stats->line ? stats->line : "", *text = code + strspn(code, " \t\r\n\f");
    bool indented = !table->place_columns && table->code_columns >= CODE_INDENTED;
    if (!*text)
        return;
    blanks_put(table);
    code_text_write(table->out, indented ? code : text, table->code_columns,
                    table->settings.coloured, hot ? STYLE_BUSY : STYLE_COUNT,
                    indented ? colours : NULL, (size_t)stats->lineno - 1);
}

static void value_text(const struct line_table *table, const struct column *column,
                       const struct line_stats *stats, char *text, size_t size)
{
    const void *value = column_value(column, stats);
    if (column->kind == VALUE_SPARK)
        format_spark(value, table->cells[column - columns].width, text, size);
    else
        format_value(column->kind, value, text, size);
}

bool line_table_tells(const struct line_table *table, const struct line_stats *stats)
{
    for (size_t i = 0; i < column_count; i++)
        if (table->cells[i].width && columns[i].kind != VALUE_LINE &&
            column_is_used(&columns[i], stats, 1))
            return true;
    return false;
}

void line_table_row(struct line_table *table, const struct report_file *file,
                    const struct line_stats *stats, const struct source_colours *colours)
{
    bool hot = line_is_hot(stats), cost = table->place_columns || line_has_cost(table, stats);
    for (size_t i = 0; i < column_count; i++) {
        const struct line_cell *cell = &table->cells[i];
        char text[TEXT_SIZE];
        text[0] = '\0';
        if (!cell->width)
            continue;
        if (cost || columns[i].kind == VALUE_LINE)
            value_text(table, &columns[i], stats, text, sizeof text);
        cell_put(table, cell->width, format_is_number(columns[i].kind),
                 hot ? STYLE_BUSY : cell->style, text);
    }
    table->blanks++;
    if (table->place_columns)
        place_put(table, file, stats->lineno, hot ? STYLE_BUSY : STYLE_PLACE);
    code_put(table, stats, hot, colours);
    row_end(table);
}

void line_table_words(struct line_table *table, enum style style, const char *text)
{
    char shown[TEXT_SIZE];
    screen_text_fit(text, table->settings.width - DETAIL_INDENT, shown, sizeof shown);
    table->blanks = DETAIL_INDENT;
    text_put(table, style, shown);
    row_end(table);
}

void line_table_title(struct line_table *table, const char *text)
{
    char shown[TEXT_SIZE];
    screen_text_fit(text, table->settings.width, shown, sizeof shown);
    text_put(table, STYLE_HEADING, shown);
    row_end(table);
}

void line_table_dots(struct line_table *table)
{
    table->blanks = table->settings.width - table->code_columns;
    text_put(table, STYLE_PLACE, "...");
    row_end(table);
}

void line_table_details(struct line_table *table, const struct line_stats *stats)
{
    char text[TEXT_SIZE] = "waits: ";
    size_t lead = strlen(text);
    if (reaches(wait_percent(table, stats), DETAIL_PERCENT)) {
        format_value(VALUE_WAITS, &stats->wait_s, text + lead, sizeof text - lead);
        line_table_words(table, STYLE_WAITING, text);
    }
    if (!reaches(stats->n_cpu_percent_c, DETAIL_PERCENT))
        return;
    for (size_t i = 0; i < stats->native_top.count; i++) {
        const struct native_list one = { &stats->native_top.items[i], 1 };
        lead = (size_t)snprintf(text, sizeof text, "native: ");
        format_value(VALUE_NATIVE, &one, text + lead, sizeof text - lead);
        line_table_words(table, STYLE_NATIVE, text);
    }
}
