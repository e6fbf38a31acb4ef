#include "output/compare/comparison.h"

#include "output/compare/strays.h"
#include "output/model/array.h"
#include "output/model/file_match.h"
#include "output/model/line_match.h"

#include <math.h>
#include <string.h>

DEFINE_CLEANUP(struct comparison *, comparison_free)

/* ---- changes ---- */

double change_difference(const struct change *change)
{
    double difference = change->new_value - change->old_value;
    return fabs(difference) <= change->rounding ? 0 : difference;
}

double change_percent(const struct change *change)
{
    double difference = change_difference(change);
    if (difference == 0)
        return 0;
    return 100 * difference / fmax(change->old_value, 0);
}

bool change_is_significant(const struct change *change)
{
    double difference = fabs(change_difference(change));
    return difference > 0 && difference > change->error;
}

const char *compared_state_name(enum compared_state state)
{
    static const char *const names[COMPARED_STATES] = {
        [COMPARED_SAME] = "same",   [COMPARED_MOVED] = "moved",     [COMPARED_EDITED] = "edited",
        [COMPARED_ADDED] = "added", [COMPARED_REMOVED] = "removed",
    };
    return names[state];
}

static void changes_set(const struct measure *from, const struct measure *to, struct change *ret)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        ret[i] =
            (struct change){ from->values[i], to->values[i], hypot(from->errors[i], to->errors[i]),
                             from->roundings[i] + to->roundings[i] };
}

/* Did it cost anything at all? */
static bool has_cost(const struct change *changes)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (changes[i].old_value > 0 || changes[i].new_value > 0)
            return true;
    return false;
}

/* ---- what is compared ---- */

static int compared_add(struct compared_list *list, const struct compared *compared)
{
    if (!has_cost(compared->changes))
        return 0;
    if (ARRAY_GROW(list->items, list->count, list->room))
        return -ENOMEM;
    list->items[list->count++] = *compared;
    return 0;
}

/* One of them may be NULL: it is not there, and so costs nothing. */
static void lines_set(const struct comparison *comparison, const struct line_stats *from,
                      const struct line_stats *to, struct compared *ret)
{
    static const struct line_stats nothing;
    struct measure old_measure, new_measure;
    measure_line(comparison->old_report, from ? from : &nothing, &old_measure);
    measure_line(comparison->new_report, to ? to : &nothing, &new_measure);
    changes_set(&old_measure, &new_measure, ret->changes);
    ret->old_lineno = from ? from->lineno : 0;
    ret->lineno = to ? to->lineno : 0;
}

static struct compared compared_begin(const struct file_pair *pair)
{
    return (struct compared){
        .file = pair->new_file ? pair->new_file->path : NULL,
        .old_file = pair->old_file ? pair->old_file->path : NULL,
        .state = !pair->old_file   ? COMPARED_ADDED
                 : !pair->new_file ? COMPARED_REMOVED
                                   : COMPARED_SAME,
    };
}

/* ---- files ---- */

static int file_compare(struct comparison *comparison, const struct file_pair *pair)
{
    static const struct report_file nothing;
    struct measure old_measure, new_measure;
    struct compared compared = compared_begin(pair);
    measure_file(comparison->old_report, pair->old_file ? pair->old_file : &nothing, &old_measure);
    measure_file(comparison->new_report, pair->new_file ? pair->new_file : &nothing, &new_measure);
    changes_set(&old_measure, &new_measure, compared.changes);
    if (compared.state == COMPARED_SAME && strcmp(compared.file, compared.old_file) != 0)
        compared.state = COMPARED_MOVED;
    return compared_add(&comparison->files, &compared);
}

/* ---- functions ---- */

/* Functions of both sides in order of their lines, and which of them is which. */
struct functions {
    const struct file_pair *pair;
    const struct line_match *match;
    struct line_stats **lists[2];
    size_t counts[2];
};

static void functions_done(struct functions *functions)
{
    free(functions->lists[0]);
    free(functions->lists[1]);
}

static int function_is_later(const void *a, const void *b)
{
    const struct line_stats *left = *(struct line_stats *const *)a;
    const struct line_stats *right = *(struct line_stats *const *)b;
    int order = (left->lineno > right->lineno) - (left->lineno < right->lineno);
    return order ? order : strcmp(left->line, right->line);
}

