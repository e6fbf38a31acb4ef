/* What adds up of memory on one line or in one function, over all processes. */
#pragma once

#include "output/model/leaks.h"
#include "output/model/line_stats.h"
#include "output/model/timeline.h"

struct memory_tally { /* all zero is nothing */
    double allocated_bytes, python_bytes, freed_bytes, copied_bytes;
    double allocations; /* how many there were, as far as samples tell */
    double live_bytes, peak_bytes;
    double left_bytes;          /* never freed, of processes that have ended */
    double ended_bytes;         /* live at their peaks, of processes that have ended */
    double at_peak_bytes;       /* of all processes; filled in before a report */
    struct timeline footprints; /* of the whole process, when the line allocated or was freed from
                                 */
    struct survival survival;
};

/* What shares are of, and rates. */
struct memory_base {
    double allocated_bytes, elapsed_s;
    uint64_t now_ns;
};

void memory_tally_add(struct memory_tally *tally, uint64_t size_bytes, double weight_bytes,
                      bool python);

/* What weights add up to, as the report has it: no block has less than a byte, so that is nothing.
 */
double memory_megabytes(double bytes);

/* What is followed begins to be live, or goes. */
void memory_tally_grow(struct memory_tally *tally, uint64_t time_ns, double weight_bytes);
void memory_tally_shrink(struct memory_tally *tally, uint64_t born_ns, uint64_t time_ns,
                         double weight_bytes, bool whole);

/* 0 or -ENOMEM */
int memory_tally_finish(const struct memory_tally *tally, const struct memory_base *base,
                        struct arena *arena, struct line_stats *ret);

void memory_tally_done(struct memory_tally *tally);
