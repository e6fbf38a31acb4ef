#include "sampler/loop/tick.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/threads.h"

#include <string.h>

enum {
    NAP_FIRST_NS = 1000000,     /* a thread that did not run is asked again after this, … */
    NAP_LONGEST_NS = 100000000, /* … and each time after twice as long, up to this */
    RSS_EVERY_NS = 100000000,
};

/* What is remembered of a thread between ticks. */
struct account {
    pid_t tid;
    uint64_t ident;
    uint64_t run_ns, queued_ns, turns; /* the kernel's, at the last look */
    uint64_t seen_ns;                  /* when that was */
    uint64_t next_ns, nap_ns;          /* an idle thread is left alone until then */
    uint64_t pending_ns;               /* CPU time of bursts that no look has met */
    enum thread_state state;
    enum cpu_kind cpu;
    struct frame_event *frames;
    size_t frame_count, frame_capacity;
    const char *name;
    bool known, has_stack, gone;
};

struct target {
    struct process *process;
    struct stack_reader *reader;
    struct account *accounts; /* in the order of the reader's threads */
    size_t count;
    uint64_t generation;
    struct sample_event *samples;
    size_t sample_count;
    uint64_t last_ns, rss_ns;
    uint64_t pending_idle_ns; /* idle time that no look has met */
};

static void account_done(struct account *account)
{
    free(account->frames);
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
    int error = stack_reader_open(process, options, &target->reader, why);
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
    for (size_t i = 0; i < target->count; i++)
        account_done(&target->accounts[i]);
    free(target->accounts);
    free(target->samples);
    stack_reader_close(target->reader);
    process_close(target->process);
    free(target);
}

struct stack_reader *target_reader(struct target *target)
{
    return target->reader;
}

pid_t target_pid(const struct target *target)
{
    return target->process->pid;
}

/* ---- which threads ---- */

static struct account *account_find(struct target *target, size_t hint, pid_t tid, uint64_t ident)
{
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[(hint + i) % target->count];
        if (account->known && account->tid == tid && account->ident == ident)
            return account;
    }
    return NULL;
}

/* Other threads than before: accounts follow theirs. */
static int accounts_match(struct target *target, size_t count)
{
    struct account *accounts = calloc(count + 1, sizeof *accounts);
    struct sample_event *samples = realloc(target->samples, (count + 1) * sizeof *samples);
    if (samples)
        target->samples = samples;
    if (!accounts || !samples) {
        free(accounts);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct thread_event thread;
        stack_reader_describe(target->reader, i, &thread);
        struct account *old = account_find(target, i, thread.tid, thread.ident);
        if (old) {
            accounts[i] = *old;
            *old = (struct account){ 0 };
        }
        accounts[i].tid = thread.tid;
        accounts[i].ident = thread.ident;
    }
    for (size_t i = 0; i < target->count; i++)
        account_done(&target->accounts[i]);
    free(target->accounts);
    target->accounts = accounts;
    target->count = count;
    target->generation = stack_reader_generation(target->reader);
    return 0;
}

static int round_begin(struct target *target)
{
    int count = stack_reader_begin(target->reader);
    if (count < 0)
        return count;
    if (stack_reader_generation(target->reader) == target->generation)
        return 0;
    stack_reader_name_threads(target->reader);
    return accounts_match(target, (size_t)count);
}

/* ---- one thread ---- */

static int frames_keep(struct account *account, const struct thread_event *event)
{
    if (event->frame_count > account->frame_capacity) {
        struct frame_event *frames = realloc(account->frames, event->frame_count * sizeof *frames);
        if (!frames)
            return -ENOMEM;
        account->frames = frames;
        account->frame_capacity = event->frame_count;
    }
    memcpy(account->frames, event->frames, event->frame_count * sizeof *event->frames);
    account->frame_count = event->frame_count;
    account->state = event->state;
    account->cpu = event->cpu;
    account->name = event->name;
    account->has_stack = true;
    return 0;
}

static void account_nap(struct account *account, uint64_t now_ns)
{
    account->nap_ns = account->nap_ns ? 2 * account->nap_ns : NAP_FIRST_NS;
    if (account->nap_ns > NAP_LONGEST_NS)
        account->nap_ns = NAP_LONGEST_NS;
    account->next_ns = now_ns + account->nap_ns;
}

static void cpu_share_out(struct account *account, uint64_t cpu_ns, struct sample_event *sample)
{
    uint64_t *share[] = {
        [CPU_PYTHON] = &sample->python_ns,
        [CPU_NATIVE] = &sample->native_ns,
        [CPU_KERNEL] = &sample->kernel_ns,
    };
    *share[account->cpu] = cpu_ns;
}