static int functions_sort(struct functions *functions, size_t side, const struct report_file *file)
{
    size_t count = file ? file->functions.count : 0;
    struct line_stats **list = calloc(count + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        list[i] = &file->functions.items[i];
    qsort(list, count, sizeof *list, function_is_later);
    functions->lists[side] = list;
    functions->counts[side] = count;
    return 0;
}

/* Without what is around it. */
static const char *name_end(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool names_are_equal(const struct functions *functions, const struct line_stats *from,
                            const struct line_stats *to)
{
    (void)functions;
    return strcmp(from->line, to->line) == 0;
}

/* What has no name of its own, as a lambda, stands on the first lines of others. */
static bool lines_are_equal(const struct functions *functions, const struct line_stats *from,
                            const struct line_stats *to)
{
    const struct file_pair *pair = functions->pair;
    bool is_named = *name_end(from->line) != '<' && *name_end(to->line) != '<';
    return (is_named || strcmp(name_end(from->line), name_end(to->line)) == 0) &&
           line_match_same_function(functions->match, pair->old_file, from->lineno, pair->new_file,
                                    to->lineno);
}

static bool all_is_equal(const struct functions *functions, const struct line_stats *from,
                         const struct line_stats *to)
{
    return names_are_equal(functions, from, to) && lines_are_equal(functions, from, to);
}

static int function_add(struct comparison *comparison, const struct file_pair *pair,
                        const struct line_stats *from, const struct line_stats *to)
{
    struct compared compared = compared_begin(pair);
    compared.name = to ? to->line : from->line;
    compared.old_name = from ? from->line : NULL;
    compared.state = !from                               ? COMPARED_ADDED
                     : !to                               ? COMPARED_REMOVED
                     : strcmp(from->line, to->line) != 0 ? COMPARED_MOVED
                                                         : COMPARED_SAME;
    lines_set(comparison, from, to, &compared);
    return compared_add(&comparison->functions, &compared);
}

/* Adds those of both sides that are the same by that rule, and takes them from the lists. */
static int functions_join(struct comparison *comparison, struct functions *functions,
                          bool (*is_same)(const struct functions *functions,
                                          const struct line_stats *from,
                                          const struct line_stats *to))
{
    int error = 0;
    for (size_t i = 0; i < functions->counts[0]; i++) {
        struct line_stats **from = &functions->lists[0][i], **to = functions->lists[1];
        struct line_stats **end = to + functions->counts[1];
        while (*from && to < end && !(*to && is_same(functions, *from, *to)))
            to++;
        if (!*from || to == end)
            continue;
        error = error ?: function_add(comparison, functions->pair, *from, *to);
        *from = *to = NULL;
    }
    return error;
}

static int functions_compare(struct comparison *comparison, const struct file_pair *pair,
                             const struct line_match *match)
{
    CLEANUP(functions_done) struct functions functions = { .pair = pair, .match = match };
    int error = functions_sort(&functions, 0, pair->old_file);
    if (!error)
        error = functions_sort(&functions, 1, pair->new_file);
    if (!error)
        error = functions_join(comparison, &functions, all_is_equal);
    if (!error)
        error = functions_join(comparison, &functions, names_are_equal);
    if (!error)
        error = functions_join(comparison, &functions, lines_are_equal);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < functions.counts[side] && !error; i++) {
            const struct line_stats *left = functions.lists[side][i];
            if (left)
                error = function_add(comparison, pair, side ? NULL : left, side ? left : NULL);
        }
    return error;
}

/* ---- lines ---- */

static int line_add(struct comparison *comparison, const struct file_pair *pair,
                    const struct line_stats *from, const struct line_stats *to,
                    enum compared_state state)
{
    struct compared compared = compared_begin(pair);
    compared.text = to ? to->line : from->line;
    compared.state = state;
    lines_set(comparison, from, to, &compared);
    return compared_add(&comparison->lines, &compared);
}

static const enum compared_state states[] = {
    [LINE_GONE] = COMPARED_REMOVED,
    [LINE_KEPT] = COMPARED_SAME,
    [LINE_MOVED] = COMPARED_MOVED,
    [LINE_EDITED] = COMPARED_EDITED,
};

/* New lines that no old one has become are there for the first time. */
static int lines_compare(struct comparison *comparison, const struct file_pair *pair,
                         const struct report_file *const files[2], const struct line_match *match)
{
    AUTO_FREE bool *is_known = calloc(files[1]->lines.count + 1, sizeof *is_known);
    int error = is_known ? 0 : -ENOMEM;
    for (size_t i = 0; i < match->count && !error; i++) {
        uint32_t found = match->matches[i];
        if (found != LINE_NONE)
            is_known[found] = true;
        error = line_add(comparison, pair, &files[0]->lines.items[i],
                         found == LINE_NONE ? NULL : &files[1]->lines.items[found],
                         states[match->fates[i]]);
    }
    for (size_t i = 0; i < files[1]->lines.count && !error; i++)
        if (!is_known[i])
            error = line_add(comparison, pair, NULL, &files[1]->lines.items[i], COMPARED_ADDED);
    return error;
}

/* ---- order: what changed most comes first ---- */

static double size_of(const struct compared *compared, enum metric metric)
{
    double difference = fabs(change_difference(&compared->changes[metric]));
    return isnan(difference) ? 0 : difference;
}

static int place_compare(const struct compared *a, const struct compared *b)
{
    int order = strcmp(a->file ? a->file : a->old_file, b->file ? b->file : b->old_file);
    if (order == 0)
        order = strcmp(a->name ?: "", b->name ?: "");
    if (order == 0)
        order = (a->lineno > b->lineno) - (a->lineno < b->lineno);
    return order ? order : (a->old_lineno > b->old_lineno) - (a->old_lineno < b->old_lineno);
}

static int compared_is_later(const void *a, const void *b)
{
    static const enum metric order[] = { METRIC_TIME, METRIC_ALLOCATED, METRIC_COPIED };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        double left = size_of(a, order[i]), right = size_of(b, order[i]);
        if (left != right)
            return left < right ? 1 : -1;
    }
    return place_compare(a, b);
}

