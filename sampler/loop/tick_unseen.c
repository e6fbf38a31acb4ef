/* CPU time that no look at a Python thread shows: whose it was, as far as can be told. */
#include "sampler/base/clock_read.h"
#include "sampler/base/error.h"
#include "sampler/loop/target_state.h"

enum {
    UNSEEN_EVERY_NS = 100000000, /* threads without Python are asked, … */
    UNSEEN_LEAST_NS = 1000000,   /* … if there is so much that nobody was told of */
};

static bool is_python(const void *context, pid_t tid)
{
    const struct target *target = context;
    for (size_t i = 0; i < target->count; i++)
        if (target->accounts[i].tid == tid)
            return true;
    return false;
}

/* What threads that are looked at did since their look is theirs, and told of at the next one. */
static uint64_t rest_find(struct target *target)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t rest_ns = unseen_rest(target->unseen);
    uint64_t theirs_ns = target->busy_count * (now_ns - target->last_ns);
    return rest_ns > theirs_ns ? rest_ns - theirs_ns : 0;
}

/* Somebody is told of it; and while a thread worked that nobody saw, the process was not idle. */
static void unseen_charge(struct target *target, uint64_t ns)
{
    int64_t idle_ns = target->pending_idle_ns + (int64_t)target->told_idle_ns;
    unseen_account(target->unseen, ns);
    if (idle_ns > 0)
        target->pending_idle_ns -= (int64_t)ns < idle_ns ? (int64_t)ns : idle_ns;
}

/* Threads without Python hold no line. One that had Python before, as the main one has before an
 * exec, was told of by then: all of them together did no more than nobody was told of. */
static int native_threads_tell(struct target *target)
{
    const struct unseen_thread *threads;
    uint64_t sum_ns = 0, rest_ns = unseen_rest(target->unseen);
    int count = unseen_look(target->unseen, is_python, target, &threads);
    if (count < 0)
        return count;
    if (target_reserve_samples(target, 2 * (target->count + target->ended_count) + (size_t)count))
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        uint64_t left_ns = rest_ns - sum_ns;
        uint64_t ran_ns = threads[i].ran_ns < left_ns ? threads[i].ran_ns : left_ns;
        if (!ran_ns)
            continue;
        target->samples[target->sample_count++] = (struct sample_event){
            .tid = threads[i].tid,
            .name = threads[i].name,
            .native_ns = ran_ns,
            .samples = 1,
        };
        sum_ns += ran_ns;
    }
    unseen_charge(target, sum_ns);
    return 0;
}

/*
 * CPU time that no look will tell of any more is where the thread was. Where looks at it have
 * failed it is on no line: they would have met it elsewhere.
 */
static struct sample_event *tail_add(struct target *target, const struct account *account)
{
    struct sample_event *sample = target_add_sample(target, account);
    sample->samples = 0;
    if (account->lost) {
        sample->frames = NULL;
        sample->frame_count = 0;
    }
    return sample;
}

static void tail_tell(struct target *target, const struct account *account, uint64_t ns)
{
    struct sample_event *sample = tail_add(target, account);
    if (account->lost)
        sample->native_ns = ns;
    else
        account_share_out(account, ns, sample);
}

/* A thread worked, or waited, until it ended, where it was at its last look, as far as anybody can
 * tell. */
static void ended_tell(struct target *target, struct account *account, uint64_t now_ns)
{
    if (!account->has_stack || account->end_told)
        return;
    target_tell_place(target, account);
    uint64_t rest_ns = account_is_busy(account) ? rest_find(target) : 0;
    uint64_t most_ns = now_ns - account->seen_ns;
    uint64_t tail_ns = rest_ns < most_ns ? rest_ns : most_ns;
    tail_tell(target, account, account->pending_ns + tail_ns);
    unseen_charge(target, tail_ns);
    account->pending_ns = 0;
    account->end_told = true;
}

/*
 * Threads that lived between two looks: the next one of their kind that is met stands for them, as
 * a look at a thread stands for what that did since the one before.
 */
static void young_tell(struct target *target)
{
    uint64_t rest_ns = rest_find(target);
    for (size_t i = target->sample_count; i > 0; i--) { /* where it was before comes first */
        if (target->samples[i - 1].tid != target->young->tid)
            continue;
        account_share_out(target->young, rest_ns, &target->samples[i - 1]);
        unseen_charge(target, rest_ns);
        return;
    }
}

int target_tell_unseen(struct target *target, uint64_t now_ns)
{
    bool due = now_ns - target->unseen_ns >= UNSEEN_EVERY_NS;
    if (!due && !target->has_ended && !target->young)
        return 0;
    if (rest_find(target) >= UNSEEN_LEAST_NS || !target->unseen_ns) {
        int error = native_threads_tell(target);
        if (error)
            return error;
    }
    for (size_t i = 0; i < target->ended_count; i++)
        ended_tell(target, &target->ended[i], now_ns);
    for (size_t i = 0; i < target->count; i++)
        if (target->accounts[i].gone)
            ended_tell(target, &target->accounts[i], now_ns);
    if (target->young && rest_find(target) >= UNSEEN_LEAST_NS)
        young_tell(target);
    if (due) {
        target->excess_ns = unseen_excess(target->unseen);
        target->unseen_ns = now_ns;
        target->told_idle_ns = 0;
    }
    return 0;
}

/* The thread that ran at its last look, or else wanted to and had no core; else the main thread,
 * never another one that slept. NULL: none. */
static struct account *runner_find(struct target *target)
{
    struct account *found = NULL;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (!account->has_stack)
            continue;
        if (account_is_running(account))
            return account;
        if (account_is_busy(account) || (!found && account->tid == target->process->pid))
            found = account;
    }
    return found;
}

static uint64_t pending_flush(struct target *target, struct account *account)
{
    uint64_t ns = account->pending_ns;
    if (!ns || !account->has_stack)
        return 0;
    if (account->lost || account_is_busy(account))
        tail_tell(target, account, ns);
    else /* waking up and going to sleep again */
        tail_add(target, account)->kernel_ns = ns;
    account->pending_ns = 0;
    return ns;
}

int target_flush(struct target *target, uint64_t now_ns, uint64_t untold_ns, struct tick_event *ret)
{
    uint64_t pending_ns = 0;
    target->sample_count = 0;
    if (target_reserve_samples(target, 2 * target->count + 1))
        return -ENOMEM;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (account->has_stack && !account->gone && !account_is_busy(account))
            target_tell_wait(target, account, now_ns);
        pending_ns += pending_flush(target, account);
    }
    struct account *runner = runner_find(target);
    if (runner && untold_ns > pending_ns)
        tail_tell(target, runner, untold_ns - pending_ns);
    *ret = (struct tick_event){
        .time_ns = now_ns,
        .pid = target->process->pid,
        .samples = target->samples,
        .sample_count = target->sample_count,
    };
    return 0;
}
