#include "output/cli/profile_table.h"

#include "output/cli/line_table.h"
#include "output/cli/profile_head.h"
#include "output/cli/profile_sections.h"
#include "output/cli/screen_text.h"
#include "output/model/format.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/parallel.h"

#include <errno.h>
#include <string.h>

enum { WIDTH_MIN = 20, WIDTH_MAX = 500, TEXT_SIZE = 16 * WIDTH_MAX };

static bool table_is_ranked(const struct line_table *table)
{
    return table->settings.selection.sort || table->settings.selection.top;
}

/* ---- one file ---- */

static void lines_write(struct line_table *table, const struct report_file *file, const bool *marks,
                        const struct source_colours *colours)
{
    bool dots = false;
    for (size_t i = 0; i < file->lines.count; i++) {
        const struct line_stats *stats = &file->lines.items[i];
        bool skipped =
            (marks && !marks[i]) || (table->settings.reduced && !line_is_active(table, stats));
        if (skipped && !dots)
            line_table_dots(table);
        dots = skipped;
        if (skipped)
            continue;
        line_table_row(table, file, stats, colours);
        line_table_details(table, stats);
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

/* What has a cost in a column that found no room has nothing to be listed for. */
static bool function_is_shown(const struct line_table *table, const struct line_stats *function)
{
    return line_has_cost(table, function) && line_table_tells(table, function) &&
           selection_takes_function(&table->settings.selection, function);
}

static int functions_write(struct line_table *table, const struct report_file *file)
{
    size_t count = 0;
    AUTO_FREE struct line_stats **functions = calloc(file->functions.count + 1, sizeof(*functions));
    if (!functions)
        return -ENOMEM;
    for (size_t i = 0; i < file->functions.count; i++)
        if (function_is_shown(table, &file->functions.items[i]))
            functions[count++] = &file->functions.items[i];
    if (count == 0)
        return 0;
    qsort(functions, count, sizeof(*functions), function_compare);
    line_table_title(table, "Functions");
    for (size_t i = 0; i < count; i++)
        line_table_row(table, file, functions[i], NULL);
    return 0;
}

static void leaks_write(struct line_table *table, const struct report_file *file)
{
    if (file->leaks.count)
        line_table_title(table, "Possible leaks");
    for (size_t i = 0; i < file->leaks.count; i++) {
        const struct report_leak *leak = &file->leaks.items[i];
        char text[256], likely[32], live[32], velocity[32];
        format_value(VALUE_FRACTION, &leak->likelihood, likely, sizeof likely);
        format_value(VALUE_MEGABYTES, &leak->live_mb, live, sizeof live);
        format_value(VALUE_RATE, &leak->velocity_mb_s, velocity, sizeof velocity);
        snprintf(text, sizeof text, "line %s: %s likely, grows by %s%s%s", leak->lineno, likely,
                 *velocity ? velocity : "little", *live ? ", holds " : "", live);
        line_table_words(table, STYLE_MEMORY, text);
    }
}

static void file_title_write(struct line_table *table, const struct report_file *file)
{
    char path[TEXT_SIZE], share[96] = "", percent[32], seconds[32];
    double spent_s = file->percent_cpu_time / 100 * report_base_s(table->report);
    size_t width = table->settings.width;
    if (format_value(VALUE_PERCENT, &file->percent_cpu_time, percent, sizeof percent) == 0)
        strcpy(percent, "0%");
    size_t length = format_value(VALUE_SECONDS, &spent_s, seconds, sizeof seconds), used = 0;
    if (report_tells_of_files(table->report, offsetof(struct report_file, percent_cpu_time)))
        used = (size_t)snprintf(share, sizeof share, ": %s of the time%s%s%s", percent,
                                length ? " (" : "", seconds, length ? ")" : "");
    screen_path_fit(file->path, used < width ? width - used : width, path, sizeof path);
    fputc('\n', table->out);
    style_print(table->out, table->settings.coloured, STYLE_HEADING, path);
    fprintf(table->out, "%s\n", used < width ? share : "");
}

static int file_write(struct line_table *table, const struct report_file *file,
                      const struct source_colours *colours)
{
    AUTO_FREE bool *marks = NULL;
    int error = selection_mark_lines(&table->settings.selection, file, &marks);
    if (error)
        return error;
    file_title_write(table, file);
    line_table_heading(table);
    lines_write(table, file, marks, colours);
    leaks_write(table, file);
    return functions_write(table, file);
}

/* ---- nothing ---- */

static bool any_file(const struct line_table *table)
{
    const struct report *report = table->report;
    size_t i = 0;
    while (i < report->files.count &&
           !selection_takes_file(&table->settings.selection, &report->files.items[i]))
        i++;
    return i < report->files.count;
}

static bool file_has_function(const struct selection *selection, const struct report_file *file)
{
    if (!selection->function)
        return true;
    for (size_t i = 0; i < file->functions.count; i++)
        if (selection_takes_function(selection, &file->functions.items[i]))
            return true;
    return false;
}

static bool any_function(const struct line_table *table)
{
    const struct report *report = table->report;
    const struct selection *selection = &table->settings.selection;
    for (size_t i = 0; i < report->files.count; i++)
        if (selection_takes_file(selection, &report->files.items[i]) &&
            file_has_function(selection, &report->files.items[i]))
            return true;
    return false;
}

static void column_missing(const struct line_table *table, char *text, size_t size)
{
    const struct column *sort = table->settings.selection.sort;
    if (table->report->absent_columns >> (sort - columns) & 1)
        snprintf(text, size, "This profile does not tell %s (%s).", sort->title, sort->key);
    else
        snprintf(text, size, "No line has a value in the column %s (%s).", sort->title, sort->key);
}

/* Why there is nothing to see, in one sentence. */
static void nothing_write(const struct line_table *table)
{
    const struct selection *selection = &table->settings.selection;
    char text[TEXT_SIZE], shown[TEXT_SIZE];
    if (!any_file(table) && selection->file)
        snprintf(text, sizeof text, "No file of this profile matches '%s'.", selection->file);
    else if (!any_function(table) && selection->function)
        snprintf(text, sizeof text, "No function of this profile matches '%s'%s.",
                 selection->function, selection->file ? " in such a file" : "");
    else if (selection->sort)
        column_missing(table, text, sizeof text);
    else
        snprintf(text, sizeof text, "No line %s.",
                 selection->top ? "has any value" : "reaches the thresholds of what is shown");
    screen_text_fit(text, table->settings.width, shown, sizeof shown);
    fprintf(table->out, "\n%s\n", shown);
}

/* ---- all files ---- */

/* What was asked for by its name is shown, whatever it costs. */
static bool file_is_shown(const struct line_table *table, const struct report_file *file)
{
    const struct selection *selection = &table->settings.selection;
    double mallocs = 0, least = table->settings.cpu_percent_threshold;
    if (!selection_takes_file(selection, file) || !file_has_function(selection, file))
        return false;
    if (selection->file || selection->function ||
        (file->percent_cpu_time > 0 && file->percent_cpu_time >= least))
        return true;
    for (size_t i = 0; i < file->lines.count; i++) {
        mallocs += (double)file->lines.items[i].n_mallocs;
        if (line_is_active(table, &file->lines.items[i]))
            return true;
    }
    return mallocs > 0 && mallocs >= (double)table->settings.malloc_threshold;
}

static int file_compare(const void *a, const void *b)
{
    const struct report_file *one = *(struct report_file *const *)a;
    const struct report_file *other = *(struct report_file *const *)b;
    if (one->percent_cpu_time != other->percent_cpu_time)
        return one->percent_cpu_time > other->percent_cpu_time ? -1 : 1;
    return strcmp(one->path, other->path);
}

/* Columns are the same for all files, so that the eye finds them. */
static int files_lay_out(struct line_table *table, struct report_file *const *files, size_t count)
{
    AUTO_FREE struct line_sample *samples = calloc(2 * count + 1, sizeof *samples);
    if (!samples)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        samples[2 * i] = (struct line_sample){ files[i]->lines.items, files[i]->lines.count };
        samples[2 * i + 1] =
            (struct line_sample){ files[i]->functions.items, files[i]->functions.count };
    }
    line_table_lay_out(table, samples, 2 * count, (struct line_places){ 0 });
    return 0;
}

/* Parsing source takes longer than all else. */
struct colouring {
    struct report_file *const *files;
    struct source_colours *colours;
};

static int file_colour(void *context, size_t index)
{
    const struct colouring *colouring = context;
    const struct report_file *file = colouring->files[index];
    AUTO_FREE const char **lines = calloc(file->lines.count + 1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    for (size_t i = 0; i < file->lines.count; i++)
        lines[i] = file->lines.items[i].line;
    return source_colours_read(lines, file->lines.count, &colouring->colours[index]);
}

static int files_write(struct line_table *table, struct report_file *const *files, size_t count)
{
    AUTO_FREE struct source_colours *colours = calloc(count + 1, sizeof *colours);
    struct colouring colouring = { files, colours };
    if (!colours)
        return -ENOMEM;
    int error = table->settings.coloured ? parallel_run(count, file_colour, &colouring) : 0;
    if (!error)
        error = files_lay_out(table, files, count);
    for (size_t i = 0; i < count; i++) {
        if (!error)
            error = file_write(table, files[i], &colours[i]);
        source_colours_done(&colours[i]);
    }
    return error;
}

static int files_list_and_write(struct line_table *table)
{
    size_t count = 0;
    AUTO_FREE struct report_file **files = calloc(table->report->files.count + 1, sizeof(*files));
    if (!files)
        return -ENOMEM;
    for (size_t i = 0; i < table->report->files.count; i++)
        if (file_is_shown(table, &table->report->files.items[i]))
            files[count++] = &table->report->files.items[i];
    if (count == 0)
        nothing_write(table);
    qsort(files, count, sizeof(*files), file_compare);
    return files_write(table, files, count);
}

/* ---- lists ---- */

static struct line_places places_of(const struct ranking *ranking)
{
    char shown[TEXT_SIZE];
    struct line_places places = { 0 };
    for (size_t i = 0; i < ranking->count; i++) {
        const struct ranked *ranked = &ranking->items[i];
        size_t width = screen_text(ranked->file->path, shown, sizeof shown);
        size_t digits =
            (size_t)snprintf(shown, sizeof shown, "%lld", (long long)ranked->stats->lineno);
        places.path_columns = width > places.path_columns ? width : places.path_columns;
        places.digits = digits > places.digits ? digits : places.digits;
    }
    return places;
}

static int ranking_lay_out(struct line_table *table, const struct ranking *ranking)
{
    AUTO_FREE struct line_sample *samples = calloc(ranking->count + 1, sizeof *samples);
    if (!samples)
        return -ENOMEM;
    for (size_t i = 0; i < ranking->count; i++)
        samples[i] =
            (struct line_sample){ (struct line_stats *)(uintptr_t)ranking->items[i].stats, 1 };
    line_table_lay_out(table, samples, ranking->count, places_of(ranking));
    return 0;
}

/* 1 if there was any, 0 if not, or -ENOMEM. */
static int ranking_write(struct line_table *table, enum ranking_of of)
{
    const struct column *sort = table->settings.selection.sort;
    struct line_table own = *table;
    struct ranking ranking = { 0 };
    char title[128];
    int error = ranking_new(table->report, &table->settings.selection, of, &ranking);
    AUTO_FREE struct ranked *items = ranking.items;
    if (!error && ranking.count)
        error = ranking_lay_out(&own, &ranking);
    if (error || !ranking.count)
        return error;
    snprintf(title, sizeof title, "%s by %s", of == RANKING_OF_LINES ? "Lines" : "Functions",
             sort ? sort->key : "share of the time");
    fputc('\n', table->out);
    line_table_title(&own, title);
    line_table_heading(&own);
    for (size_t i = 0; i < ranking.count; i++) {
        line_table_row(&own, items[i].file, items[i].stats, NULL);
        if (of == RANKING_OF_LINES)
            line_table_details(&own, items[i].stats);
    }
    return 1;
}

static int rankings_write(struct line_table *table)
{
    int lines = ranking_write(table, RANKING_OF_LINES);
    int functions = lines < 0 ? lines : ranking_write(table, RANKING_OF_FUNCTIONS);
    if (lines == 0 && functions == 0)
        nothing_write(table);
    return functions < 0 ? functions : 0;
}

int profile_table_write(FILE *out, const struct report *report,
                        const struct table_settings *settings)
{
    struct line_table table = { .out = out, .report = report, .settings = *settings };
    size_t *width = &table.settings.width;
    bool coloured = settings->coloured;
    *width = *width < WIDTH_MIN ? WIDTH_MIN : *width > WIDTH_MAX ? WIDTH_MAX : *width;
    profile_head_write(out, report, *width, coloured);
    int error = table_is_ranked(&table) ? rankings_write(&table) : files_list_and_write(&table);
    if (!error)
        error = profile_sections_write(out, report, &settings->selection, *width, coloured);
    if (!error)
        profile_notes_write(out, report, *width, coloured);
    return error;
}