static void list_sort(struct compared_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compared_is_later);
}

/* ---- the whole ---- */

static bool is_attached(const struct report *report)
{
    return report->mode && strcmp(report->mode, "attach") == 0;
}

/* A program that lies elsewhere is the same one. */
static bool programs_differ(const struct comparison *comparison)
{
    const char *old_program = comparison->old_report->program ?: "";
    const char *new_program = comparison->new_report->program ?: "";
    bool differ = strcmp(old_program, new_program) != 0;
    for (size_t i = 0; i < comparison->files.count && differ; i++) {
        const struct compared *file = &comparison->files.items[i];
        differ = !file->file || !file->old_file || strcmp(file->file, new_program) != 0 ||
                 strcmp(file->old_file, old_program) != 0;
    }
    return differ;
}

static void notes_add(struct comparison *comparison)
{
    const struct report *old_report = comparison->old_report, *new_report = comparison->new_report;
    if (!measure_has_seconds(old_report) || !measure_has_seconds(new_report))
        comparison->notes[comparison->note_count++] =
            "a profile of Scalene's own has shares without seconds and without margins: its "
            "seconds here are shares of the elapsed time, and margins are the other profile's";
    if (old_report->memory != new_report->memory)
        comparison->notes[comparison->note_count++] =
            old_report->memory ? "memory was profiled in the old run only"
                               : "memory was profiled in the new run only";
    if (is_attached(new_report) &&
        fabs(new_report->elapsed_time_sec - old_report->elapsed_time_sec) >
            0.1 * old_report->elapsed_time_sec)
        comparison->notes[comparison->note_count++] =
            "the program was watched for another time than before, and seconds grow with it";
    if (programs_differ(comparison))
        comparison->notes[comparison->note_count++] = "the profiles are of different programs";
}

/* Below the thresholds of a run a file is not in its profile. */
static void note_files(struct comparison *comparison)
{
    bool is_alone = false;
    for (size_t i = 0; i < comparison->files.count; i++)
        is_alone |= comparison->files.items[i].state >= COMPARED_ADDED;
    if (is_alone)
        comparison->notes[comparison->note_count++] =
            "a file that one profile has alone may have been below the thresholds of the other";
}

static int pair_compare(struct comparison *comparison, const struct file_pair *pair)
{
    static const struct report_file nothing;
    const struct report_file *const files[2] = { pair->old_file ?: &nothing,
                                                 pair->new_file ?: &nothing };
    AUTO_LINE_MATCH struct line_match match = { 0 };
    int error = line_match_init(&match, files[0], files[1]);
    if (!error)
        error = file_compare(comparison, pair);
    if (!error)
        error = functions_compare(comparison, pair, &match);
    return error ? error : lines_compare(comparison, pair, files, &match);
}

static int pairs_compare(struct comparison *comparison)
{
    AUTO_FILE_PAIRS struct file_pairs pairs = { 0 };
    int error = file_pairs_init(&pairs, comparison->old_report, comparison->new_report);
    for (size_t i = 0; i < pairs.count && !error; i++)
        error = pair_compare(comparison, &pairs.items[i]);
    return error;
}

int comparison_new(const struct report *old_report, const struct report *new_report,
                   struct comparison **ret)
{
    CLEANUP(comparison_freep) struct comparison *comparison = calloc(1, sizeof *comparison);
    struct measure old_measure, new_measure;
    if (!comparison)
        return -ENOMEM;
    comparison->old_report = old_report;
    comparison->new_report = new_report;
    comparison->has_memory = old_report->memory && new_report->memory;
    measure_whole(old_report, &old_measure);
    measure_whole(new_report, &new_measure);
    changes_set(&old_measure, &new_measure, comparison->totals);
    int error = pairs_compare(comparison);
    if (!error)
        error = strays_join(&comparison->functions);
    if (!error)
        error = strays_join(&comparison->lines);
    if (error)
        return error;
    notes_add(comparison);
    note_files(comparison);
    list_sort(&comparison->files);
    list_sort(&comparison->functions);
    list_sort(&comparison->lines);
    *ret = TAKE_PTR(comparison);
    return 0;
}

void comparison_free(struct comparison *comparison)
{
    if (!comparison)
        return;
    free(comparison->files.items);
    free(comparison->functions.items);
    free(comparison->lines.items);
    free(comparison);
}
