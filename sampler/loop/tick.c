#include "sampler/loop/tick.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/intern.h"
#include "sampler/loop/busy_time.h"
#include "sampler/loop/target_state.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/threads.h"

#include <string.h>

enum {
    NAMES_FIRST_NS = 1000000,
    NAP_FIRST_NS = 1000000, /* a thread that did not run is asked again after this, … */
    NAP_GROWTH = 4,
    NAP_DOUBTFUL_NS = 100000000, /* … and each time after NAP_GROWTH times as long, up to this, … */
    FEW_THREADS = 8, /* … or at once where so few could have run instead: what waits again may
                        wait elsewhere, … */
    PAUSED_RUN_NS = 10000, /* a sleeper takes a third of it to stand still and to sleep on */
    RSS_EVERY_NS = 100000000,
    LAG_NS = 10000000, /* the longest tick of a kernel */
    GAP_WEIGHT = 16,   /* the gap between two looks is an average over some of so many */
};

/* … or this while the process uses no CPU time at all. */
static const uint64_t NAP_LONGEST_NS = 60000000000;

static void accounts_free(struct account *accounts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(accounts[i].frames);
        free(accounts[i].told_frames);
    }
    free(accounts);
}

int target_open(struct process *process, const struct stack_options *options, uint64_t now_ns,
                struct target **ret, struct failure *why)
{
    struct target *target = calloc(1, sizeof *target);
    if (!target) {
        process_close(process);
        return failure_set(why, -ENOMEM, "out of memory");
    }
    target->process = process;
    target->last_ns = now_ns;
    target->accounts_lag = options->nonblocking;
    int error = stack_reader_open(process, options, &target->reader, why);
    if (!error && unseen_new(process, &target->unseen))
        error = failure_set(why, -ENOMEM, "out of memory");
    if (error) {
        target_close(target);
        return error;
    }
    *ret = target;
    return 0;
}

void target_close(struct target *target)
{
    if (!target)
        return;
    accounts_free(target->accounts, target->count);
    accounts_free(target->ended, target->ended_count);
    unseen_free(target->unseen);
    free(target->samples);
    intern_free(target->texts);
    stack_reader_close(target->reader);
    process_close(target->process);
    free(target);
}

struct stack_reader *target_reader(struct target *target)
{
    return target->reader;
}

const struct process *target_process(const struct target *target)
{
    return target->process;
}

pid_t target_pid(const struct target *target)
{
    return target->process->pid;
}

/* ---- which threads ---- */

/* An interpreter that begins has a thread before that has an identity. */
static struct account *account_find(struct target *target, size_t hint,
                                    const struct thread_event *thread)
{
    struct account *young = NULL;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[(hint + i) % target->count];
        if (account->known && account->tid == thread->tid && account->ident == thread->ident &&
            account->interpreter == thread->interpreter)
            return account;
        if (account->known && account->tid == thread->tid && !account->ident)
            young = account;
    }
    return young;
}

/* Other threads than before: accounts follow theirs, those that are left over have ended. */
static int accounts_match(struct target *target, size_t count)
{
    struct account *accounts = calloc(count + 1, sizeof *accounts);
    if (!accounts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct thread_event thread;
        stack_reader_describe(target->reader, i, &thread);
        struct account *old = account_find(target, i, &thread);
        if (old) {
            accounts[i] = *old;
            *old = (struct account){ 0 };
        }
        accounts[i].tid = thread.tid;
        accounts[i].ident = thread.ident;
        accounts[i].interpreter = thread.interpreter;
        accounts[i].born =
            accounts[i].born || (!old && target->generation && thread.tid != target->process->pid);
    }
    target->ended = target->accounts;
    target->ended_count = target->count;
    target->has_ended = target->count > 0;
    target->accounts = accounts;
    target->count = count;
    target->generation = stack_reader_generation(target->reader);
    target_match_twins(target);
    return 0;
}

/* A thread gets its name a moment after it began, and may get another at any time: they are read
 * again after twice as long each time. */
static bool names_refresh(struct target *target, uint64_t now_ns, bool threads_changed)
{
    if (!threads_changed && now_ns < target->names_ns)
        return false;
    target->names_gap_ns = threads_changed ? NAMES_FIRST_NS : 2 * target->names_gap_ns;
    target->names_ns = now_ns + target->names_gap_ns;
    stack_reader_name_threads(target->reader);
    return true;
}

