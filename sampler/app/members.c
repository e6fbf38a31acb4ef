#include "sampler/app/members.h"

#include "sampler/base/cleanup.h"

#include <string.h>
#include <unistd.h>

enum {
    TRY_FIRST_NS = 500000,     /* a process that is no Python yet is asked again after this, … */
    TRY_LONGEST_NS = 50000000, /* … and then after twice as long each time, up to this */
    ARGUMENTS_SIZE = 4096,
    ARGUMENTS_MAX = 64,
    SETTLED_NS =
        2000000000, /* what has not become a Python by then is asked once in a while only */
    SETTLED_TRY_NS = 500000000,
};

struct member {
    pid_t pid, ppid;
    struct target *target; /* NULL: not (yet) a Python */
    bool was_python, refused, ended, told;
    uint64_t joined_ns, ended_ns, next_try_ns, try_ns;
    int exit_status;
    uint64_t cpu_ns, rss_bytes, peak_rss_bytes;
    char arguments[ARGUMENTS_SIZE];
    const char *argv[ARGUMENTS_MAX + 1];
    char executable[512], cwd[512], python[24];
};

struct members {
    struct stack_options options;
    struct sources *sources;
    uint64_t start_ns, samples;
    struct member **list;
    size_t count, capacity, python;
    struct stack_counts ended_counts;
};

static void counts_add(struct stack_counts *sum, const struct stack_counts *counts)
{
    sum->clean += counts->clean;
    sum->retried += counts->retried;
    sum->dropped += counts->dropped;
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

static void link_read(pid_t pid, const char *name, char *into, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    ssize_t length = readlink(path, into, size - 1);
    into[length > 0 ? length : 0] = '\0';
}

static void member_describe(struct member *member)
{
    process_read_arguments(member->pid, member->arguments, sizeof member->arguments, member->argv,
                           ARGUMENTS_MAX);
    link_read(member->pid, "exe", member->executable, sizeof member->executable);
    link_read(member->pid, "cwd", member->cwd, sizeof member->cwd);
}

static struct member *member_find(struct members *members, pid_t pid)
{
    for (size_t i = 0; i < members->count; i++)
        if (members->list[i]->pid == pid && !members->list[i]->ended)
            return members->list[i];
    return NULL;
}

static int member_add(struct members *members, struct member **ret)
{
    if (members->count == members->capacity) {
        size_t capacity = members->capacity ? 2 * members->capacity : 16;
        struct member **list = realloc(members->list, capacity * sizeof *list);
        if (!list)
            return -ENOMEM;
        members->list = list;
        members->capacity = capacity;
    }
    struct member *member = calloc(1, sizeof *member);
    if (!member)
        return -ENOMEM;
    members->list[members->count++] = member;
    *ret = member;
    return 0;
}

int members_join(struct members *members, pid_t pid, pid_t ppid, uint64_t now_ns)
{
    struct member *member = member_find(members, pid);
    if (!member) {
        int error = member_add(members, &member);
        if (error)
            return error;
        *member =
            (struct member){ .pid = pid, .ppid = ppid, .joined_ns = now_ns, .exit_status = -1 };
    } else {
        member_close(members, member);
    }
    member->refused = member->told = false;
    member->next_try_ns = now_ns;
    member->try_ns = 0;
    member_describe(member);
    return 0;
}

void members_end(struct members *members, pid_t pid, int exit_status, uint64_t now_ns)
{
    struct member *member = member_find(members, pid);
    if (!member)
        return;
    member->ended = true;
    member->ended_ns = now_ns;
    member->exit_status = exit_status;
}

/* ---- opening ---- */

static void member_open(struct members *members, struct member *member, uint64_t now_ns,
                        struct failure *why)
{
    struct failure refusal = { 0 };
    struct process *process = NULL;
    int error = process_open(member->pid, &process, &refusal);
    if (!error)
        sources_add_process(members->sources, process->proc_fd);
    if (!error)
        error = target_open(process, &members->options, now_ns, &member->target, &refusal);
    if (!error) {
        member_describe(member); /* a program that has just begun now shows its own words */
        snprintf(member->python, sizeof member->python, "%s",
                 stack_reader_python(target_reader(member->target)));
        members->python += !member->was_python;
        member->was_python = true;
        return;
    }
    member->try_ns = member->try_ns ? 2 * member->try_ns : TRY_FIRST_NS;
    if (member->try_ns > TRY_LONGEST_NS)
        member->try_ns = now_ns - member->joined_ns < SETTLED_NS ? TRY_LONGEST_NS : SETTLED_TRY_NS;
    member->next_try_ns = now_ns + member->try_ns;
    member->refused = error == -EPERM || error == -ENOTSUP;
    *why = refusal;
}

size_t members_open_due(struct members *members, uint64_t now_ns, struct failure *why)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        if (!member->target && !member->ended && !member->refused && member->next_try_ns <= now_ns)
            member_open(members, member, now_ns, why);
    }
    return members->python;
}

