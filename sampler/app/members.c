#include "sampler/app/members.h"

#include "output/model/array.h"
#include "sampler/app/member.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/cpu_clock.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct members {
    struct stack_options options;
    struct sources *sources;
    uint64_t start_ns, samples;
    bool is_muted;
    struct member **list;
    size_t count, capacity, python;
    size_t bare; /* Pythons that went without ever having had the shim */
    struct stack_counts ended_counts;
};

static void counts_add(struct stack_counts *sum, const struct stack_counts *counts)
{
    sum->clean += counts->clean;
    sum->retried += counts->retried;
    sum->dropped += counts->dropped;
    sum->refused += counts->refused;
    sum->cut += counts->cut;
    sum->pauses += counts->pauses;
    sum->paused_ns += counts->paused_ns;
    if (counts->longest_pause_ns > sum->longest_pause_ns)
        sum->longest_pause_ns = counts->longest_pause_ns;
}

static void member_close(struct members *members, struct member *member)
{
    if (!member->target)
        return;
    struct stack_counts counts = stack_reader_counts(target_reader(member->target));
    counts_add(&members->ended_counts, &counts);
    target_close(member->target);
    member->target = NULL;
}

int members_new(const struct stack_options *options, struct sources *sources, uint64_t start_ns,
                struct members **ret)
{
    struct members *members = calloc(1, sizeof *members);
    if (!members)
        return -ENOMEM;
    members->options = *options;
    members->sources = sources;
    members->start_ns = start_ns;
    *ret = members;
    return 0;
}

void members_free(struct members *members)
{
    if (!members)
        return;
    for (size_t i = 0; i < members->count; i++) {
        member_close(members, members->list[i]);
        free(members->list[i]);
    }
    free(members->list);
    free(members);
}

/* ---- who they are ---- */

static struct member *member_find(struct members *members, pid_t pid)
{
    for (size_t i = 0; i < members->count; i++)
        if (members->list[i]->pid == pid && !members->list[i]->ended)
            return members->list[i];
    return NULL;
}

bool members_include(struct members *members, pid_t pid)
{
    return member_find(members, pid) != NULL;
}

static int member_add(struct members *members, struct member **ret)
{
    if (ARRAY_GROW(members->list, members->count, members->capacity))
        return -ENOMEM;
    struct member *member = calloc(1, sizeof *member);
    if (!member)
        return -ENOMEM;
    members->list[members->count++] = member;
    *ret = member;
    return 0;
}

int members_join(struct members *members, pid_t pid, pid_t ppid, bool born, uint64_t cpu_ns,
                 uint64_t now_ns)
{
    struct member *member, *parent = member_find(members, ppid);
    int error = member_add(members, &member);
    if (error)
        return error;
    *member = (struct member){
        .pid = pid,
        .ppid = ppid,
        .born = born,
        .joined_ns = now_ns,
        .exit_status = -1,
        .rank = -1,
        .cpu_ns = cpu_ns,
        .base_ns = born ? 0 : cpu_ns,
    };
    member_begin(member, 0, now_ns);
    if (born && parent)
        member_inherit(member, parent);
    return 0;
}

void members_end(struct members *members, pid_t pid, int exit_status, uint64_t cpu_ns,
                 uint64_t now_ns)
{
    struct member *member = member_find(members, pid);
    if (!member)
        return;
    uint64_t told_ns = member->base_ns + member->told_ns;
    member->excess_ns = told_ns > cpu_ns ? told_ns - cpu_ns : 0;
    member_learn_cpu(member, cpu_ns);
    member->ended = true;
    member->ended_ns = now_ns;
    member->exit_status = exit_status;
}

void members_mute(struct members *members, bool muted)
{
    members->is_muted = muted;
}

/* ---- opening ---- */