static int round_begin(struct target *target, uint64_t now_ns)
{
    accounts_free(TAKE_PTR(target->ended), target->ended_count);
    target->ended_count = target->sample_count = 0;
    target->has_ended = false;
    target->young = NULL;
    target->busy_count = 0;
    int changed = stack_reader_begin(target->reader);
    int error = changed > 0 ? target_keep_texts(target) : changed;
    int count = !error && changed ? stack_reader_renew(target->reader) : error;
    if (count < 0)
        return count;
    bool same = stack_reader_generation(target->reader) == target->generation;
    bool named = names_refresh(target, now_ns, !same);
    error = same ? 0 : accounts_match(target, (size_t)count);
    if (named && !error)
        target_keep_names(target);
    return error;
}

/* ---- one thread ---- */

static void account_nap(struct account *account, uint64_t now_ns)
{
    account->nap_ns = account->nap_ns ? NAP_GROWTH * account->nap_ns : NAP_FIRST_NS;
    if (account->nap_ns > NAP_LONGEST_NS)
        account->nap_ns = NAP_LONGEST_NS;
    account->next_ns = now_ns + account->nap_ns;
}

void account_share_out(const struct account *account, uint64_t cpu_ns, struct sample_event *sample)
{
    uint64_t *share[] = {
        [CPU_PYTHON] = &sample->python_ns,
        [CPU_NATIVE] = &sample->native_ns,
        [CPU_KERNEL] = &sample->kernel_ns,
    };
    *share[account->cpu] += cpu_ns;
}

int target_reserve_samples(struct target *target, size_t count)
{
    if (count <= target->sample_room)
        return 0;
    struct sample_event *samples = realloc(target->samples, 2 * count * sizeof *samples);
    if (!samples)
        return -ENOMEM;
    target->samples = samples;
    target->sample_room = 2 * count;
    return 0;
}

struct sample_event *target_add_sample(struct target *target, const struct account *account)
{
    struct sample_event *sample = &target->samples[target->sample_count++];
    *sample = (struct sample_event){
        .tid = account->tid,
        .ident = account->ident,
        .name = account->name,
        .is_main = account->tid == target->process->pid,
        .state = account->state,
        .samples = 1,
        .frames = account->frames,
        .frame_count = account->frame_count,
    };
    return sample;
}

bool account_is_running(const struct account *account)
{
    return account->state == THREAD_RUNNING;
}

bool account_is_busy(const struct account *account)
{
    return account_is_running(account) || account->state == THREAD_WAIT_CPU;
}

/* What the kernel charged between two looks. */
struct charge {
    uint64_t ran_ns, queued_ns, wall_ns;
    uint64_t held_ns; /* it would have run, but for our pause */
};

/*
 * All that it ever ran, unless that was told of before it was known for what it is: while an
 * interpreter begins, its thread changes its face, and before an exec it was another program's.
 */
static uint64_t newcomer_ran(struct target *target, const struct account *account, uint64_t run_ns)
{
    uint64_t ran_ns = run_ns - unseen_take(target->unseen, account->tid);
    uint64_t rest_ns = unseen_rest(target->unseen);
    return ran_ns < rest_ns ? ran_ns : rest_ns;
}

static struct charge account_charge(struct target *target, struct account *account,
                                    const struct wait_state *wait, uint64_t now_ns)
{
    struct charge charge = { 0 };
    bool counts = !account_yields(target, account);
    if (account->known && counts) {
        charge.ran_ns = wait->run_ns - account->run_ns;
        charge.queued_ns = wait->queued_ns - account->queued_ns;
        charge.wall_ns = now_ns - account->seen_ns;
        charge.held_ns = account_is_busy(account) ? account->stood_ns : 0;
    } else if (account->born && counts) {
        charge.ran_ns = newcomer_ran(target, account, wait->run_ns);
    }
    uint64_t told_ns = charge.ran_ns < target->excess_ns ? charge.ran_ns : target->excess_ns;
    charge.ran_ns -= told_ns;
    target->excess_ns -= told_ns;
    account->pending_ns += charge.ran_ns;
    account->pending_queued_ns += charge.queued_ns;
    if (account->known && counts)
        account->pending_off_ns +=
            (int64_t)(charge.wall_ns - charge.ran_ns - told_ns - charge.queued_ns - charge.held_ns);
    account->known = true;
    account->run_ns = wait->run_ns;
    account->queued_ns = wait->queued_ns;
    account->seen_ns = now_ns;
    unseen_account(target->unseen, charge.ran_ns);
    return charge;
}

