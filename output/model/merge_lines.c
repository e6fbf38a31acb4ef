/* Lines and functions of merged profiles: a rule for each column. */
#include "output/model/merge_build.h"

#include "output/model/columns.h"
#include "output/model/tally.h"
#include "output/model/timeline.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <math.h>
#include <string.h>

enum merge_rule {
    RULE_TEXT,
    RULE_ANEW,
    RULE_SUM,
    RULE_MOST,
    RULE_ANY,
    RULE_AT_PEAK,
    RULE_BY_TIME,
    RULE_BY_MALLOC,
    RULE_BY_ELAPSED,
    RULE_BY_BASE,
    RULE_MARGIN,
    RULE_POINTS,
    RULE_MOMENTS,
    RULE_NAMES,
    RULE_NATIVE
};

/* A column without a row does not compile. */
enum {
#define RULE(key, rule) RULE_OF_##key = RULE_##rule,
#include "output/model/merge_rules.def"
#undef RULE
};

static const struct rule_row {
    enum value_kind kind;
    enum merge_rule rule;
    size_t offset;
} rows[] = {
#define COLUMN(key, kind, group, width, title, help)                                               \
    { VALUE_##kind, (enum merge_rule)RULE_OF_##key, offsetof(struct line_stats, key) },
#include "output/model/columns.def"
#undef COLUMN
};

enum { NAMES_MAX = 100 };

/* ---- numbers ---- */

int64_t merge_count(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

void merge_waits(struct wait_times *to, const struct wait_times *from)
{
    for (size_t i = 0; i < WAIT_KINDS; i++)
        to->seconds[i] += from->seconds[i];
}

static double line_own_s(const struct line_stats *line)
{
    return line->cpu_python_s + line->cpu_native_s + line->cpu_kernel_s + line->idle_s;
}

static double rule_weight(enum merge_rule rule, const struct merge_part *part,
                          const struct line_stats *line)
{
    switch (rule) {
    case RULE_BY_TIME:
        return line_own_s(line);
    case RULE_BY_MALLOC:
        return line->n_malloc_mb;
    case RULE_BY_ELAPSED:
        return part->elapsed_s;
    case RULE_BY_BASE:
    case RULE_MARGIN:
        return part->base_s;
    case RULE_AT_PEAK:
        return part->has_peak;
    default:
        return 1;
    }
}

static void sum_add(enum value_kind kind, const void *from, void *to)
{
    if (kind == VALUE_WAITS)
        merge_waits(to, from);
    else if (kind == VALUE_COUNT)
        *(int64_t *)to = merge_count(*(int64_t *)to, *(const int64_t *)from);
    else
        *(double *)to += *(const double *)from;
}

/* ---- lists ---- */

void *merge_list_grow(struct report *report, void *items, size_t count, size_t item_size)
{
    if (count & (count - 1))
        return items;
    void *grown = arena_take(&report->arena, (count ? 2 * count : 1) * item_size);
    if (grown && count)
        memcpy(grown, items, count * item_size);
    return grown;
}

static double value_at(const struct point_list *list, size_t next, double time_ns, double end_s)
{
    bool is_over = next == list->count && time_ns > 1e9 * end_s;
    return next && !is_over ? list->items[next - 1].megabytes : 0;
}

int merge_points(struct report *report, struct point_list *to, double to_end_s,
                 const struct point_list *from, double from_end_s)
{
    CLEANUP(timeline_done) struct timeline timeline = { 0 };
    size_t i = 0, j = 0;
    int error = 0;
    if (!from->count)
        return 0;
    while ((i < to->count || j < from->count) && !error) {
        double to_ns = i < to->count ? to->items[i].time_ns : INFINITY;
        double from_ns = j < from->count ? from->items[j].time_ns : INFINITY;
        double time_ns = fmin(to_ns, from_ns);
        i += to_ns <= time_ns;
        j += from_ns <= time_ns;
        double megabytes =
            fmax(value_at(to, i, time_ns, to_end_s), value_at(from, j, time_ns, from_end_s));
        error =
            timeline_add(&timeline, (uint64_t)fmin(fmax(time_ns, 0), 9e18), 1048576 * megabytes);
    }
    return error ? error : timeline_write(&timeline, &report->arena, to);
}

/* All of them for now. */
static int moments_add(struct merge *merge, const struct merge_part *part,
                       const struct number_list *from, struct number_list *to)
{
    double shift = merge->report->start_time_perf - part->report->start_time_perf;
    for (size_t i = 0; i < from->count; i++) {
        to->items = merge_list_grow(merge->report, to->items, to->count, sizeof *to->items);
        if (!to->items)
            return -ENOMEM;
        to->items[to->count++] = from->items[i] + shift;
    }
    return 0;
}

static int number_is_bigger(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* They are a sample as it is; of more than there may be, each so-many-th is one, too. */
static void moments_finish(struct number_list *list)
{
    size_t kept = list->count < MOMENTS_MAX ? list->count : MOMENTS_MAX;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, number_is_bigger);
    for (size_t i = 0; i < kept; i++)
        list->items[i] = list->items[i * list->count / kept];
    list->count = kept;
}

static int native_add(struct report *report, const struct native_list *from, struct native_list *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct native_share *share = &from->items[i];
        size_t at = 0;
        while (at < to->count && (strcmp(to->items[at].symbol, share->symbol) != 0 ||
                                  strcmp(to->items[at].module, share->module) != 0))
            at++;
        if (at < to->count) {
            to->items[at].seconds += share->seconds;
            continue;
        }
        to->items = merge_list_grow(report, to->items, to->count, sizeof *to->items);
        if (!to->items)
            return -ENOMEM;
        struct native_share copy = { report_text(report, share->symbol),
                                     report_text(report, share->module), share->seconds };
        if (!copy.symbol || !copy.module)
            return -ENOMEM;
        to->items[to->count++] = copy;
    }
    return 0;
}

static int native_is_smaller(const void *a, const void *b)
{
    const struct native_share *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? 1 : -1;
    int order = strcmp(left->symbol, right->symbol);
    return order ? order : strcmp(left->module, right->module);
}

static void native_finish(struct native_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, native_is_smaller);
    list->count = list->count < NATIVE_TOP ? list->count : NATIVE_TOP;
}

