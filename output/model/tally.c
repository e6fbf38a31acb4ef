#include "output/model/tally.h"

#include "sampler/base/arena.h"
#include "sampler/base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int tally_add_process(struct tally *tally, uint32_t process)
{
    size_t word = process / 64;
    if (word >= tally->process_words) {
        uint64_t *words = realloc(tally->processes, (word + 1) * sizeof *words);
        if (!words)
            return -ENOMEM;
        memset(words + tally->process_words, 0, (word + 1 - tally->process_words) * sizeof *words);
        tally->processes = words;
        tally->process_words = word + 1;
    }
    tally->processes[word] |= (uint64_t)1 << process % 64;
    return 0;
}

void tally_move_processes(struct tally *tally, const uint32_t *moved, size_t count)
{
    for (size_t i = 0; i < count && i / 64 < tally->process_words; i++) {
        uint64_t bit = (uint64_t)1 << i % 64;
        if (!(tally->processes[i / 64] & bit))
            continue;
        tally->processes[i / 64] &= ~bit;
        if (moved[i] == UINT32_MAX)
            tally->gone_processes++;
        else
            tally->processes[moved[i] / 64] |= (uint64_t)1 << moved[i] % 64;
    }
}

int tally_add(struct tally *tally, const struct charge *charge)
{
    double seconds = (double)charge_base_ns(charge) / 1e9;
    tally->python_ns += charge->python_ns;
    tally->native_ns += charge->native_ns;
    tally->kernel_ns += charge->kernel_ns;
    tally->idle_ns += charge->idle_ns;
    if (charge->wait_ns)
        tally->wait_ns[charge->wait_kind] += charge->wait_ns;
    tally->samples += charge->samples;
    tally->squares += seconds * seconds;
    tally->utilization += seconds * charge->utilization;
    return tally_add_process(tally, charge->process);
}

/* With more functions than are kept the one with the least time makes room: it is no candidate for
 * the top. */
int tally_add_native(struct tally *tally, const char *symbol, const char *module, uint64_t ns)
{
    size_t least = 0;
    for (size_t i = 0; i < tally->native_count; i++) {
        struct native_tally *native = &tally->natives[i];
        if (native->symbol == symbol && native->module == module) {
            native->ns += ns;
            return 0;
        }
        if (native->ns < tally->natives[least].ns)
            least = i;
    }
    size_t count = tally->native_count;
    if (count < NATIVE_TALLIES) {
        if ((count & (count - 1)) == 0) { /* room doubles */
            size_t room = count ? 2 * count : 1;
            struct native_tally *natives = realloc(tally->natives, room * sizeof *natives);
            if (!natives)
                return -ENOMEM;
            tally->natives = natives;
        }
        least = tally->native_count++;
    }
    tally->natives[least] = (struct native_tally){ symbol, module, ns };
    return 0;
}

/* The same moments each time, and evenly spread ones: a hash of the number stands for chance
 * (splitmix64). */
static uint64_t scramble(uint64_t number)
{
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
    number = (number ^ number >> 27) * 0x94D049BB133111EBu;
    return number ^ number >> 31;
}

/* Vitter's reservoir: each of the moments that came is kept with the same probability. */
int tally_add_moment(struct tally *tally, double seconds)
{
    uint64_t number = tally->moment_count++;
    if (number >= MOMENTS_MAX) {
        uint64_t at = scramble(number * 0x9E3779B97F4A7C15u) % (number + 1);
        if (at < MOMENTS_MAX)
            tally->moments[at] = seconds;
        return 0;
    }
    if ((number & (number - 1)) == 0) {
        double *moments = realloc(tally->moments, (number ? 2 * number : 1) * sizeof *moments);
        if (!moments) {
            tally->moment_count--;
            return -ENOMEM;
        }
        tally->moments = moments;
    }
    tally->moments[number] = seconds;
    return 0;
}

uint64_t tally_moments_dropped(const struct tally *tally)
{
    return tally->moment_count > MOMENTS_MAX ? tally->moment_count - MOMENTS_MAX : 0;
}