static struct sample_event *sample_add(struct target *target, size_t index)
{
    const struct account *account = &target->accounts[index];
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

/* What the kernel charged between two looks. */
struct charge {
    uint64_t ran_ns, queued_ns, wall_ns;
};

static struct charge account_charge(struct account *account, const struct wait_state *wait,
                                    uint64_t now_ns)
{
    struct charge charge = { 0 };
    if (account->known) {
        charge.ran_ns = wait->run_ns - account->run_ns;
        charge.queued_ns = wait->queued_ns - account->queued_ns;
        charge.wall_ns = now_ns - account->seen_ns;
    }
    account->known = true;
    account->run_ns = wait->run_ns;
    account->queued_ns = wait->queued_ns;
    account->seen_ns = now_ns;
    account->pending_ns += charge.ran_ns;
    return charge;
}

/*
 * The CPU time of an interval goes to where a look in it met the thread running, or taken off its
 * core, maybe to let us look. Bursts that no look has met wait for the next one that does: where
 * the thread waits for something is not where it worked.
 */
static void sample_fill(struct account *account, const struct charge *charge,
                        struct sample_event *sample)
{
    if (account->state == THREAD_RUNNING || account->state == THREAD_WAIT_CPU) {
        cpu_share_out(account, account->pending_ns, sample);
        account->pending_ns = 0;
    }
    uint64_t busy_ns = charge->ran_ns;
    sample->wait_ns = charge->wall_ns > busy_ns ? charge->wall_ns - busy_ns : 0;
    if (account->state == THREAD_RUNNING && sample->wait_ns > charge->queued_ns)
        sample->wait_ns = charge->queued_ns;
}

/* 1: a sample was added, 0: the thread is left alone, or a negative errno. */
static int thread_tick(struct target *target, size_t index, uint64_t now_ns, struct charge *ret)
{
    struct account *account = &target->accounts[index];
    struct wait_state wait;
    if (account->gone || (account->has_stack && account->next_ns > now_ns))
        return 0;
    if (stack_reader_account(target->reader, index, &wait)) {
        account->gone = true;
        return 0;
    }
    bool moved = !account->has_stack || !wait.off_cpu || wait.turns != account->turns;
    account->turns = wait.turns;
    struct thread_event event;
    int error = 0;
    if (moved) {
        error = stack_reader_read(target->reader, index, &event);
        wait.run_ns = event.run_ns;
        wait.queued_ns = event.queued_ns;
    }
    *ret = account_charge(account, &wait, now_ns);
    if (error == -ESRCH)
        account->gone = true;
    if (error)
        return 0;
    if (moved) {
        error = frames_keep(account, &event);
        if (error)
            return error;
        account->nap_ns = account->next_ns = 0;
    } else {
        account_nap(account, now_ns);
    }
    sample_fill(account, ret, sample_add(target, index));
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
        found =
            sample->is_main && judge->takes(judge->context, sample->frames, sample->frame_count);
    }
    for (size_t i = 0; i < target->count && !found; i++) {
        struct account *account = &target->accounts[i];
        if (!account->has_stack || account->gone || account->seen_ns == now_ns)
            continue;
        struct sample_event *sample = sample_add(target, i);
        sample->samples = 0;
        found =
            sample->is_main && judge->takes(judge->context, sample->frames, sample->frame_count);
    }
}

int target_tick(struct target *target, uint64_t now_ns, const struct idle_judge *judge,
                struct tick_event *ret)
{
    uint64_t wall_ns = now_ns - target->last_ns, busy_ns = 0;
    unsigned ran = 0;
    bool running = false;
    target->sample_count = 0;
    int error = round_begin(target);
    if (error)
        return error;
    for (size_t i = 0; i < target->count; i++) {
        struct charge charge = { 0 };
        int added = thread_tick(target, i, now_ns, &charge);
        if (added < 0)
            return added;
        ran += charge.ran_ns > 0;
        busy_ns += charge.ran_ns + charge.queued_ns;
        running = running || (added && target->accounts[i].state == THREAD_RUNNING);
    }
    target->last_ns = now_ns;
    /* one thread at a time leaves an exact rest; several at once overlap, and the look decides */
    uint64_t rest_ns = wall_ns > busy_ns ? wall_ns - busy_ns : 0;
    target->pending_idle_ns += ran <= 1 ? rest_ns : running ? 0 : wall_ns;
    uint64_t idle_ns = 0;
    if (!running && target->pending_idle_ns) {
        idle_ns = target->pending_idle_ns;
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

/* The thread that ran at its last look; else the main thread. NULL: none was seen. */
static struct account *last_runner_find(struct target *target)
{
    struct account *found = NULL;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (!account->has_stack)
            continue;
        if (account->state == THREAD_RUNNING)
            return account;
        if (!found || account->tid == target->process->pid)
            found = account;
    }
    return found;
}

int target_flush(struct target *target, uint64_t now_ns, uint64_t untold_ns, struct tick_event *ret)
{
    uint64_t pending_ns = 0;
    target->sample_count = 0;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (!account->pending_ns || !account->has_stack)
            continue;
        struct sample_event *sample = sample_add(target, i);
        sample->samples = 0;
        sample->kernel_ns = account->pending_ns; /* waking up and going to sleep again */
        pending_ns += account->pending_ns;
        account->pending_ns = 0;
    }
    struct account *runner = last_runner_find(target);
    if (runner && untold_ns > pending_ns) {
        struct sample_event *sample = sample_add(target, (size_t)(runner - target->accounts));
        sample->samples = 0;
        cpu_share_out(runner, untold_ns - pending_ns, sample);
    }
    *ret = (struct tick_event){
        .time_ns = now_ns,
        .pid = target->process->pid,
        .samples = target->samples,
        .sample_count = target->sample_count,
    };
    return 0;
}
