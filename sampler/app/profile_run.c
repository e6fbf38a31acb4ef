#define _GNU_SOURCE /* ppoll, sched_getaffinity */
#include "sampler/app/profile_run.h"

#include "output/cli/heartbeat.h"
#include "output/cli/screen_width.h"
#include "sampler/app/rank.h"
#include "sampler/app/run_control.h"
#include "sampler/app/run_memory.h"
#include "sampler/app/run_output.h"
#include "sampler/app/run_sampling.h"
#include "sampler/app/run_targets.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/descriptors.h"
#include "sampler/target/turns.h"

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum {
    HEARTBEAT_NS = 250000000,
    FASTEST_HZ = 1000,
    BRIEF_NS = 4000000,  /* who has something to say may be kept waiting between two looks, … */
    SILENT_NS = 8000000, /* … and so long by those that follow each other */
    STATUS_OURS = 125,
};

/* The most of a core that we may use ourselves. */
static const double OWN_CPU_SHARE = 0.10;

/* Of what pauses may take: how long the next ones will be is a guess. */
static const double PLANNED_PART = 0.9;

/* ---- setting up ---- */

static double rate_wanted(const struct options *options)
{
    double rate = options->rate_hz;
    return rate > 0 && rate < FASTEST_HZ ? rate : FASTEST_HZ;
}

/* Those that the target may use: whom we launch may use our own. Of a recorded one nobody knows. */
static int cores_count(const struct options *options)
{
    cpu_set_t cores;
    bool is_there = options->verb == VERB_ATTACH && !options->replay;
    pid_t pid = is_there ? options->pids.items[0] : getpid();
    int error = sched_getaffinity(pid, sizeof cores, &cores);
    return error ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&cores);
}

