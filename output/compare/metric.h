/*
 * What a profile says of a line, a file or the whole in numbers that can be compared, with the
 * margins that sampling leaves them. What a profile does not know is NaN, never zero.
 */
#pragma once

#include "output/model/report.h"

enum metric {
#define METRIC(name, ...) METRIC_##name,
#include "output/compare/metrics.def"
#undef METRIC
    METRIC_COUNT
};

struct metric_row {
    const char *key;
    enum value_kind kind; /* seconds or megabytes */
    bool of_lines;
    const char *title, *help;
};

extern const struct metric_row metric_rows[METRIC_COUNT];

/* METRIC_COUNT when there is none of that key; "peak" is another name of "memory". */
enum metric metric_find(const char *key, size_t length);

struct measure {
    double values[METRIC_COUNT];    /* NaN: not known */
    double errors[METRIC_COUNT];    /* half-widths of 95 % intervals; 0: exact, or not known */
    double roundings[METRIC_COUNT]; /* what they may be off, as a profile's numbers are rounded */
};

/* A profile of Scalene's own has no seconds: its shares are of the elapsed time. */
bool measure_has_seconds(const struct report *report);

void measure_line(const struct report *report, const struct line_stats *line, struct measure *ret);
void measure_file(const struct report *report, const struct report_file *file, struct measure *ret);
void measure_whole(const struct report *report, struct measure *ret);