size_t members_open_due(struct members *members, uint64_t now_ns, struct failure *why)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        struct failure refusal = { 0 };
        if (!member_waits_for_open(member) || member->next_try_ns > now_ns)
            continue;
        if (member_open(member, &members->options, members->sources, now_ns, &refusal)) {
            if (member_is_refused(member))
                *why = refusal;
            continue;
        }
        members->python++;
    }
    return members->python;
}

uint64_t members_deadline_ns(const struct members *members)
{
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < members->count; i++)
        if (member_waits_for_open(members->list[i]) && members->list[i]->next_try_ns < first_ns)
            first_ns = members->list[i]->next_try_ns;
    return first_ns;
}

/* ---- the shim ---- */

pid_t members_find_bare(const struct members *members, uint64_t now_ns)
{
    for (size_t i = 0; i < members->count; i++)
        if (member_wants_shim(members->list[i], now_ns))
            return members->list[i]->pid;
    return 0;
}

void members_learn_shim(struct members *members, pid_t pid, int error, uint64_t now_ns)
{
    struct member *member = member_find(members, pid);
    if (member)
        member_learn_shim(member, error, now_ns);
}

bool members_share_ring(const struct members *members, int fd)
{
    struct stat ring;
    if (fstat(fd, &ring) < 0)
        return false;
    for (size_t i = 0; i < members->count; i++)
        if (!members->list[i]->ended && shim_has_ring(members->list[i]->pid, ring.st_ino))
            return true;
    return false;
}

/* ---- what the profile is told ---- */

static int member_tell(struct members *members, struct member *member, bool ended,
                       struct profile *profile)
{
    const struct process_event event = {
        .pid = member->pid,
        .ppid = member->ppid,
        .rank = member->rank,
        .argv = member->argv,
        .executable = *member->executable ? member->executable : NULL,
        .python = member->was_python ? member->python : NULL,
        .cwd = *member->cwd ? member->cwd : NULL,
        .start_s = 1e-9 * (double)(member->joined_ns - members->start_ns),
        .end_s = ended ? 1e-9 * (double)(member->ended_ns - members->start_ns) : 0,
        .cpu_s = 1e-9 * (double)(member->cpu_ns - member->base_ns),
        .peak_rss_bytes = member->peak_rss_bytes,
        .footprint = member->footprint,
        .grown_bytes = member_grown_bytes(member),
        .exit_status = ended ? member->exit_status : -1,
        .note = member_note(member),
    };
    return profile_add_process(profile, &event);
}

/* Without an end it begins anew, should another of its number have ended before. */
static int member_tell_begin(struct members *members, struct member *member,
                             struct profile *profile)
{
    int error = member->told ? 0 : member_tell(members, member, false, profile);
    member->told = !error;
    return error;
}

/* One that nobody has told us of yet may have written down what it does already. */
static int stranger_tell(pid_t pid, struct profile *profile)
{
    char cwd[512];
    member_read_cwd(pid, cwd, sizeof cwd);
    const struct process_event event = { .pid = pid, .rank = -1, .cwd = cwd, .exit_status = -1 };
    return *cwd ? profile_add_process(profile, &event) : 0;
}

int members_introduce(struct members *members, pid_t pid, struct profile *profile)
{
    if (profile_knows(profile, pid))
        return 0;
    struct member *member = member_find(members, pid);
    return member ? member_tell_begin(members, member, profile) : stranger_tell(pid, profile);
}

/* ---- ticks ---- */

struct judging {
    struct profile *profile;
    pid_t pid;
};

static bool stack_takes_idle(void *context, const struct frame_event *frames, size_t count)
{
    const struct judging *judging = context;
    return profile_takes_idle(judging->profile, judging->pid, frames, count);
}

static uint64_t event_cpu_ns(const struct tick_event *tick)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < tick->sample_count; i++)
        sum += tick->samples[i].python_ns + tick->samples[i].native_ns + tick->samples[i].kernel_ns;
    return sum;
}