void tally_done(struct tally *tally)
{
    free(tally->processes);
    free(tally->natives);
    free(tally->moments);
    if (tally->memory)
        memory_tally_done(tally->memory);
    free(tally->memory);
}

/*
 * Half of Wilson's 95 % interval for the share. The samples weigh differently, so their number is
 * the one that samples of equal weight would need for the same variance.
 */
static double margin(double share, double line_squares, const struct tally_base *base)
{
    const double z = 1.96;
    double total = base->seconds * base->seconds;
    double spread = line_squares * (1 - 2 * share) + share * share * base->squares;
    double count = spread > 0 ? share * (1 - share) * total / spread : total / base->squares;
    if (count < 1)
        count = 1;
    double width = sqrt(share * (1 - share) / count + z * z / (4 * count * count));
    return z * width / (1 + z * z / count);
}

static int native_is_bigger(const void *a, const void *b)
{
    const struct native_share *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? 1 : -1;
    int order = strcmp(left->symbol, right->symbol);
    return order ? order : strcmp(left->module, right->module);
}

static int finish_natives(const struct tally *tally, struct arena *arena, struct native_list *ret)
{
    struct native_share *shares = arena_take(arena, tally->native_count * sizeof *shares);
    if (!shares)
        return -ENOMEM;
    for (size_t i = 0; i < tally->native_count; i++) {
        const struct native_tally *native = &tally->natives[i];
        shares[i] =
            (struct native_share){ native->symbol, native->module, (double)native->ns / 1e9 };
    }
    qsort(shares, tally->native_count, sizeof *shares, native_is_bigger);
    ret->items = shares;
    ret->count = tally->native_count < NATIVE_TOP ? tally->native_count : NATIVE_TOP;
    return 0;
}

static int number_is_bigger(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int finish_moments(const struct tally *tally, double start, struct arena *arena,
                          struct number_list *ret)
{
    size_t count = tally->moment_count < MOMENTS_MAX ? tally->moment_count : MOMENTS_MAX;
    double *moments = arena_take(arena, count * sizeof *moments);
    if (!moments)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        moments[i] = start + tally->moments[i];
    qsort(moments, count, sizeof *moments, number_is_bigger);
    *ret = (struct number_list){ moments, count };
    return 0;
}

static int64_t count_processes(const struct tally *tally)
{
    int64_t count = (int64_t)tally->gone_processes;
    for (size_t i = 0; i < tally->process_words; i++)
        count += __builtin_popcountll(tally->processes[i]);
    return count;
}

int tally_finish(const struct tally *tally, const struct tally_base *base, struct arena *arena,
                 struct line_stats *ret)
{
    double own = (double)tally_base_ns(tally) / 1e9;
    ret->cpu_python_s = (double)tally->python_ns / 1e9;
    ret->cpu_native_s = (double)tally->native_ns / 1e9;
    ret->cpu_kernel_s = (double)tally->kernel_ns / 1e9;
    ret->idle_s = (double)tally->idle_ns / 1e9;
    ret->cumulative_s = (double)tally->cumulative_ns / 1e9;
    for (size_t i = 0; i < WAIT_KINDS; i++)
        ret->wait_s.seconds[i] = (double)tally->wait_ns[i] / 1e9;
    ret->samples = (int64_t)tally->samples;
    ret->n_processes = count_processes(tally);
    if (base->seconds > 0) {
        ret->n_cpu_percent_python = 100 * ret->cpu_python_s / base->seconds;
        ret->n_cpu_percent_c = 100 * ret->cpu_native_s / base->seconds;
        ret->n_sys_percent = 100 * (ret->cpu_kernel_s + ret->idle_s) / base->seconds;
    }
    if (own > 0) {
        double share = own < base->seconds ? own / base->seconds : 1;
        ret->n_core_utilization = fmin(tally->utilization / own, 1);
        ret->error_percent = 100 * margin(share, tally->squares, base);
    }
    int error = finish_natives(tally, arena, &ret->native_top);
    if (!error)
        error = finish_moments(tally, base->start_time_perf, arena, &ret->cpu_samples_list);
    return error || !tally->memory ? error
                                   : memory_tally_finish(tally->memory, &base->memory, arena, ret);
}
