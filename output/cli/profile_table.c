#include "output/cli/profile_table.h"

#include "output/cli/profile_head.h"
#include "output/cli/screen_text.h"
#include "output/cli/style.h"
#include "output/model/columns.h"
#include "output/model/format.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
    WIDTH_MIN = 20,
    WIDTH_MAX = 500,
    TEXT_SIZE = 16 * WIDTH_MAX,
    CODE_MIN = 40,
    CODE_MIN_BESIDE_MEMORY = 30,
    DETAIL_INDENT = 10,
#define COLUMN(...) +1
    COLUMNS =
#include "output/model/columns.def"
#undef COLUMN
};

/* Shares, in percent, from which on a row is hot (as in Scalene), and says what it waited for or
 * ran. */
#define HOT_PERCENT 33.0
#define DETAIL_PERCENT 10.0

/* From here on copying is worth a look. */
#define COPY_MB_S 1.0

/* Where there is not room for all columns, the first few of some groups come first, then the rest
 * of the groups in this order. */
static const struct group {
    const char *name;
    enum style style;
    size_t first;
} groups[] = {
    { "place", STYLE_PLACE, COLUMNS }, { "cpu", STYLE_TIME, 3 },    { "gpu", STYLE_GPU, 0 },
    { "memory", STYLE_MEMORY, 2 },     { "async", STYLE_TASKS, 0 }, { "time", STYLE_TIME, 0 },
};
enum { GROUPS = sizeof groups / sizeof *groups };

struct cell {
    const struct column *column;
    size_t width; /* 0: not shown */
    enum style style;
};

struct table {
    FILE *out;
    const struct report *report;
    struct table_settings settings;
    struct cell cells[COLUMNS]; /* in display order */
    const struct column *code;
    size_t code_columns;
    size_t blanks; /* owed before the next text, so that no line ends with them */
};

/* ---- what is worth showing ---- */

static bool reaches(double value, double threshold)
{
    return value > 0 && value >= threshold;
}

static double wait_seconds(const struct line_stats *stats)
{
    double seconds = 0;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        seconds += stats->wait_s.seconds[i];
    return seconds;
}

static double wait_percent(const struct table *table, const struct line_stats *stats)
{
    double elapsed_s = table->report->totals.elapsed_s;
    return elapsed_s > 0 ? 100 * wait_seconds(stats) / elapsed_s : 0;
}

/* Something happened on the line itself. */
static bool line_is_active(const struct table *table, const struct line_stats *stats)
{
    double least = table->settings.cpu_percent_threshold;
    return reaches(line_percent(stats), least) || reaches(stats->n_gpu_percent, least) ||
           reaches(stats->n_async_await_percent, least) ||
           reaches(100 * stats->n_usage_fraction, least) ||
           reaches((double)stats->n_mallocs, (double)table->settings.malloc_threshold) ||
           reaches(stats->n_copy_mb_s, COPY_MB_S) || reaches(wait_percent(table, stats), least);
}

/* … or below it. */
static bool line_has_cost(const struct table *table, const struct line_stats *stats)
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

static bool file_is_shown(const struct table *table, const struct report_file *file)
{
    double mallocs = 0;
    if (reaches(file->percent_cpu_time, table->settings.cpu_percent_threshold))
        return true;
    for (size_t i = 0; i < file->lines.count; i++) {
        mallocs += (double)file->lines.items[i].n_mallocs;
        if (line_is_active(table, &file->lines.items[i]))
            return true;
    }
    return reaches(mallocs, (double)table->settings.malloc_threshold);
}

/* ---- which columns, and how wide ---- */

static bool column_is_wanted(const struct column *column, struct report_file *const *files)
{
    bool used = false;
    for (; *files && !used; files++)
        used = column_is_used(column, (*files)->lines.items, (*files)->lines.count) ||
               column_is_used(column, (*files)->functions.items, (*files)->functions.count);
    return used;
}

static size_t group_rank(const struct column *column)
{
    size_t rank = 0;
    while (rank < GROUPS && strcmp(groups[rank].name, column->group) != 0)
        rank++;
    return rank;
}

static size_t column_width(const struct column *column)
{
    char title[64];
    size_t width = screen_text(column->title, title, sizeof title);
    return width > (size_t)column->width ? width : (size_t)column->width;
}

/* Up to `most` columns of the group, those that are there already included, as far as they leave
 * room for the code. */
static void group_lay_out(struct table *table, struct report_file *const *files, size_t rank,
                          size_t most, size_t code_min)
{
    size_t count = 0;
    for (size_t i = 0; i < column_count; i++) {
        const struct column *column = &columns[i];
        if (group_rank(column) != rank || column->width == 0 || count++ >= most ||
            table->cells[i].width || !column_is_wanted(column, files))
            continue;
        size_t wide = column_width(column) + 1;
        if (rank > 0 && wide + code_min > table->code_columns)
            continue;
        enum style style = groups[rank < GROUPS ? rank : 0].style;
        table->cells[i] = (struct cell){ column, wide - 1, style };
        table->code_columns -= wide;
    }
}