/*
 * The kernel's account of a thread that was not stopped is of its last tick or its last sleep:
 * whoever is met first after that would have what was done before. So each look has a part, and
 * what is left goes to the next ones, over as many as there are in a tick.
 */
static uint64_t share_of_look(const struct target *target, const struct account *account)
{
    uint64_t looks = target->accounts_lag && target->gap_ns ? 1 + LAG_NS / target->gap_ns : 1;
    return account->pending_ns / looks;
}

/*
 * The CPU time of an interval goes to where a look in it met the thread running, time without a
 * core to where a look met it so, and time off the CPU to where one met it waiting. What no look
 * has met stands over to the next one that meets its like: where the thread waits for something is
 * not where it worked.
 */
static void sample_fill(const struct target *target, struct account *account,
                        struct sample_event *sample)
{
    if (account_is_running(account)) {
        uint64_t share_ns = share_of_look(target, account);
        account_share_out(account, share_ns, sample);
        account->pending_ns -= share_ns;
        account->lost = false;
    }
    if (account_is_busy(account)) {
        sample->wait_ns = account->pending_queued_ns;
        account->pending_queued_ns = 0;
    } else if (account->pending_off_ns > 0) {
        sample->wait_ns = (uint64_t)account->pending_off_ns;
        account->pending_off_ns = 0;
    }
}

void target_tell_wait(struct target *target, struct account *account, uint64_t until_ns)
{
    if (until_ns <= account->seen_ns || account_yields(target, account))
        return;
    account->pending_off_ns += (int64_t)(until_ns - account->seen_ns);
    account->seen_ns = until_ns;
    if (account->pending_off_ns <= 0)
        return;
    struct sample_event *sample = target_add_sample(target, account);
    sample->samples = 0;
    sample->wait_ns = (uint64_t)account->pending_off_ns;
    account->pending_off_ns = 0;
}

/*
 * Looks that were spared because nothing of the process ran would have met the thread where it was:
 * its waiting up to then is that place's. Where others ran nobody knows what spared looks would
 * have met, and all since the last one is the next place's, as it comes at a moment like any other.
 */
void target_tell_place(struct target *target, struct account *account)
{
    if (!account->has_stack || account_is_busy(account) || account->doubtful ||
        account->left_ns <= account->seen_ns)
        return;
    target_tell_wait(target, account, account->left_ns);
    account->told = true;
}

/* A thread that did not run has not moved. */
static bool is_left_alone(const struct target *target, const struct account *account,
                          uint64_t now_ns)
{
    return account->has_stack && account->next_ns > now_ns &&
           (target->still ||
            (target->count > FEW_THREADS && now_ns - account->seen_ns < NAP_DOUBTFUL_NS));
}

/*
 * Since its last look. A sleeper that was paused then has run for as many turns as that takes, and
 * briefly: one that woke up under the pause, and sleeps elsewhere now, may have as many.
 */
static bool has_moved(const struct account *account, const struct wait_state *wait)
{
    return !account->has_stack || account_is_busy(account) || !wait->off_cpu ||
           wait->turns - account->turns > account->paused_turns ||
           (account->paused_turns && wait->run_ns - account->run_ns > PAUSED_RUN_NS);
}

/* 1: a sample was added, 0: the thread is left alone, or a negative errno. */
static int thread_tick(struct target *target, size_t index, uint64_t now_ns, struct charge *ret)
{
    struct account *account = &target->accounts[index];
    struct wait_state wait;
    if (account->gone)
        return 0;
    if (is_left_alone(target, account, now_ns)) {
        account->left_ns = now_ns;
        account->doubtful = account->doubtful || !target->still;
        return 0;
    }
    if (stack_reader_account(target->reader, index, &wait)) {
        account->gone = target->has_ended = true;
        return 0;
    }
    bool moved = has_moved(account, &wait);
    if (moved)
        target_tell_place(target, account);
    account->turns = wait.turns;
    account->paused_turns = 0;
    account->doubtful = false;
    struct thread_event event;
    struct stack_counts before = stack_reader_counts(target->reader);
    int error = 0;
    if (moved) {
        error = stack_reader_read(target->reader, index, &event);
        wait.run_ns = event.run_ns;
        wait.queued_ns = event.queued_ns;
    }
    *ret = account_charge(target, account, &wait, now_ns);
    struct stack_counts counts = stack_reader_counts(target->reader);
    account->stood_ns = counts.stood_ns - before.stood_ns;
    if (moved && event.met != THREAD_RUNNING) /* it comes up to stand still, and to sleep on */
        account->paused_turns = 2 * (counts.pauses - before.pauses);
    if (error == -ESRCH)
        account->gone = target->has_ended = true;
    if (error) { /* its stack is not what is kept of it: to be read at the next look */
        account->turns = account->next_ns = 0;
        account->lost = true;
        return 0;
    }
    if (moved) {
        error = account_keep_stack(account, &event);
        if (error)
            return error;
        account->nap_ns = account->next_ns = 0;
    } else {
        account_nap(account, now_ns);
    }
    if (account_yields(target, account))
        return 0;
    sample_fill(target, account, target_add_sample(target, account));
    if (account->born && !account->worked && account_is_running(account))
        target->young = account;
    account->worked = account->worked || account_is_running(account);
    return 1;
}