static int settings_fill(struct run *run)
{
    const struct options *options = run->options;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    if (word_list_split(options->profile_only, &run->only) ||
        word_list_split(options->profile_exclude, &run->exclude))
        return -ENOMEM;
    int error = sources_new(&run->sources);
    if (error)
        return error;
    run->settings = (struct profile_settings){
        .profiler_version = run->version,
        .program = "",
        .program_path = "",
        .entrypoint_dir = "",
        .attached = options->verb == VERB_ATTACH,
        .profile_all = options->profile_all,
        .system_libraries = options->system_libraries,
        .virtual_time = options->virtual_time,
        .no_stacks = !options->stacks,
        .only = run->only.text ? run->only.items : NULL,
        .exclude = run->exclude.text ? run->exclude.items : NULL,
        .start_time_absolute = (double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec,
        .start_time_perf = seconds(run->start_ns),
        .wanted_rate_hz = options->rate_hz > 0 ? rate_wanted(options) : 0,
        .max_overhead_percent = options->max_overhead,
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .malloc_threshold = options->malloc_threshold,
        .memory = run_memory_wanted(options),
        .leak_detector = options->leak_detector,
        .allocation_window = (uint64_t)options->allocation_window,
        .cpu_count = cores_count(options),
        .sources = sources_reader(run->sources),
        .tap = run->recording ? recording_tap(run->recording) : NULL,
    };
    return 0;
}

/* ---- going on ---- */

static int process_end(struct run *run, pid_t pid, int status, uint64_t cpu_ns, uint64_t now_ns)
{
    int error = run_memory_end(run, pid);
    members_end(run->members, pid, status, cpu_ns, now_ns);
    return error;
}

static int family_follow(struct run *run, uint64_t now_ns)
{
    struct family_event event;
    bool polls = family_watch_method(run->family) == FAMILY_POLLING;
    if (!polls && !run->family_calls && now_ns < family_watch_deadline_ns(run->family))
        return 0;
    while (family_watch_next(run->family, now_ns, &event) > 0) {
        int error = 0;
        bool born = event.forked || (run->launch && event.pid == launch_pid(run->launch));
        run->ended_count += event.change == FAMILY_ENDED;
        if (event.change == FAMILY_ENDED)
            error = process_end(run, event.pid, event.exit_status, event.cpu_ns, now_ns);
        else if (event.change == FAMILY_EXECED)
            error = members_exec(run->members, event.pid, event.cpu_ns, event.stack_start, now_ns,
                                 run->profile);
        else
            error = members_join(run->members, event.pid, event.ppid, born, event.cpu_ns, now_ns);
        if (error)
            return error;
    }
    return 0;
}

static void signals_follow(struct run *run)
{
    struct signal_event event;
    while (run->signals_call && signals_next(&run->signals, &event) > 0) {
        if (event.kind == SIGNAL_SUSPEND)
            signals_suspend();
        if (event.kind != SIGNAL_END)
            continue;
        if (run->launch)
            launch_forward(run->launch, &event); /* its end ends the profiling */
        else
            run->finished = true;
    }
}

static void end_check(struct run *run, uint64_t now_ns)
{
    if (run->launch && !run->program_ended && launch_has_ended(run->launch)) {
        run->family_calls = true;
        family_follow(run, now_ns); /* as long as it can be asked what its children used */
        run->program_ended = launch_reap(run->launch, &run->end) > 0;
        process_end(run, launch_pid(run->launch), run->end.exit_status, run->end.cpu_ns, now_ns);
    }
    run->finished = run->finished || run->program_ended || family_watch_count(run->family) == 0 ||
                    now_ns >= run->end_ns;
}

static void heartbeat_show(struct run *run, uint64_t now_ns)
{
    struct members_glance members;
    struct profile_glance glance;
    if (!run->shows_heartbeat || run->finished || now_ns < run->heartbeat_ns)
        return;
    run->heartbeat_ns = now_ns + HEARTBEAT_NS;
    members_look(run->members, &members);
    profile_look(run->profile, &glance);
    const struct heartbeat heartbeat = {
        .is_off = run->is_off,
        .elapsed_s = seconds(now_ns - run->start_ns),
        .rate_hz = tick_clock_rate(&run->clock),
        .profiler_cpu_s = seconds(clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
        .samples = members.samples,
        .dropped = members.counts.dropped,
        .rss_bytes = members.rss_bytes,
        .hottest_file = glance.hottest_file,
        .hottest_line = glance.hottest_line,
        .hottest_percent = glance.hottest_percent,
    };
    heartbeat_draw(stderr, &heartbeat, screen_width(stderr));
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static uint64_t next_ns(const struct run *run)
{
    uint64_t until_ns = earlier(run_sample_deadline_ns(run), family_watch_deadline_ns(run->family));
    until_ns = earlier(until_ns, earlier(run->end_ns, run->save_ns));
    until_ns = earlier(until_ns, run_memory_deadline_ns(run));
    return run->shows_heartbeat ? earlier(until_ns, run->heartbeat_ns) : until_ns;
}

/*
 * Looks follow each other so fast that asking at each who else has something to say would cost half
 * as much as the look; who has waits for that long. Where the kernel does not tell of children,
 * each moment counts.
 */
static bool wait_briefly(const struct run *run, uint64_t now_ns, uint64_t wait_ns)
{
    if (wait_ns > BRIEF_NS || now_ns - run->polled_ns > SILENT_NS ||
        family_watch_method(run->family) == FAMILY_POLLING)
        return false;
    const struct timespec wait = { .tv_nsec = (long)wait_ns };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    return true;
}

static void wait_for_work(struct run *run, uint64_t now_ns)
{
    uint64_t until_ns = next_ns(run), wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    run->signals_call = run->family_calls = run->control_calls = false;
    if (wait_briefly(run, now_ns, wait_ns))
        return;
    run->polled_ns = now_ns;
    struct pollfd fds[2 + PIDS_MAX] = {
        { .fd = run->signals.fd, .events = POLLIN },
        { .fd = family_watch_fd(run->family), .events = POLLIN },
    };
    size_t count = 2 + run_control_poll(run, fds + 2);
    const struct timespec wait = { (time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u) };
    bool any = ppoll(fds, count, &wait, NULL) > 0;
    run->signals_call = any && fds[0].revents;
    run->family_calls = any && fds[1].revents;
    for (size_t i = 2; i < count && any; i++)
        run->control_calls |= fds[i].revents != 0;
}

/* What cannot be written now may be at the end: no reason to lose the rest. */
static void interim_write(struct run *run, uint64_t now_ns)
{
    char path[SAVE_PATH_SIZE];
    struct failure why = { 0 };
    if (now_ns < run->save_ns)
        return;
    int error = run_write(run, false, path, &why);
    if (error && error != -ENODATA && !run->told_trouble) {
        fprintf(stderr, "scalene-attach: %s\n", why.text);
        run->told_trouble = true;
    }
    run->save_ns = clock_ns(CLOCK_MONOTONIC) + nanoseconds(run->options->profile_interval_s);
}

static int loop(struct run *run, struct failure *why)
{
    run->family_calls = run->signals_call = run->control_calls = true;
    turns_want_short(false); /* else where we share a core looks would wait until nothing runs */
    while (!run->finished) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        int error = family_follow(run, now_ns);
        signals_follow(run);
        if (!error)
            error = run_sample_due(run, now_ns);
        if (!error)
            error = run_memory_follow(run, now_ns);
        if (!error && run->control_calls)
            error = run_control_follow(run);
        if (error)
            return failure_set(why, error, "out of memory");
        now_ns = clock_ns(CLOCK_MONOTONIC);
        end_check(run, now_ns);
        heartbeat_show(run, now_ns);
        interim_write(run, now_ns);
        if (!run->finished)
            wait_for_work(run, clock_ns(CLOCK_MONOTONIC));
    }
    return 0;
}

/* ---- the whole ---- */

static void run_done(struct run *run)
{
    run_memory_close(run);
    if (run->launch)
        launch_close(run->launch);
    profile_free(run->profile);
    members_free(run->members);
    core_holder_free(run->holder);
    if (run->family)
        family_watch_close(run->family);
    if (run->sources)
        sources_free(run->sources);
    while (run->more_count)
        free(run->more_paths[--run->more_count]);
    run_forget_args(run);
    word_list_done(&run->only);
    word_list_done(&run->exclude);
}

/* Nothing is lost when it cannot be written there, but it is good to know now and not in a week. */
static void output_check(struct run *run)
{
    char path[SAVE_PATH_SIZE];
    struct failure trouble;
    const char *output = run->options->output;
    if (output && !save_path_of(output, getpid(), run->rank, path, sizeof path) &&
        save_check(path, &trouble))
        fprintf(stderr, "scalene-attach: %s; it will go to the temporary folder\n", trouble.text);
}

static int run_open(struct run *run, int *ret_status, struct failure *why)
{
    const struct options *options = run->options;
    struct stack_options reading = {
        .native = options->native_stacks && !options->nonblocking,
        .nonblocking = options->nonblocking,
    };
    int error = options->record ? recording_open(options->record, &run->recording, why) : 0;
    if (error)
        return error;
    error = settings_fill(run);
    if (!error)
        error = core_holder_new(&run->holder);
    if (error)
        return failure_set(why, error, "out of memory");
    reading.holder = run->holder;
    reading.objects = &run->objects;
    error = family_watch_open(options->subprocesses, FAMILY_EVENTS, &run->family, why);
    if (error)
        return error;
    output_check(run);
    error = options->verb == VERB_ATTACH ? run_attach(run, why) : run_launch(run, ret_status, why);
    if (error)
        return error;
    descriptors_raise();
    error = profile_new(&run->settings, &run->profile);
    if (!error)
        error = members_new(&reading, run->sources, run->start_ns, &run->members);
    if (error)
        return failure_set(why, error, "out of memory");
    profile_mute(run->profile, run->is_off);
    members_mute(run->members, run->is_off);
    return 0;
}

/* A launched program is waited for, also when the profiling ended before it. */
static int program_wait(struct run *run)
{
    while (run->launch && !run->program_ended) {
        struct pollfd fd = { .fd = run->signals.fd, .events = POLLIN };
        poll(&fd, 1, 100);
        run->signals_call = fd.revents != 0;
        signals_follow(run);
        run->program_ended = launch_reap(run->launch, &run->end) > 0;
    }
    return run->launch ? run->end.exit_status : 0;
}

static int run_whole(struct run *run, int *ret_status, struct failure *why)
{
    char path[SAVE_PATH_SIZE];
    int error = signals_open(&run->signals, why);
    if (error)
        return error;
    error = run_open(run, ret_status, why);
    if (!error)
        error = loop(run, why);
    if (!error)
        error = run_write(run, true, path, why);
    run_control_close(run, error, path, why);
    struct failure incomplete;
    if (recording_close(run->recording, &incomplete) && !error) {
        *why = incomplete;
        error = why->code;
    }
    int status = program_wait(run);
    if (!error || (error == -ENODATA && run->launch && status))
        *ret_status = status;
    signals_close(&run->signals);
    return error;
}

/* ---- a recorded run ---- */

struct learning {
    struct run *run;
    size_t index;
};

static void process_learn(void *context, const struct process_event *process)
{
    const struct learning *learning = context;
    run_learn_program(learning->run, learning->index, process->argv,
                      process->cwd ? process->cwd : "");
}

static int replay_learn(struct run *run, struct failure *why)
{
    AUTO_FREE char **command = NULL;
    if (run->options->verb != VERB_ATTACH)
        return run_learn_command(run, &command, why);
    int error = 0;
    for (size_t i = 0; i < run->options->pids.count && !error; i++) {
        struct learning learning = { run, i };
        error = recording_find_process(run->options->replay, run->options->pids.items[i],
                                       process_learn, &learning, why);
    }
    return error;
}

static int run_replay(struct run *run, int *ret_status, struct failure *why)
{
    char path[SAVE_PATH_SIZE];
    int error = settings_fill(run);
    if (error)
        return failure_set(why, error, "out of memory");
    error = replay_learn(run, why);
    if (error)
        return error;
    error = profile_new(&run->settings, &run->profile);
    if (error)
        return failure_set(why, error, "out of memory");
    error = recording_replay(run->options->replay, run->profile, why);
    if (!error)
        error = run_write_told(run, true, path, why);
    *ret_status = error ? STATUS_OURS : 0;
    return error;
}

/* The first target's, as long as it can be asked; whom we launch has ours. */
static int rank_find(const struct options *options)
{
    bool is_there = options->verb == VERB_ATTACH && !options->replay;
    int rank = is_there ? rank_read(options->pids.items[0]) : -1;
    return rank < 0 ? rank_own() : rank;
}

/* A moment after the start; with 0 it never comes. */
static uint64_t moment_ns(const struct run *run, double after_s)
{
    return after_s > 0 ? run->start_ns + nanoseconds(after_s) : UINT64_MAX;
}

/* Tables that have grown are given back whole, however often: without this the C library takes what
 * it was given back once for what is wanted again, and the places that they leave behind add up. */
static void memory_settle(void)
{
    enum { OWN_MAPPING = 128 << 10 };
    mallopt(M_MMAP_THRESHOLD, OWN_MAPPING);
}

int profile_run(const struct options *options, const char *version, int *ret_status,
                struct failure *why)
{
    struct run run = { .options = options,
                       .version = version,
                       .rank = rank_find(options),
                       .start_ns = clock_ns(CLOCK_MONOTONIC),
                       .is_off = options_rest(options),
                       .was_off = options_rest(options),
                       .was_on = !options_rest(options) };
    *ret_status = STATUS_OURS;
    memory_settle();
    run_begin(&run);
    run.save_ns = moment_ns(&run, options->profile_interval_s);
    run.shows_heartbeat = !options->quiet && !options->replay && isatty(STDERR_FILENO);
    tick_clock_init(&run.clock, rate_wanted(options), PLANNED_PART * options->max_overhead / 100,
                    OWN_CPU_SHARE, run.start_ns, run.start_ns);
    int error =
        options->replay ? run_replay(&run, ret_status, why) : run_whole(&run, ret_status, why);
    run_done(&run);
    return error;
}
