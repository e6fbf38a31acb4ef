#include "output/cli/profile_sections.h"

#include "output/cli/style.h"
#include "output/cli/text_grid.h"
#include "output/model/format.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { MEMORY_LINES = 5, PROCESSES_SHOWN = 20, THREADS_SHOWN = 20 };

/* As in Scalene: less is not worth a line. */
#define MEMORY_LEAST_MB 1.0

struct section {
    FILE *out;
    const struct report *report;
    size_t width;
    bool coloured;
};

#define GRID(list)                                                                                 \
    {                                                                                              \
        .columns = (list), .column_count = sizeof(list) / sizeof *(list)                           \
    }

static void cell_fill(char *cell, enum value_kind kind, const void *value)
{
    format_value(kind, value, cell, GRID_TEXT);
}

static void seconds_fill(char *cell, double seconds)
{
    cell_fill(cell, VALUE_SECONDS, &seconds);
}

static void megabytes_fill(char *cell, double megabytes)
{
    cell_fill(cell, VALUE_MEGABYTES, &megabytes);
}

/* `left_out` are more than what is shown. */
static void section_write(const struct section *section, const char *title, const struct grid *grid,
                          size_t left_out)
{
    if (!grid->count)
        return;
    fputc('\n', section->out);
    style_print(section->out, section->coloured, STYLE_HEADING, title);
    fputc('\n', section->out);
    grid_write(section->out, grid, section->width, section->coloured);
    if (left_out)
        fprintf(section->out, "  … and %zu more\n", left_out);
}

/* ---- memory ---- */

