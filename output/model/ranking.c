#define _GNU_SOURCE 1 /* qsort_r */
#include "output/model/ranking.h"

#include "output/model/array.h"
#include "output/model/format.h"
#include "sampler/base/cleanup.h"

#include <fnmatch.h>
#include <string.h>

/* ---- patterns ---- */

static bool pattern_matches(const char *pattern, const char *name)
{
    if (!pattern)
        return true;
    if (!strpbrk(pattern, "*?["))
        return strstr(name, pattern) != NULL;
    bool found = fnmatch(pattern, name, 0) == 0;
    for (const char *slash = name; !found && (slash = strchr(slash, '/'));)
        found = fnmatch(pattern, ++slash, 0) == 0;
    return found;
}

bool selection_takes_file(const struct selection *selection, const struct report_file *file)
{
    return pattern_matches(selection->file, file->path);
}

bool selection_takes_function(const struct selection *selection, const struct line_stats *function)
{
    return pattern_matches(selection->function, function->line);
}

/* From its first decorator to its last line. A decorator stands before the region. */
static void function_mark(const struct report_file *file, const struct line_stats *function,
                          bool *marks)
{
    int64_t first = function->lineno, last = first;
    for (int64_t line = first; line > 0 && line <= (int64_t)file->lines.count; line++) {
        const struct line_stats *stats = &file->lines.items[line - 1];
        if (stats->start_function_line >= first) {
            last = stats->end_function_line;
            break;
        }
    }
    for (int64_t line = first; line > 0 && line <= last && line <= (int64_t)file->lines.count;
         line++)
        marks[line - 1] = true;
}

int selection_mark_lines(const struct selection *selection, const struct report_file *file,
                         bool **ret)
{
    *ret = NULL;
    if (!selection->function)
        return 0;
    bool *marks = calloc(file->lines.count + 1, sizeof *marks);
    if (!marks)
        return -ENOMEM;
    for (size_t i = 0; i < file->functions.count; i++)
        if (selection_takes_function(selection, &file->functions.items[i]))
            function_mark(file, &file->functions.items[i], marks);
    *ret = marks;
    return 0;
}

/* ---- the order ---- */

static double natives_sum(const struct native_list *list)
{
    double seconds = 0;
    for (size_t i = 0; i < list->count; i++)
        seconds += list->items[i].seconds;
    return seconds;
}

static double points_most(const struct point_list *list)
{
    double most = 0;
    for (size_t i = 0; i < list->count; i++)
        most = list->items[i].megabytes > most ? list->items[i].megabytes : most;
    return most;
}

/* Larger comes first. */
static double value_rank(enum value_kind kind, const void *value)
{
    switch (kind) {
    case VALUE_LINE:
        return -(double)*(const int64_t *)value;
    case VALUE_COUNT:
        return (double)*(const int64_t *)value;
    case VALUE_FLAG:
        return *(const bool *)value;
    case VALUE_WAITS:
        return wait_times_sum(value);
    case VALUE_NATIVE:
        return natives_sum(value);
    case VALUE_SPARK:
        return points_most(value);
    case VALUE_MOMENTS:
    case VALUE_TEXTS:
        return (double)((const struct text_list *)value)->count;
    case VALUE_TEXT:
    case VALUE_SOURCE:
        return 0;
    default:
        return *(const double *)value;
    }
}

/* What every line has, cost or not. */
static bool column_is_given(const struct column *column)
{
    return column->kind == VALUE_LINE || column->kind == VALUE_SOURCE;
}

static bool line_has_value(const struct selection *selection, const struct line_stats *stats)
{
    if (selection->sort && !column_is_given(selection->sort))
        return column_is_used(selection->sort, stats, 1);
    for (size_t i = 0; i < column_count; i++)
        if (!column_is_given(&columns[i]) && column_is_used(&columns[i], stats, 1))
            return true;
    return false;
}

static int texts_compare(const struct selection *selection, const struct ranked *one,
                         const struct ranked *other)
{
    enum value_kind kind = selection->sort ? selection->sort->kind : VALUE_PERCENT;
    if (kind != VALUE_SOURCE && kind != VALUE_TEXT)
        return 0;
    const char *text = *(const char *const *)column_value(selection->sort, one->stats);
    const char *than = *(const char *const *)column_value(selection->sort, other->stats);
    return strcmp(text ? text : "", than ? than : "");
}

/* Equals stay as they are in the report. */
static int ranked_compare(const void *a, const void *b, void *context)
{
    const struct ranked *one = a, *other = b;
    int texts = texts_compare(context, one, other);
    if (one->rank != other->rank)
        return one->rank > other->rank ? -1 : 1;
    if (texts)
        return texts;
    if (one->file != other->file)
        return one->file < other->file ? -1 : 1;
    return one->stats < other->stats ? -1 : one->stats > other->stats;
}

static double rank_of(const struct selection *selection, const struct line_stats *stats)
{
    return selection->sort ? value_rank(selection->sort->kind, column_value(selection->sort, stats))
                           : line_percent(stats);
}

/* ---- the whole ---- */

static int ranking_add(struct ranking *ranking, size_t *room, const struct selection *selection,
                       const struct report_file *file, const struct line_stats *stats)
{
    if (!line_has_value(selection, stats))
        return 0;
    if (ARRAY_GROW(ranking->items, ranking->count, *room))
        return -ENOMEM;
    ranking->items[ranking->count++] = (struct ranked){ file, stats, rank_of(selection, stats) };
    return 0;
}

static int lines_add(struct ranking *ranking, size_t *room, const struct selection *selection,
                     const struct report_file *file)
{
    AUTO_FREE bool *marks = NULL;
    int error = selection_mark_lines(selection, file, &marks);
    for (size_t i = 0; i < file->lines.count && !error; i++)
        if (!marks || marks[i])
            error = ranking_add(ranking, room, selection, file, &file->lines.items[i]);
    return error;
}

static int functions_add(struct ranking *ranking, size_t *room, const struct selection *selection,
                         const struct report_file *file)
{
    int error = 0;
    for (size_t i = 0; i < file->functions.count && !error; i++)
        if (selection_takes_function(selection, &file->functions.items[i]))
            error = ranking_add(ranking, room, selection, file, &file->functions.items[i]);
    return error;
}

int ranking_new(const struct report *report, const struct selection *selection, enum ranking_of of,
                struct ranking *ret)
{
    struct ranking ranking = { 0 };
    size_t room = 0;
    int error = 0;
    for (size_t i = 0; i < report->files.count && !error; i++) {
        const struct report_file *file = &report->files.items[i];
        if (selection_takes_file(selection, file))
            error = of == RANKING_OF_LINES ? lines_add(&ranking, &room, selection, file)
                                           : functions_add(&ranking, &room, selection, file);
    }
    if (error) {
        free(ranking.items);
        return error;
    }
    if (ranking.count)
        qsort_r(ranking.items, ranking.count, sizeof *ranking.items, ranked_compare,
                (void *)(uintptr_t)selection);
    if (selection->top && ranking.count > selection->top)
        ranking.count = selection->top;
    *ret = ranking;
    return 0;
}
