#include "sampler/app/run_sampling.h"

#include "sampler/app/run_memory.h"

#include <time.h>

/* While nothing is sampled, processes may begin and end by the thousands still. */
enum { ENDED_KEPT = 64 };

int run_tick(struct run *run)
{
    struct members_glance before, after;
    uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    members_look(run->members, &before);
    int error = members_tick(run->members, clock_ns(CLOCK_MONOTONIC), run->profile);
    members_look(run->members, &after);
    tick_clock_charge(&run->clock, after.counts.paused_ns - before.counts.paused_ns,
                      clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
    return error;
}

/* Up to here it is told; the profile counts it, or does not while it is muted. */
static int members_settle(struct run *run)
{
    return members_tell(run->members, clock_ns(CLOCK_MONOTONIC), true, run->profile);
}

int run_switch(struct run *run, bool on)
{
    if (on == !run->is_off)
        return 0;
    int error = on ? 0 : run_tick(run);
    if (!error)
        error = members_settle(run);
    if (!error)
        error = run_memory_switch(run, on);
    profile_mute(run->profile, !on);
    run->is_off = !on;
    run->ended_count = 0;
    run->was_off |= !on;
    run->was_on |= on;
    run->clock.next_ns = clock_ns(CLOCK_MONOTONIC);
    return error;
}

int run_sample_due(struct run *run, uint64_t now_ns)
{
    members_open_due(run->members, now_ns, &run->refusal); /* off, too: to say who they are */
    if (run->is_off && run->ended_count >= ENDED_KEPT) {
        run->ended_count = 0;
        return members_settle(run);
    }
    if (run->is_off || now_ns < run->clock.next_ns)
        return 0;
    int error = run_tick(run);
    tick_clock_next(&run->clock, clock_ns(CLOCK_MONOTONIC));
    return error;
}

uint64_t run_sample_deadline_ns(const struct run *run)
{
    uint64_t members_ns = members_deadline_ns(run->members);
    return run->is_off || members_ns < run->clock.next_ns ? members_ns : run->clock.next_ns;
}