/* The code gets what is left, and nearly half of the width at least; beside memory, a third. */
static void table_lay_out(struct table *table, struct report_file *const *files)
{
    bool memory = table->report->memory;
    size_t width = table->settings.width, share = memory ? 3 * width / 8 : 9 * width / 20;
    size_t least = memory ? CODE_MIN_BESIDE_MEMORY : CODE_MIN;
    size_t code_min = share > least ? share : least;
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].kind == VALUE_SOURCE)
            table->code = &columns[i];
    table->code_columns = width - 1;
    for (size_t rank = 0; rank < GROUPS; rank++)
        group_lay_out(table, files, rank, groups[rank].first, code_min);
    for (size_t rank = 0; rank <= GROUPS; rank++)
        group_lay_out(table, files, rank, COLUMNS, code_min);
}

/* ---- rows ---- */

static void text_put(struct table *table, enum style style, const char *text)
{
    if (!*text)
        return;
    fprintf(table->out, "%*s", (int)table->blanks, "");
    table->blanks = 0;
    if (style < STYLE_COUNT)
        style_print(table->out, table->settings.coloured, style, text);
    else
        fputs(text, table->out);
}

static void row_end(struct table *table)
{
    table->blanks = 0;
    fputc('\n', table->out);
}

static void cell_put(struct table *table, const struct cell *cell, enum style style,
                     const char *text)
{
    char shown[TEXT_SIZE];
    size_t blanks = cell->width - screen_text_fit(text, cell->width, shown, sizeof shown);
    bool right = format_is_number(cell->column->kind);
    table->blanks += right ? blanks : 0;
    text_put(table, style, shown);
    table->blanks += 1 + (right ? 0 : blanks);
}

static void heading_write(struct table *table)
{
    for (size_t i = 0; i < column_count; i++)
        if (table->cells[i].width)
            cell_put(table, &table->cells[i], STYLE_HEADING, columns[i].title);
    table->blanks++;
    text_put(table, STYLE_HEADING, table->code->title);
    row_end(table);
}

/* Without its line's end and the space before it. */
static void code_put(struct table *table, const struct line_stats *stats, enum style style)
{
    const char *code = *(const char *const *)column_value(table->code, stats);
    char line[TEXT_SIZE], shown[TEXT_SIZE];
    size_t length = code ? strcspn(code, "\n") : 0;
    while (length && strchr(" \t\r\f", code[length - 1]))
        length--;
    snprintf(line, sizeof line, "%.*s", length < sizeof line ? (int)length : TEXT_SIZE,
             code ? code : "");
    screen_text_fit(line, table->code_columns, shown, sizeof shown);
    table->blanks++;
    text_put(table, style, shown);
}

static void row_write(struct table *table, const struct line_stats *stats)
{
    bool hot = line_is_hot(stats), cost = line_has_cost(table, stats);
    for (size_t i = 0; i < column_count; i++) {
        const struct cell *cell = &table->cells[i];
        char text[TEXT_SIZE];
        text[0] = '\0';
        if (!cell->width)
            continue;
        if (cost || cell->column->kind == VALUE_LINE)
            format_value(cell->column->kind, column_value(cell->column, stats), text, sizeof text);
        cell_put(table, cell, hot ? STYLE_BUSY : cell->style, text);
    }
    code_put(table, stats, hot ? STYLE_BUSY : STYLE_COUNT);
    row_end(table);
}

/* A row of words alone, which may use all columns behind the line's number. */
static void detail_write(struct table *table, enum style style, const char *text)
{
    char shown[TEXT_SIZE];
    screen_text_fit(text, table->settings.width - DETAIL_INDENT, shown, sizeof shown);
    table->blanks = DETAIL_INDENT;
    text_put(table, style, shown);
    row_end(table);
}

static void dots_write(struct table *table)
{
    table->blanks = table->settings.width - table->code_columns;
    text_put(table, STYLE_PLACE, "...");
    row_end(table);
}

static void line_details_write(struct table *table, const struct line_stats *stats)
{
    char text[TEXT_SIZE] = "waits: ";
    size_t lead = strlen(text);
    if (reaches(wait_percent(table, stats), DETAIL_PERCENT)) {
        format_value(VALUE_WAITS, &stats->wait_s, text + lead, sizeof text - lead);
        detail_write(table, STYLE_WAITING, text);
    }
    if (!reaches(stats->n_cpu_percent_c, DETAIL_PERCENT))
        return;
    for (size_t i = 0; i < stats->native_top.count; i++) {
        const struct native_list one = { &stats->native_top.items[i], 1 };
        lead = (size_t)snprintf(text, sizeof text, "native: ");
        format_value(VALUE_NATIVE, &one, text + lead, sizeof text - lead);
        detail_write(table, STYLE_NATIVE, text);
    }
}