static const struct grid_column memory_columns[] = {
    { "peak", STYLE_MEMORY, true, 0, 0 },   { "average", STYLE_MEMORY, true, 4, 0 },
    { "malloc", STYLE_MEMORY, true, 3, 0 }, { "live", STYLE_MEMORY, true, 1, 0 },
    { "share", STYLE_MEMORY, true, 2, 0 },  { "where", STYLE_PLACE, false, 0, 16 },
    { "code", STYLE_COUNT, false, 0, 16 },
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int memory_row(struct grid *grid, const struct ranked *ranked)
{
    const struct line_stats *stats = ranked->stats;
    const char *code = stats->line ? stats->line + strspn(stats->line, " \t\f") : "";
    char(*row)[GRID_TEXT] = grid_row(grid);
    if (!row)
        return -ENOMEM;
    megabytes_fill(row[0], stats->n_peak_mb);
    megabytes_fill(row[1], stats->n_avg_mb);
    megabytes_fill(row[2], stats->n_malloc_mb);
    megabytes_fill(row[3], stats->live_mb);
    cell_fill(row[4], VALUE_FRACTION, &stats->n_usage_fraction);
    snprintf(row[5], GRID_TEXT, "%.200s:%" PRId64, file_name(ranked->file->path), stats->lineno);
    snprintf(row[6], GRID_TEXT, "%.*s", (int)strcspn(code, "\r\n"), code);
    return 0;
}

static int memory_write(const struct section *section, const struct selection *selection)
{
    struct selection by_peak = *selection;
    struct ranking ranking = { 0 };
    CLEANUP(grid_done) struct grid grid = GRID(memory_columns);
    by_peak.sort = column_find("n_peak_mb");
    by_peak.top = MEMORY_LINES;
    int error = ranking_new(section->report, &by_peak, RANKING_OF_LINES, &ranking);
    AUTO_FREE struct ranked *items = ranking.items;
    for (size_t i = 0; i < ranking.count && !error; i++)
        if (items[i].stats->n_peak_mb >= MEMORY_LEAST_MB)
            error = memory_row(&grid, &items[i]);
    section_write(section, "Most memory, by line", &grid, 0);
    return error;
}

/* ---- processes ---- */

static const struct grid_column process_columns[] = {
    { "pid", STYLE_COUNT, true, 0, 0 },     { "rank", STYLE_COUNT, true, 1, 0 },
    { "CPU", STYLE_TIME, true, 1, 0 },      { "lived", STYLE_TIME, true, 4, 0 },
    { "RSS", STYLE_MEMORY, true, 2, 0 },    { "private", STYLE_MEMORY, true, 5, 0 },
    { "heap", STYLE_MEMORY, true, 3, 0 },   { "status", STYLE_COUNT, true, 2, 0 },
    { "Python", STYLE_COUNT, false, 6, 0 }, { "command", STYLE_PLACE, false, 0, 24 },
};

/* The folder of an interpreter is long, and the same for all. */
static void command_fill(char *cell, const struct report_process *process)
{
    size_t used = 0;
    for (size_t i = 0; i < process->argv.count && used < GRID_TEXT; i++)
        used += (size_t)snprintf(cell + used, GRID_TEXT - used, "%s%s", i ? " " : "",
                                 i ? process->argv.items[i] : file_name(process->argv.items[i]));
}

/* A number that may be missing. */
static void optional_fill(char *cell, int64_t number)
{
    if (number >= 0)
        snprintf(cell, GRID_TEXT, "%" PRId64, number);
}

static int process_row(struct grid *grid, const struct report_process *process)
{
    char(*row)[GRID_TEXT] = grid_row(grid);
    if (!row)
        return -ENOMEM;
    optional_fill(row[0], process->pid);
    optional_fill(row[1], process->rank);
    seconds_fill(row[2], process->cpu_s);
    seconds_fill(row[3], process->end_s - process->start_s);
    megabytes_fill(row[4], process->peak_rss_mb);
    megabytes_fill(row[5], process->private_mb);
    megabytes_fill(row[6], process->peak_footprint_mb);
    if (process->exit_status > 0)
        optional_fill(row[7], process->exit_status);
    snprintf(row[8], GRID_TEXT, "%.40s", process->python ? process->python : "");
    command_fill(row[9], process);
    return 0;
}

/* What else ran has no lines; the notes tell of it. */
static bool process_is_shown(const struct report_process *process)
{
    return process->python && *process->python;
}

/* Those that worked most. */
static int process_compare(const void *a, const void *b)
{
    const struct report_process *one = *(struct report_process *const *)a;
    const struct report_process *other = *(struct report_process *const *)b;
    if (one->cpu_s != other->cpu_s)
        return one->cpu_s > other->cpu_s ? -1 : 1;
    return one < other ? -1 : 1;
}

/* One alone is told of by the head. */
static int processes_write(const struct section *section)
{
    size_t count = section->report->processes.count;
    CLEANUP(grid_done) struct grid grid = GRID(process_columns);
    AUTO_FREE struct report_process **order = calloc(count + 1, sizeof *order);
    int error = order ? 0 : -ENOMEM;
    size_t wanted = 0;
    for (size_t i = 0; i < count && !error; i++)
        if (process_is_shown(&section->report->processes.items[i]))
            order[wanted++] = &section->report->processes.items[i];
    if (error || wanted < 2)
        return error;
    qsort(order, wanted, sizeof *order, process_compare);
    size_t shown = wanted < PROCESSES_SHOWN ? wanted : PROCESSES_SHOWN;
    for (size_t i = 0; i < shown && !error; i++)
        error = process_row(&grid, order[i]);
    section_write(section, "Processes", &grid, wanted - shown);
    return error;
}

/* ---- threads ---- */

static const struct grid_column thread_columns[] = {
    { "pid", STYLE_COUNT, true, 1, 0 },       { "tid", STYLE_COUNT, true, 2, 0 },
    { "CPU", STYLE_TIME, true, 0, 0 },        { "Python", STYLE_TIME, true, 3, 0 },
    { "native", STYLE_TIME, true, 4, 0 },     { "kernel", STYLE_TIME, true, 5, 0 },
    { "waits", STYLE_WAITING, false, 0, 12 }, { "name", STYLE_COUNT, false, 0, 22 },
};

static double thread_cpu(const struct report_thread *thread)
{
    return thread->cpu_python_s + thread->cpu_native_s + thread->cpu_kernel_s;
}

static int thread_row(struct grid *grid, const struct report_thread *thread, bool several)
{
    char(*row)[GRID_TEXT] = grid_row(grid);
    if (!row)
        return -ENOMEM;
    if (several)
        optional_fill(row[0], thread->pid);
    optional_fill(row[1], thread->tid);
    seconds_fill(row[2], thread_cpu(thread));
    seconds_fill(row[3], thread->cpu_python_s);
    seconds_fill(row[4], thread->cpu_native_s);
    seconds_fill(row[5], thread->cpu_kernel_s);
    cell_fill(row[6], VALUE_WAITS, &thread->wait_s);
    snprintf(row[7], GRID_TEXT, "%.400s", thread->name ? thread->name : "");
    return 0;
}

/* Those that worked most, then those that waited most. */
static int thread_compare(const void *a, const void *b)
{
    const struct report_thread *one = *(struct report_thread *const *)a;
    const struct report_thread *other = *(struct report_thread *const *)b;
    if (thread_cpu(one) != thread_cpu(other))
        return thread_cpu(one) > thread_cpu(other) ? -1 : 1;
    if (wait_times_sum(&one->wait_s) != wait_times_sum(&other->wait_s))
        return wait_times_sum(&one->wait_s) > wait_times_sum(&other->wait_s) ? -1 : 1;
    return one < other ? -1 : 1;
}

static int threads_write(const struct section *section)
{
    size_t count = section->report->threads.count;
    CLEANUP(grid_done) struct grid grid = GRID(thread_columns);
    AUTO_FREE struct report_thread **order = calloc(count + 1, sizeof *order);
    int error = order ? 0 : -ENOMEM;
    size_t wanted = 0;
    for (size_t i = 0; i < count && !error; i++)
        if (report_thread_is_python(&section->report->threads.items[i]))
            order[wanted++] = &section->report->threads.items[i];
    if (error || wanted < 2)
        return error;
    qsort(order, wanted, sizeof *order, thread_compare);
    size_t shown = wanted < THREADS_SHOWN ? wanted : THREADS_SHOWN;
    for (size_t i = 0; i < shown && !error; i++)
        error = thread_row(&grid, order[i], section->report->processes.count > 1);
    section_write(section, "Threads", &grid, wanted - shown);
    return error;
}

int profile_sections_write(FILE *out, const struct report *report,
                           const struct selection *selection, size_t width, bool coloured)
{
    const struct section section = { out, report, width, coloured };
    if (selection->sort || selection->top)
        return 0;
    int error = memory_write(&section, selection);
    if (error || selection->file || selection->function)
        return error;
    error = processes_write(&section);
    return error ? error : threads_write(&section);
}
