#include "sampler/loop/clock.h"

#include <math.h>

static const double SMOOTHING =
    0.05; /* weight of the newest cost: some twenty looks are remembered */

void tick_clock_init(struct tick_clock *clock, double rate_hz, double pause_share, double cpu_share,
                     uint64_t seed, uint64_t now_ns)
{
    *clock = (struct tick_clock){
        .fastest_ns = 1e9 / rate_hz,
        .mean_ns = 1e9 / rate_hz,
        .next_ns = now_ns,
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
    clock->next_ns += (uint64_t)gap_ns;
    if (clock->next_ns < now_ns) {
        clock->missed += 1 + (uint64_t)((double)(now_ns - clock->next_ns) / clock->mean_ns);
        clock->next_ns = now_ns + (uint64_t)gap_ns;
    }
    return clock->next_ns;
}

static double gap_for(double cost_ns, double share)
{
    return share > 0 ? cost_ns / share : 0;
}

void tick_clock_charge(struct tick_clock *clock, uint64_t pause_ns, uint64_t cpu_ns)
{
    clock->pause_ns += SMOOTHING * ((double)pause_ns - clock->pause_ns);
    clock->cpu_ns += SMOOTHING * ((double)cpu_ns - clock->cpu_ns);
    clock->mean_ns = fmax(clock->fastest_ns, fmax(gap_for(clock->pause_ns, clock->pause_share),
                                                  gap_for(clock->cpu_ns, clock->cpu_share)));
}

double tick_clock_rate(const struct tick_clock *clock)
{
    return 1e9 / clock->mean_ns;
}