/* ---- files ---- */

static void lines_write(struct table *table, const struct report_file *file)
{
    bool dots = false;
    for (size_t i = 0; i < file->lines.count; i++) {
        const struct line_stats *stats = &file->lines.items[i];
        bool skipped = table->settings.reduced && !line_is_active(table, stats);
        if (skipped && !dots)
            dots_write(table);
        dots = skipped;
        if (skipped)
            continue;
        row_write(table, stats);
        line_details_write(table, stats);
    }
}

/* Dearest first; of equals, the one that stands first. */
static int function_compare(const void *a, const void *b)
{
    const struct line_stats *one = *(struct line_stats *const *)a;
    const struct line_stats *other = *(struct line_stats *const *)b;
    double difference = line_percent(other) - line_percent(one);
    if (difference == 0)
        difference = other->cumulative_s - one->cumulative_s;
    if (difference == 0)
        difference = one < other ? -1 : 1;
    return difference < 0 ? -1 : 1;
}

static int functions_write(struct table *table, const struct report_file *file)
{
    size_t count = 0;
    AUTO_FREE struct line_stats **functions = calloc(file->functions.count + 1, sizeof(*functions));
    if (!functions)
        return -ENOMEM;
    for (size_t i = 0; i < file->functions.count; i++)
        if (line_has_cost(table, &file->functions.items[i]))
            functions[count++] = &file->functions.items[i];
    if (count == 0)
        return 0;
    qsort(functions, count, sizeof(*functions), function_compare);
    text_put(table, STYLE_HEADING, "Functions");
    row_end(table);
    for (size_t i = 0; i < count; i++)
        row_write(table, functions[i]);
    return 0;
}

static void leaks_write(struct table *table, const struct report_file *file)
{
    if (file->leaks.count) {
        text_put(table, STYLE_HEADING, "Possible leaks");
        row_end(table);
    }
    for (size_t i = 0; i < file->leaks.count; i++) {
        const struct report_leak *leak = &file->leaks.items[i];
        char text[256], likely[32], live[32], velocity[32];
        format_value(VALUE_FRACTION, &leak->likelihood, likely, sizeof likely);
        format_value(VALUE_MEGABYTES, &leak->live_mb, live, sizeof live);
        format_value(VALUE_RATE, &leak->velocity_mb_s, velocity, sizeof velocity);
        snprintf(text, sizeof text, "line %s: %s likely, grows by %s%s%s", leak->lineno, likely,
                 *velocity ? velocity : "little", *live ? ", holds " : "", live);
        detail_write(table, STYLE_MEMORY, text);
    }
}

static int file_write(struct table *table, const struct report_file *file)
{
    char path[TEXT_SIZE], share[64], percent[32];
    if (format_value(VALUE_PERCENT, &file->percent_cpu_time, percent, sizeof percent) == 0)
        strcpy(percent, "0%");
    size_t width = table->settings.width;
    size_t used = (size_t)snprintf(share, sizeof share, ": %s of the time", percent);
    row_end(table);
    screen_path_fit(file->path, used < width ? width - used : width, path, sizeof path);
    text_put(table, STYLE_HEADING, path);
    text_put(table, STYLE_COUNT, used < width ? share : "");
    row_end(table);
    heading_write(table);
    lines_write(table, file);
    leaks_write(table, file);
    return functions_write(table, file);
}

static int file_compare(const void *a, const void *b)
{
    const struct report_file *one = *(struct report_file *const *)a;
    const struct report_file *other = *(struct report_file *const *)b;
    if (one->percent_cpu_time != other->percent_cpu_time)
        return one->percent_cpu_time > other->percent_cpu_time ? -1 : 1;
    return strcmp(one->path, other->path);
}

static int files_write(struct table *table)
{
    size_t count = 0;
    AUTO_FREE struct report_file **files = calloc(table->report->files.count + 1, sizeof(*files));
    if (!files)
        return -ENOMEM;
    for (size_t i = 0; i < table->report->files.count; i++)
        if (file_is_shown(table, &table->report->files.items[i]))
            files[count++] = &table->report->files.items[i];
    if (count == 0)
        fputs("\nNo line reaches the thresholds of what is shown.\n", table->out);
    qsort(files, count, sizeof(*files), file_compare);
    table_lay_out(table, files);
    int error = 0;
    for (size_t i = 0; i < count && !error; i++)
        error = file_write(table, files[i]);
    return error;
}

int profile_table_write(FILE *out, const struct report *report,
                        const struct table_settings *settings)
{
    struct table table = { .out = out, .report = report, .settings = *settings };
    size_t *width = &table.settings.width;
    *width = *width < WIDTH_MIN ? WIDTH_MIN : *width > WIDTH_MAX ? WIDTH_MAX : *width;
    profile_head_write(out, report, *width, settings->coloured);
    int error = files_write(&table);
    if (!error)
        profile_notes_write(out, report, *width, settings->coloured);
    return error;
}
