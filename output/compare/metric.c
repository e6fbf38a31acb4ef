#include "output/compare/metric.h"

#include <math.h>
#include <string.h>

const struct metric_row metric_rows[METRIC_COUNT] = {
#define METRIC(name, key, kind, of_lines, title, help)                                             \
    [METRIC_##name] = { key, VALUE_##kind, of_lines, title, help },
#include "output/compare/metrics.def"
#undef METRIC
};

enum metric metric_find(const char *key, size_t length)
{
    static const char peak[] = "peak";
    if (length == strlen(peak) && strncmp(key, peak, length) == 0)
        return METRIC_MEMORY;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strlen(metric_rows[i].key) == length && strncmp(metric_rows[i].key, key, length) == 0)
            return (enum metric)i;
    return METRIC_COUNT;
}

/* Of the normal distribution: 95 % lie within so many standard deviations. */
#define DEVIATIONS 1.96

/* A profile's numbers have six digits behind the point: half of the last, and a bit, as such
 * numbers are not exact in binary. */
#define TEXT_ROUNDING 0.501e-6

bool measure_has_seconds(const struct report *report)
{
    return report->profiler_name != NULL;
}

static void measure_clear(struct measure *measure)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        measure->values[i] = NAN;
        measure->errors[i] = 0;
        measure->roundings[i] = TEXT_ROUNDING;
    }
    measure->roundings[METRIC_CPU] = 3 * TEXT_ROUNDING; /* of so many numbers */
    measure->roundings[METRIC_TIME] = 4 * TEXT_ROUNDING;
}

/* ---- time ---- */

static void seconds_set(const struct report *report, const struct line_stats *line, double *values)
{
    if (measure_has_seconds(report)) {
        values[METRIC_PYTHON] = line->cpu_python_s;
        values[METRIC_NATIVE] = line->cpu_native_s;
        values[METRIC_KERNEL] = line->cpu_kernel_s;
        values[METRIC_IDLE] = line->idle_s;
        values[METRIC_CPU] = line->cpu_python_s + line->cpu_native_s + line->cpu_kernel_s;
        values[METRIC_TIME] = values[METRIC_CPU] + line->idle_s;
        return;
    }
    double percent_s = report->elapsed_time_sec / 100;
    values[METRIC_PYTHON] = line->n_cpu_percent_python * percent_s;
    values[METRIC_NATIVE] = line->n_cpu_percent_c * percent_s;
    values[METRIC_TIME] = line_percent(line) * percent_s;
}

/* The margin is of the line's whole time; a part of it has that of so much fewer samples. */
static void seconds_errors_set(const struct report *report, const struct line_stats *line,
                               struct measure *measure)
{
    double all = measure->values[METRIC_TIME];
    double margin_s = line->error_percent / 100 * report_base_s(report);
    for (int i = METRIC_TIME; i <= METRIC_IDLE && all > 0; i++)
        if (measure->values[i] > 0)
            measure->errors[i] = margin_s * sqrt(measure->values[i] / all);
}

/* ---- memory ---- */

/* Bytes are sampled as a Poisson process: so many samples have the square root for deviation. */
static void memory_errors_set(const struct report *report, struct measure *measure)
{
    double window_mb = (double)report->sampling.allocation_window / 1048576;
    for (int i = METRIC_MEMORY; i < METRIC_COUNT; i++)
        if (measure->values[i] > 0 && window_mb > 0)
            measure->errors[i] = DEVIATIONS * sqrt(measure->values[i] * window_mb);
}

static void memory_set(const struct report *report, const struct line_stats *line,
                       struct measure *measure)
{
    if (!report->memory)
        return;
    measure->values[METRIC_ALLOCATED] = line->n_malloc_mb;
    measure->values[METRIC_COPIED] = line->n_copy_mb_s * report->elapsed_time_sec;
    measure->roundings[METRIC_COPIED] =
        TEXT_ROUNDING * (line->n_copy_mb_s + report->elapsed_time_sec);
    if (measure_has_seconds(report))
        measure->values[METRIC_LIVE] = line->live_mb;
    memory_errors_set(report, measure);
}

/* ---- lines, files, the whole ---- */

void measure_line(const struct report *report, const struct line_stats *line, struct measure *ret)
{
    measure_clear(ret);
    seconds_set(report, line, ret->values);
    seconds_errors_set(report, line, ret);
    memory_set(report, line, ret);
}

void measure_file(const struct report *report, const struct report_file *file, struct measure *ret)
{
    struct measure line;
    measure_line(report, &(struct line_stats){ 0 }, ret);
    for (size_t i = 0; i < file->lines.count; i++) {
        measure_line(report, &file->lines.items[i], &line);
        for (int n = 0; n < METRIC_COUNT; n++) {
            ret->values[n] += line.values[n];
            ret->errors[n] = hypot(ret->errors[n], line.errors[n]);
            ret->roundings[n] += line.values[n] > 0 ? line.roundings[n] : 0;
        }
    }
}

/* How the time is shared out is known from the samples; how much it is in all, from the kernel. */
static void shares_errors_set(const struct report *report, struct measure *measure)
{
    double base_s = report_base_s(report), samples = (double)report->sampling.samples;
    for (int i = METRIC_PYTHON; i <= METRIC_IDLE && base_s > 0 && samples > 0; i++) {
        double share = fmin(fmax(measure->values[i] / base_s, 0), 1);
        measure->errors[i] = DEVIATIONS * sqrt(share * (1 - share) / samples) * base_s;
    }
}

static void totals_set(const struct report *report, struct measure *ret)
{
    const struct report_totals *totals = &report->totals;
    ret->values[METRIC_PYTHON] = totals->cpu_python_s;
    ret->values[METRIC_NATIVE] = totals->cpu_native_s;
    ret->values[METRIC_KERNEL] = totals->cpu_kernel_s;
    ret->values[METRIC_IDLE] = totals->idle_s;
    ret->values[METRIC_CPU] = totals->cpu_python_s + totals->cpu_native_s + totals->cpu_kernel_s;
    ret->values[METRIC_TIME] = report_base_s(report);
    shares_errors_set(report, ret);
    if (report->memory) {
        ret->values[METRIC_ALLOCATED] = totals->allocated_mb;
        ret->values[METRIC_LIVE] = totals->live_mb;
        ret->values[METRIC_COPIED] = totals->copied_mb;
    }
}

/* Without totals: what the files have. */
static void files_sum(const struct report *report, struct measure *ret)
{
    struct measure file;
    measure_line(report, &(struct line_stats){ 0 }, ret);
    for (size_t i = 0; i < report->files.count; i++) {
        measure_file(report, &report->files.items[i], &file);
        for (int n = 0; n < METRIC_COUNT; n++)
            ret->values[n] += file.values[n];
    }
}

void measure_whole(const struct report *report, struct measure *ret)
{
    measure_clear(ret);
    if (measure_has_seconds(report))
        totals_set(report, ret);
    else
        files_sum(report, ret);
    ret->values[METRIC_ELAPSED] = report->elapsed_time_sec;
    if (report->memory)
        ret->values[METRIC_MEMORY] = report->max_footprint_mb;
    memory_errors_set(report, ret);
}