/* ---- what the profile is told ---- */

static const char *member_note(const struct member *member)
{
    if (member->was_python)
        return NULL;
    return member->refused ? "could not be looked into" : "not a Python";
}

static int member_tell(struct members *members, struct member *member, uint64_t now_ns,
                       struct profile *profile)
{
    const struct process_event event = {
        .pid = member->pid,
        .ppid = member->ppid,
        .rank = -1,
        .argv = member->argv,
        .executable = member->executable,
        .python = member->was_python ? member->python : NULL,
        .cwd = *member->cwd ? member->cwd : NULL,
        .start_s = 1e-9 * (double)(member->joined_ns - members->start_ns),
        .end_s = 1e-9 * (double)((member->ended ? member->ended_ns : now_ns) - members->start_ns),
        .cpu_s = 1e-9 * (double)member->cpu_ns,
        .peak_rss_bytes = member->peak_rss_bytes,
        .exit_status = member->ended ? member->exit_status : -1,
        .note = member_note(member),
    };
    return profile_add_process(profile, &event);
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
    int error = member->told ? 0 : member_tell(members, member, tick->time_ns, profile);
    if (error)
        return error;
    member->told = true;
    tick->time_ns -= members->start_ns;
    member->cpu_ns += event_cpu_ns(tick);
    if (tick->rss_bytes)
        member->rss_bytes = tick->rss_bytes;
    if (tick->rss_bytes > member->peak_rss_bytes)
        member->peak_rss_bytes = tick->rss_bytes;
    for (size_t i = 0; i < tick->sample_count; i++)
        members->samples += tick->samples[i].samples;
    return profile_add_tick(profile, tick);
}

/* The target is gone or has become another program: what is known of it is told, then it is let go.
 */
static int member_let_go(struct members *members, struct member *member, uint64_t now_ns,
                         struct profile *profile)
{
    struct tick_event tick;
    int error = target_flush(member->target, now_ns, &tick);
    if (!error)
        error = tick_add(members, member, &tick, profile);
    member_close(members, member);
    member->next_try_ns = now_ns;
    return error;
}

int members_tick(struct members *members, uint64_t now_ns, struct profile *profile)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        struct judging judging = { profile, member->pid };
        const struct idle_judge judge = { &judging, stack_takes_idle };
        struct tick_event tick;
        if (!member->target)
            continue;
        int error = member->ended ? -ESRCH : target_tick(member->target, now_ns, &judge, &tick);
        if (!error)
            error = tick_add(members, member, &tick, profile);
        if (error == -ENOMEM)
            return error;
        if (error && error != -EAGAIN && member_let_go(members, member, now_ns, profile))
            return -ENOMEM;
    }
    return 0;
}

int members_tell(struct members *members, uint64_t now_ns, struct profile *profile)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = members->list[i];
        struct tick_event tick;
        int error = 0;
        if (member->target && !target_flush(member->target, now_ns, &tick))
            error = tick_add(members, member, &tick, profile);
        if (!error)
            error = member_tell(members, member, now_ns, profile);
        if (error)
            return error;
    }
    return 0;
}

void members_look(const struct members *members, struct members_glance *ret)
{
    *ret = (struct members_glance){
        .python = members->python,
        .samples = members->samples,
        .counts = members->ended_counts,
    };
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = members->list[i];
        ret->alive += !member->ended;
        ret->rss_bytes += member->ended ? 0 : member->rss_bytes;
        if (member->target) {
            struct stack_counts counts = stack_reader_counts(target_reader(member->target));
            counts_add(&ret->counts, &counts);
        }
    }
}
