#include "sampler/app/run_sampling.h"

#include "sampler/app/run_memory.h"
#include "sampler/app/session.h"

#include <time.h>

enum {
    /* Between two looks, or while nothing is sampled, processes may begin and end by the hundreds:
     * each keeps half a megabyte of what was found out about it. */
    ENDED_KEPT = 8,
    WEIGH_NS =
        20000000, /* our CPU clock takes a microsecond, which looks that are close need not pay */
    BELOW_FIRST_NS = 10000000, /* doubled each time: it asks all processes who their parent is */
};

int run_tick(struct run *run)
{
    struct members_glance before, after;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = 0;
    bool weighs = now_ns >= run->weigh_ns;
    if (weighs)
        cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    members_look(run->members, &before);
    int error = members_tick(run->members, now_ns, run->profile);
    members_look(run->members, &after);
    tick_clock_charge(&run->clock, after.counts.paused_ns - before.counts.paused_ns);
    if (weighs) {
        tick_clock_weigh(&run->clock, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
        run->weigh_ns = now_ns + WEIGH_NS;
    }
    return error;
}

/* Up to here it is told; the profile counts it, or does not while it is muted. */
static int members_settle(struct run *run)
{
    return members_tell(run->members, clock_ns(CLOCK_MONOTONIC), true, run->profile);
}

/* While it is off, what was asked for does not come nearer. */
static uint64_t end_find(const struct run *run)
{
    if (run->is_off || run->options->duration_s <= 0)
        return UINT64_MAX;
    uint64_t wanted_ns = nanoseconds(run->options->duration_s);
    return run->switched_ns + (wanted_ns > run->on_ns ? wanted_ns - run->on_ns : 0);
}

void run_begin(struct run *run)
{
    run->switched_ns = run->start_ns;
    run->end_ns = end_find(run);
}

uint64_t run_on_ns(const struct run *run, uint64_t now_ns)
{
    return run->on_ns + (run->is_off ? 0 : now_ns - run->switched_ns);
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
    members_mute(run->members, !on);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    run->on_ns = run_on_ns(run, now_ns);
    run->switched_ns = now_ns;
    run->is_off = !on;
    run->end_ns = end_find(run);
    run->ended_count = 0;
    run->was_off |= !on;
    run->was_on |= on;
    run->clock.next_ns = now_ns;
    return error;
}

/* A command that is no Python, and whose children are not wanted: were those meant? */
static void below_look(struct run *run, uint64_t now_ns)
{
    if (run->options->subprocesses || !run->launch || *run->below || now_ns < run->below_ns)
        return;
    run->below_gap_ns = run->below_gap_ns ? 2 * run->below_gap_ns : BELOW_FIRST_NS;
    run->below_ns = now_ns + run->below_gap_ns;
    session_name_below(launch_pid(run->launch), run->below, sizeof run->below);
}

int run_sample_due(struct run *run, uint64_t now_ns)
{
    int error = 0;
    if (!members_open_due(run->members, now_ns, &run->refusal)) /* off, too: to say who they are */
        below_look(run, now_ns);
    if (run->ended_count >= ENDED_KEPT) {
        run->ended_count = 0;
        error = members_finish(run->members, run->profile);
    }
    if (error || run->is_off || now_ns < run->clock.next_ns)
        return error;
    error = run_tick(run);
    tick_clock_next(&run->clock, clock_ns(CLOCK_MONOTONIC));
    return error;
}

uint64_t run_sample_deadline_ns(const struct run *run)
{
    uint64_t members_ns = members_deadline_ns(run->members);
    return run->is_off || members_ns < run->clock.next_ns ? members_ns : run->clock.next_ns;
}
