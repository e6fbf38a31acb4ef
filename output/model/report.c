#include "output/model/report.h"

#include <stdlib.h>

struct report *report_new(void)
{
    struct report *report = calloc(1, sizeof *report);
    if (report) {
        report->max_footprint_lineno = -1;
        report->main_thread_id = -1;
    }
    return report;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    arena_done(&report->arena);
    free(report);
}

bool report_tells(const struct report *report, const void *member)
{
    return !report->absent || !report->absent[(const char *)member - (const char *)report];
}

bool report_tells_of_files(const struct report *report, size_t member)
{
    return !report->absent_of_files || !report->absent_of_files[member];
}

double report_base_s(const struct report *report)
{
    const struct report_totals *totals = &report->totals;
    return totals->cpu_python_s + totals->cpu_native_s + totals->cpu_kernel_s + totals->idle_s;
}

bool report_has_time(const struct report *report)
{
    static const double LEAST_S = 0.001;
    return report_base_s(report) >= LEAST_S;
}

double report_stack_live_mb(const struct report *report, size_t index)
{
    if (index >= report->memory_stacks_live_mb.count || index >= report->memory_stacks.count)
        return 0;
    double live = report->memory_stacks_live_mb.items[index];
    double allocated = report->memory_stacks.items[index].megabytes;
    return live > 0 ? (live < allocated ? live : allocated) : 0;
}

bool report_thread_is_python(const struct report_thread *thread)
{
    return thread->ident || (thread->name && *thread->name);
}