static int tick_add(struct members *members, struct member *member, struct tick_event *tick,
                    struct profile *profile)
{
    int error = member_tell_begin(members, member, profile);
    if (error)
        return error;
    tick->time_ns -= members->start_ns;
    *(members->is_muted ? &member->base_ns : &member->told_ns) += event_cpu_ns(tick);
    member_learn_cpu(member, member->cpu_ns);
    if (tick->rss_bytes)
        member_learn_memory(member, tick->rss_bytes);
    for (size_t i = 0; i < tick->sample_count; i++) {
        members->samples += tick->samples[i].samples;
        if (tick->samples[i].is_main)
            member->main_ident = tick->samples[i].ident;
    }
    return profile_add_tick(profile, tick);
}

/* CPU time without a stack: of what is no Python, or of an interpreter that only begins. */
static int untold_tell(struct members *members, struct member *member, uint64_t now_ns,
                       struct profile *profile)
{
    struct sample_event sample = {
        .tid = member->pid,
        .ident = member->main_ident,
        .is_main = true,
        .native_ns = member_untold_ns(member),
    };
    struct tick_event tick = {
        .time_ns = now_ns,
        .pid = member->pid,
        .samples = &sample,
        .sample_count = 1,
    };
    return sample.native_ns ? tick_add(members, member, &tick, profile) : 0;
}

/* What is known of its program and not yet told is told, then that is let go. */
static int member_let_go(struct members *members, struct member *member, uint64_t now_ns,
                         struct profile *profile)
{
    struct tick_event tick;
    int error = 0;
    if (member->target && !target_flush(member->target, now_ns, member_untold_ns(member), &tick))
        error = tick_add(members, member, &tick, profile);
    member_close(members, member);
    return error ? error : untold_tell(members, member, now_ns, profile);
}

int members_exec(struct members *members, pid_t pid, uint64_t cpu_ns, uint64_t stack_start,
                 uint64_t now_ns, struct profile *profile)
{
    struct member *member = member_find(members, pid);
    if (!member)
        return 0;
    const struct member *parent = member_find(members, member->ppid);
    member_learn_cpu(member, cpu_ns);
    int error = member_let_go(members, member, now_ns, profile);
    /* one that was opened as it became another program may have shown itself in part as that one */
    bool was_parents = !TAKE(member->execed, true) && parent && parent->has_shim;
    members->bare += member_is_bare(member) && !member->begins && !was_parents &&
                     member->stack_start != stack_start;
    if (!member_begin(member, stack_start, now_ns) && parent)
        member_disinherit(member, parent);
    return error;
}

/*
 * A look found the process gone, or another program in it. As long as the number stands for it the
 * account is exact; else whoever waited for it knows, and its end is told of soon.
 */
static int member_lost(struct members *members, struct member *member, uint64_t now_ns,
                       struct profile *profile)
{
    uint64_t cpu_ns;
    if (cpu_clock_read(member->pid, &cpu_ns) < 0)
        return 0;
    member_learn_cpu(member, cpu_ns);
    member->next_try_ns = now_ns;
    return member_let_go(members, member, now_ns, profile);
}

static int member_tick(struct members *members, struct member *member, uint64_t now_ns,
                       struct profile *profile)
{
    struct judging judging = { profile, member->pid };
    const struct idle_judge judge = { &judging, stack_takes_idle };
    struct tick_event tick;
    int error = target_tick(member->target, now_ns, &judge, &tick);
    member_learn_refusals(member);
    if (!error && member->begins)
        error = untold_tell(members, member, now_ns, profile);
    if (!error) {
        member->begins = member->begins && !tick.sample_count;
        member->had_stacks = member->had_stacks || tick.sample_count;
        return tick_add(members, member, &tick, profile);
    }
    if (error == -ENOMEM || error == -EAGAIN)
        return error == -ENOMEM ? error : 0;
    return member_lost(members, member, now_ns, profile);
}

