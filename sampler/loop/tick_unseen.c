/* CPU time that no look at a Python thread shows: whose it was, as far as can be told. */
#include "sampler/base/error.h"
#include "sampler/loop/target_state.h"

#include <time.h>

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
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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

/* Threads without Python hold no line. */
static int native_threads_tell(struct target *target)
{
    const struct unseen_thread *threads;
    uint64_t sum_ns = 0;
    int count = unseen_look(target->unseen, is_python, target, &threads);
    if (count < 0)
        return count;
    if (target_reserve_samples(target, target->count + target->ended_count + (size_t)count))
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        if (!threads[i].ran_ns)
            continue;
        target->samples[target->sample_count++] = (struct sample_event){
            .tid = threads[i].tid,
            .name = threads[i].name,
            .native_ns = threads[i].ran_ns,
            .samples = 1,
        };
        sum_ns += threads[i].ran_ns;
    }
    unseen_charge(target, sum_ns);
    return 0;
}

/* A thread worked until it ended, where it was at its last look, as far as anybody can tell. */
static void ended_tell(struct target *target, struct account *account, uint64_t now_ns)
{
    if (!account->has_stack || account->end_told)
        return;
    uint64_t rest_ns = account_is_running(account) ? rest_find(target) : 0;
    uint64_t most_ns = now_ns - account->seen_ns;
    uint64_t tail_ns = rest_ns < most_ns ? rest_ns : most_ns;
    struct sample_event *sample = target_add_sample(target, account);
    sample->samples = 0;
    account_share_out(account, account->pending_ns + tail_ns, sample);
    unseen_charge(target, tail_ns);
    account->end_told = true;
}

/*
 * Threads that lived between two looks: the next one of their kind that is met stands for them, as
 * a look at a thread stands for what that did since the one before.
 */
static void young_tell(struct target *target)
{
    uint64_t rest_ns = rest_find(target);
    for (size_t i = 0; i < target->sample_count; i++) {
        if (target->samples[i].tid != target->young->tid)
            continue;
        account_share_out(target->young, rest_ns, &target->samples[i]);
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

struct account *target_find_runner(struct target *target)
{
    struct account *found = NULL;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (!account->has_stack)
            continue;
        if (account->state == THREAD_RUNNING)
            return account;
        if (account->tid == target->process->pid)
            found = account;
    }
    return found;
}
