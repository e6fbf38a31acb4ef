#include "sampler/loop/clock.h"

#include <math.h>
#include <stdbool.h>

static const double SMOOTHING =
    0.05; /* weight of the newest cost: some twenty looks are remembered */

/* The first looks cannot wait until there is a budget for them, and nobody learns anything from a
 * silence without an end, however long a pause was that went wrong. */
static const double ADVANCE_NS = 1e7, LONGEST_SILENCE_NS = 1e9, REPAYING_LOOKS = 4;

void tick_clock_init(struct tick_clock *clock, double rate_hz, double pause_share, double cpu_share,
                     uint64_t seed, uint64_t now_ns)
{
    *clock = (struct tick_clock){
        .fastest_ns = 1e9 / rate_hz,
        .mean_ns = 1e9 / rate_hz,
        .next_ns = now_ns,
        .start_ns = now_ns,
        .random = seed | 1,
        .pause_share = pause_share,
        .cpu_share = cpu_share,
    };
}

/* xorshift64*: uniform in (0, 1]. */
static double random_next(struct tick_clock *clock)
{
    clock->random ^= clock->random >> 12;
    clock->random ^= clock->random << 25;
    clock->random ^= clock->random >> 27;
    uint64_t bits = clock->random * 0x2545F4914F6CDD1Du >> 11;
    return ((double)bits + 1) / 9007199254740992.0;
}

uint64_t tick_clock_next(struct tick_clock *clock, uint64_t now_ns)
{
    double gap_ns = -clock->mean_ns * log(random_next(clock));
    uint64_t last_ns = clock->next_ns;
    clock->next_ns += (uint64_t)gap_ns;
    if (clock->next_ns < now_ns) {
        clock->missed += 1 + (uint64_t)((double)(now_ns - clock->next_ns) / clock->mean_ns);
        clock->next_ns = now_ns + (uint64_t)gap_ns;
    }
    clock->looks++;
    clock->gaps_ns += clock->next_ns - last_ns;
    return clock->next_ns;
}

/*
 * How much longer than by the usual gap the budget has no room for what was spent and one more
 * look: chance makes looks come in bunches, and what they cost is learnt from the first ones. Made
 * up for by some looks and not by the next alone, which would stand for so much more than others.
 */
static double gap_for_debt(const struct tick_clock *clock, double usual_ns)
{
    double due_ns = (clock->spent_ns + clock->pause_ns) / clock->pause_share - ADVANCE_NS;
    double debt_ns = due_ns - (double)(clock->next_ns - clock->start_ns) - usual_ns;
    return fmax(0, fmin(debt_ns / REPAYING_LOOKS, LONGEST_SILENCE_NS));
}

static void mean_set(struct tick_clock *clock)
{
    double usual_ns = fmax(clock->fastest_ns, fmax(clock->pause_ns / clock->pause_share,
                                                   clock->cpu_ns / clock->cpu_share));
    clock->mean_ns = usual_ns + gap_for_debt(clock, usual_ns);
}

void tick_clock_charge(struct tick_clock *clock, uint64_t pause_ns)
{
    clock->spent_ns += (double)pause_ns;
    bool is_first = clock->spent_ns == (double)pause_ns; /* that cost anything: believed at once */
    clock->pause_ns += (is_first ? 1 : SMOOTHING) * ((double)pause_ns - clock->pause_ns);
    mean_set(clock);
}

void tick_clock_weigh(struct tick_clock *clock, uint64_t cpu_ns)
{
    clock->cpu_ns += SMOOTHING * ((double)cpu_ns - clock->cpu_ns);
    mean_set(clock);
}

double tick_clock_rate(const struct tick_clock *clock)
{
    return 1e9 / clock->mean_ns;
}

double tick_clock_mean_rate(const struct tick_clock *clock)
{
    return clock->looks ? 1e9 * (double)clock->looks / (double)clock->gaps_ns
                        : tick_clock_rate(clock);
}
