#include "output/model/memory_tally.h"

#include <math.h>
#include <stdlib.h>

/* Sums of doubles end a little beside 0. */
double memory_megabytes(double bytes)
{
    return bytes >= 1 ? bytes / 1048576 : 0;
}

static double share(double part, double whole)
{
    return whole > 0 ? fmin(fmax(part / whole, 0), 1) : 0;
}

void memory_tally_add(struct memory_tally *tally, uint64_t size_bytes, double weight_bytes,
                      bool python)
{
    tally->allocated_bytes += weight_bytes;
    tally->python_bytes += python ? weight_bytes : 0;
    tally->allocations += size_bytes ? weight_bytes / (double)size_bytes : 0;
}

void memory_tally_grow(struct memory_tally *tally, uint64_t time_ns, double weight_bytes)
{
    survival_add(&tally->survival, time_ns, tally->live_bytes);
    tally->live_bytes += weight_bytes;
    tally->peak_bytes = fmax(tally->peak_bytes, tally->live_bytes);
}

void memory_tally_shrink(struct memory_tally *tally, uint64_t born_ns, uint64_t time_ns,
                         double weight_bytes, bool whole)
{
    double left = tally->live_bytes - weight_bytes;
    survival_remove(&tally->survival, born_ns, time_ns, tally->live_bytes, left, whole);
    tally->live_bytes = left;
}

int memory_tally_finish(const struct memory_tally *tally, const struct memory_base *base,
                        struct arena *arena, struct line_stats *ret)
{
    double allocations = fmax(tally->allocations, tally->allocated_bytes > 0);
    ret->allocated_mb = ret->n_malloc_mb = memory_megabytes(tally->allocated_bytes);
    ret->freed_mb = memory_megabytes(tally->freed_bytes);
    ret->live_mb = memory_megabytes(tally->live_bytes + tally->left_bytes);
    ret->at_peak_mb = memory_megabytes(tally->at_peak_bytes);
    ret->n_peak_mb = memory_megabytes(tally->peak_bytes);
    ret->n_growth_mb =
        memory_megabytes(survival_growth(&tally->survival, base->now_ns, tally->live_bytes));
    ret->n_mallocs = (int64_t)fmin(round(allocations), 1e15);
    ret->n_python_fraction = share(tally->python_bytes, tally->allocated_bytes);
    ret->n_usage_fraction = share(tally->allocated_bytes, base->allocated_bytes);
    if (allocations > 0)
        ret->n_avg_mb = fmin(ret->n_malloc_mb / allocations, ret->n_peak_mb);
    if (base->elapsed_s > 0)
        ret->n_copy_mb_s = memory_megabytes(tally->copied_bytes) / base->elapsed_s;
    return timeline_write(&tally->footprints, arena, &ret->memory_samples);
}

void memory_tally_done(struct memory_tally *tally)
{
    timeline_done(&tally->footprints);
}