/* The profile keeps what there is to know of those that ended. */
static int member_finish(struct members *members, struct member *member, struct profile *profile)
{
    int error = member_let_go(members, member, member->ended_ns, profile);
    if (!error)
        error = member_tell_begin(members, member, profile);
    return error ? error : member_tell(members, member, true, profile);
}

/*
 * When several ended at once, their parent's account does not say whose was what (family_watch.h):
 * what looks have met of one was not another's.
 */
static void siblings_settle(struct members *members, const struct member *member)
{
    uint64_t excess_ns = member->excess_ns;
    for (size_t i = 0; i < members->count && excess_ns; i++) {
        struct member *other = members->list[i];
        if (!other->finishes || other == member || other->ppid != member->ppid)
            continue;
        uint64_t untold_ns = member_untold_ns(other);
        uint64_t part_ns = untold_ns < excess_ns ? untold_ns : excess_ns;
        other->cpu_ns -= part_ns;
        excess_ns -= part_ns;
    }
}

/* Its parent has waited for a sibling of which nobody has told us yet: what the account says may be
 * that one's, and is settled when both are here. */
static bool sibling_is_awaited(const struct members *members, const struct member *member)
{
    uint64_t ignored;
    if (!member_untold_ns(member) && !member->excess_ns)
        return false;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *other = members->list[i];
        if (!other->ended && other->ppid == member->ppid &&
            cpu_clock_read(other->pid, &ignored) < 0)
            return true;
    }
    return false;
}

static int ended_finish(struct members *members, bool last, struct profile *profile)
{
    size_t kept = 0;
    int error = 0;
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        member->finishes = member->ended && (last || !sibling_is_awaited(members, member));
    }
    for (size_t i = 0; i < members->count; i++)
        if (members->list[i]->finishes)
            siblings_settle(members, members->list[i]);
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        if (member->finishes && !error)
            error = member_finish(members, member, profile);
        if (member->finishes && !error) {
            members->bare += member_is_bare(member);
            free(member);
        } else {
            members->list[kept++] = member;
        }
    }
    members->count = kept;
    return error;
}

int members_finish(struct members *members, struct profile *profile)
{
    return ended_finish(members, false, profile);
}

int members_tick(struct members *members, uint64_t now_ns, struct profile *profile)
{
    int error = ended_finish(members, false, profile);
    for (size_t i = 0; i < members->count && !error; i++)
        if (members->list[i]->target && !members->list[i]->ended)
            error = member_tick(members, members->list[i], now_ns, profile);
    return error;
}

static int living_tell(struct members *members, struct member *member, uint64_t now_ns, bool last,
                       struct profile *profile)
{
    struct tick_event tick;
    uint64_t cpu_ns;
    if (cpu_clock_read(member->pid, &cpu_ns) == 0)
        member_learn_cpu(member, cpu_ns);
    int error = 0;
    if (last || !member->target)
        error = member_let_go(members, member, now_ns, profile);
    else if (!target_flush(member->target, now_ns, 0, &tick))
        error = tick_add(members, member, &tick, profile);
    if (!error)
        error = member_tell_begin(members, member, profile);
    return error ? error : member_tell(members, member, false, profile);
}

int members_tell(struct members *members, uint64_t now_ns, bool last, struct profile *profile)
{
    int error = ended_finish(members, last, profile);
    for (size_t i = 0; i < members->count && !error; i++)
        error = members->list[i]->ended
                    ? 0
                    : living_tell(members, members->list[i], now_ns, last, profile);
    return error;
}

void members_look(const struct members *members, struct members_glance *ret)
{
    *ret = (struct members_glance){
        .python = members->python,
        .without_shim = members->bare,
        .samples = members->samples,
        .counts = members->ended_counts,
    };
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = members->list[i];
        ret->alive += !member->ended;
        ret->without_shim += member_is_bare(member);
        ret->rss_bytes += member->ended ? 0 : member->rss_bytes;
        if (member->target) {
            struct stack_counts counts = stack_reader_counts(target_reader(member->target));
            counts_add(&ret->counts, &counts);
        }
    }
}