static bool has_name(const struct text_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return false;
}

static int names_add(struct merge *merge, const struct text_list *from, struct text_list *to)
{
    for (size_t i = 0; i < from->count; i++) {
        if (has_name(to, from->items[i]))
            continue;
        if (to->count == NAMES_MAX) {
            merge->names_left_out++;
            continue;
        }
        to->items = merge_list_grow(merge->report, to->items, to->count, sizeof *to->items);
        const char *name = to->items ? report_text(merge->report, from->items[i]) : NULL;
        if (!name)
            return -ENOMEM;
        to->items[to->count++] = name;
    }
    return 0;
}

static int name_is_later(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_finish(struct text_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, name_is_later);
}

/* ---- rules ---- */

static int value_add(struct merge *merge, const struct merge_part *part, double ended_s,
                     const struct rule_row *row, double weight, const void *from, void *to)
{
    switch (row->rule) {
    case RULE_TEXT:
    case RULE_ANEW:
        return 0;
    case RULE_SUM:
        sum_add(row->kind, from, to);
        return 0;
    case RULE_MOST:
        *(double *)to = fmax(*(double *)to, *(const double *)from);
        return 0;
    case RULE_ANY:
        *(bool *)to |= *(const bool *)from;
        return 0;
    case RULE_MARGIN:
        *(double *)to += pow(weight * *(const double *)from, 2);
        return 0;
    case RULE_POINTS:
        return merge_points(merge->report, to, ended_s, from, part->elapsed_s);
    case RULE_MOMENTS:
        return moments_add(merge, part, from, to);
    case RULE_NAMES:
        return names_add(merge, from, to);
    case RULE_NATIVE:
        return native_add(merge->report, from, to);
    default:
        *(double *)to += weight * *(const double *)from;
        return 0;
    }
}

int merge_line_add(struct merge *merge, const struct merge_part *part, double ended_s,
                   const struct line_stats *from, struct line_stats *to)
{
    int error = 0;
    for (size_t i = 0; i < column_count && !error; i++) {
        double weight = rule_weight(rows[i].rule, part, from);
        error = value_add(merge, part, ended_s, &rows[i], weight,
                          (const char *)from + rows[i].offset, (char *)to + rows[i].offset);
    }
    return error;
}

static double share(double part, double whole, double most)
{
    return whole > 0 ? fmin(fmax(part / whole, 0), most) : 0;
}

static void value_finish(const struct rule_row *row, double weight, void *value)
{
    switch (row->rule) {
    case RULE_BY_TIME:
    case RULE_BY_MALLOC:
    case RULE_BY_ELAPSED:
    case RULE_BY_BASE:
        *(double *)value = share(*(double *)value, weight, INFINITY);
        return;
    case RULE_MARGIN:
        *(double *)value = share(sqrt(*(double *)value), weight, 100);
        return;
    case RULE_MOMENTS:
        moments_finish(value);
        return;
    case RULE_NAMES:
        names_finish(value);
        return;
    case RULE_NATIVE:
        native_finish(value);
        return;
    default:
        return;
    }
}

void merge_line_finish(struct merge *merge, struct line_stats *line)
{
    const struct merge_part *joint = &merge->joint;
    for (size_t i = 0; i < column_count; i++)
        value_finish(&rows[i], rule_weight(rows[i].rule, joint, line),
                     (char *)line + rows[i].offset);
    line->n_cpu_percent_python = 100 * share(line->cpu_python_s, joint->base_s, 1);
    line->n_cpu_percent_c = 100 * share(line->cpu_native_s, joint->base_s, 1);
    line->n_sys_percent = 100 * share(line->cpu_kernel_s + line->idle_s, joint->base_s, 1);
    line->n_usage_fraction = share(line->allocated_mb, merge->report->totals.allocated_mb, 1);
    double mallocs = fmax((double)line->n_mallocs, line->n_malloc_mb > 0);
    line->n_avg_mb = share(line->n_malloc_mb, mallocs, line->n_peak_mb);
}
