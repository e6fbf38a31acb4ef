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

double report_base_s(const struct report *report)
{
    const struct report_totals *totals = &report->totals;
    return totals->cpu_python_s + totals->cpu_native_s + totals->cpu_kernel_s + totals->idle_s;
}