/* ---- the process ---- */

static uint64_t rss_read(struct target *target, uint64_t now_ns)
{
    if (target->rss_ns && now_ns - target->rss_ns < RSS_EVERY_NS)
        return 0;
    target->rss_ns = now_ns;
    return process_read_rss(target->process);
}

/* Threads that were left alone still hold the lines on which the process idles: told of when they
 * are needed. */
static void sleepers_add(struct target *target, uint64_t now_ns, const struct idle_judge *judge)
{
    bool found = false;
    for (size_t i = 0; i < target->sample_count && !found; i++) {
        const struct sample_event *sample = &target->samples[i];
        found = sample->is_main && sample->samples &&
                judge->takes(judge->context, sample->frames, sample->frame_count);
    }
    for (size_t i = 0; i < target->count && !found; i++) {
        struct account *account = &target->accounts[i];
        if (!account->has_stack || account->gone || account->seen_ns == now_ns)
            continue;
        struct sample_event *sample = target_add_sample(target, account);
        sample->samples = 0;
        found =
            sample->is_main && judge->takes(judge->context, sample->frames, sample->frame_count);
    }
}

/* Before any thread is asked, and where one may be left alone for it. */
static void stillness_judge(struct target *target, uint64_t now_ns)
{
    uint64_t cpu_ns;
    bool any = false;
    for (size_t i = 0; i < target->count && !any; i++)
        any = target->accounts[i].next_ns > now_ns;
    target->still = any && cpu_clock_read(target->process->pid, &cpu_ns) == 0 &&
                    TAKE(target->cpu_ns, cpu_ns) == cpu_ns;
}

int target_tick(struct target *target, uint64_t now_ns, const struct idle_judge *judge,
                struct tick_event *ret)
{
    uint64_t wall_ns = now_ns - target->last_ns;
    struct busy_time busy = { 0 };
    int error = round_begin(target, now_ns);
    if (!error)
        error = target_reserve_samples(target, 2 * (target->count + target->ended_count));
    if (error)
        return error;
    stillness_judge(target, now_ns);
    for (size_t i = 0; i < target->count; i++) {
        struct charge charge = { 0 };
        int added = thread_tick(target, i, now_ns, &charge);
        if (added < 0)
            return added;
        busy_add(&busy, charge.ran_ns, charge.queued_ns + charge.held_ns);
        target->busy_count += added && account_is_busy(&target->accounts[i]);
    }
    target->last_ns = now_ns;
    target->gap_ns += wall_ns / GAP_WEIGHT - target->gap_ns / GAP_WEIGHT;
    target->pending_idle_ns += busy_rest(&busy, wall_ns, target->busy_count);
    error = target_tell_unseen(target, now_ns);
    if (error == -ENOMEM)
        return error;
    uint64_t idle_ns = 0;
    if (!target->busy_count && target->pending_idle_ns > 0) {
        idle_ns = (uint64_t)target->pending_idle_ns;
        target->told_idle_ns += idle_ns;
        target->pending_idle_ns = 0;
        sleepers_add(target, now_ns, judge);
    }
    *ret = (struct tick_event){
        .time_ns = now_ns,
        .pid = target->process->pid,
        .wall_ns = wall_ns,
        .idle_ns = idle_ns, /* like CPU time: told where a look meets it */
        .rss_bytes = rss_read(target, now_ns),
        .samples = target->samples,
        .sample_count = target->sample_count,
    };
    return target->count || wall_ns ? 0 : -EAGAIN;
}
