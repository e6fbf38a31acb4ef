#define _GNU_SOURCE /* ppoll */
#include "sampler/app/profile_run.h"

#include "output/cli/closing_words.h"
#include "output/cli/heartbeat.h"
#include "output/cli/profile_table.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "output/json/profile_json.h"
#include "sampler/app/members.h"
#include "sampler/app/program.h"
#include "sampler/app/save.h"
#include "sampler/app/sources.h"
#include "sampler/app/view.h"
#include "sampler/app/word_list.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/clock.h"
#include "sampler/target/family_watch.h"
#include "sampler/target/launch.h"

#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    HEARTBEAT_NS = 250000000,
    FASTEST_HZ = 1000,
    STATUS_OURS = 125,
};

/* The most of a core that we may use ourselves. */
static const double OWN_CPU_SHARE = 0.10;

struct run {
    const struct options *options;
    const char *version; /* ours */
    struct profile_settings settings;
    struct word_list only, exclude;
    struct program program;
    struct sources *sources;
    struct profile *profile;
    struct members *members;
    struct family_watch *family;
    struct signals signals;
    struct launch *launch;
    struct launch_end end;
    struct tick_clock clock;
    struct failure refusal; /* the last one while opening members */
    uint64_t start_ns, heartbeat_ns, save_ns;
    bool finished, program_ended, shows_heartbeat;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double seconds(uint64_t ns)
{
    return 1e-9 * (double)ns;
}

/* ---- setting up ---- */

/* Whose code is the program's own: what the command or, attaching, the first target runs. */
static void program_learn(struct run *run, const char *const *argv, const char *cwd)
{
    program_find(argv, cwd, &run->program);
    run->settings.program = run->program.path;
    run->settings.entrypoint_dir = *run->program.path ? run->program.folder : "";
    run->settings.program_path =
        run->options->program_path ? run->options->program_path : run->program.folder;
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
        .only = run->only.text ? run->only.items : NULL,
        .exclude = run->exclude.text ? run->exclude.items : NULL,
        .start_time_absolute = (double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec,
        .start_time_perf = seconds(run->start_ns),
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .malloc_threshold = 100,
        .cpu_count = (int)sysconf(_SC_NPROCESSORS_ONLN),
        .sources = sources_reader(run->sources),
    };
    return 0;
}

static double rate_wanted(const struct options *options)
{
    double rate = options->rate_hz;
    if (rate <= 0 && options->interval_s > 0)
        rate = 1 / options->interval_s;
    return rate > 0 && rate < FASTEST_HZ ? rate : FASTEST_HZ;
}

/* `run prog.py args` is `python3 prog.py args`. */
static int command_build(const struct options *options, char ***ret)
{
    size_t count = 0;
    while (options->words[count])
        count++;
    char **command = calloc(count + 2, sizeof *command);
    if (!command)
        return -ENOMEM;
    size_t at = 0;
    if (options->verb == VERB_RUN)
        command[at++] = (char *)options->python;
    for (size_t i = 0; i < count; i++) /* the --- that ends a program's own words is Scalene's */
        if (options->verb != VERB_RUN || i == 0 || strcmp(options->words[i], "---") != 0)
            command[at++] = options->words[i];
    *ret = command;
    return 0;
}

static int launch_program(struct run *run, int *ret_status, struct failure *why)
{
    AUTO_FREE char **command = NULL;
    char cwd[4096] = "";
    if (!run->options->words || !run->options->words[0])
        return failure_set(why, -EINVAL, "there is no program to run");
    int error = command_build(run->options, &command);
    if (error)
        return failure_set(why, error, "out of memory");
    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    program_learn(run, (const char *const *)command, cwd);
    error = launch_start(command, &run->signals, &run->launch, why);
    if (error) {
        *ret_status = launch_failed_status(error);
        return error;
    }
    return family_watch_add(run->family, launch_pid(run->launch));
}

static int attach_targets(struct run *run, struct failure *why)
{
    for (size_t i = 0; i < run->options->pids.count; i++) {
        pid_t pid = run->options->pids.items[i];
        char cwd[4096] = "", link[64], words[4096];
        const char *argv[WORD_LIST_MAX + 1] = { NULL };
        struct process *process = NULL;
        int error = process_open(pid, &process, why); /* for its sentence, when it is refused */
        if (error)
            return error;
        process_close(process);
        snprintf(link, sizeof link, "/proc/%d/cwd", pid);
        ssize_t length = readlink(link, cwd, sizeof cwd - 1);
        cwd[length > 0 ? length : 0] = '\0';
        process_read_arguments(pid, words, sizeof words, argv, WORD_LIST_MAX);
        if (i == 0)
            program_learn(run, argv, cwd);
        error = family_watch_add(run->family, pid);
        if (error)
            return failure_set(why, error, "process %d ended before it could be watched", pid);
    }
    return 0;
}

/* ---- going on ---- */

static int family_follow(struct run *run, uint64_t now_ns)
{
    struct family_event event;
    while (family_watch_next(run->family, now_ns, &event) > 0) {
        int error = 0;
        bool born = event.forked || (run->launch && event.pid == launch_pid(run->launch));
        if (event.change == FAMILY_ENDED)
            members_end(run->members, event.pid, event.exit_status, event.cpu_ns, now_ns);
        else if (event.change == FAMILY_EXECED)
            error = members_exec(run->members, event.pid, event.cpu_ns, now_ns, run->profile);
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
    while (signals_next(&run->signals, &event) > 0) {
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
        family_follow(run, now_ns); /* as long as it can be asked what its children used */
        run->program_ended = launch_reap(run->launch, &run->end) > 0;
        members_end(run->members, launch_pid(run->launch), run->end.exit_status, run->end.cpu_ns,
                    now_ns);
    }
    run->finished = run->finished || run->program_ended || family_watch_count(run->family) == 0 ||
                    (run->options->duration_s > 0 &&
                     seconds(now_ns - run->start_ns) >= run->options->duration_s);
}

static int tick(struct run *run)
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

static void heartbeat_show(struct run *run, uint64_t now_ns)
{
    struct members_glance members;
    struct profile_glance glance;
    if (!run->shows_heartbeat || now_ns < run->heartbeat_ns)
        return;
    run->heartbeat_ns = now_ns + HEARTBEAT_NS;
    members_look(run->members, &members);
    profile_look(run->profile, &glance);
    const struct heartbeat heartbeat = {
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

static void wait_for_work(struct run *run, uint64_t now_ns)
{
    uint64_t until_ns = run->clock.next_ns, family_ns = family_watch_deadline_ns(run->family);
    uint64_t members_ns = members_deadline_ns(run->members);
    struct pollfd fds[] = {
        { .fd = run->signals.fd, .events = POLLIN },
        { .fd = family_watch_fd(run->family), .events = POLLIN },
    };
    if (family_ns < until_ns)
        until_ns = family_ns;
    if (members_ns < until_ns)
        until_ns = members_ns;
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec wait = { (time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u) };
    ppoll(fds, sizeof fds / sizeof *fds, &wait, NULL);
}

/* ---- the profile as it stands ---- */

static int sampling_tell(struct run *run, uint64_t now_ns)
{
    struct members_glance members;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    members_look(run->members, &members);
    const struct sampling_event event = {
        .rate_hz = tick_clock_rate(&run->clock),
        .elapsed_s = seconds(now_ns - run->start_ns),
        .paused_s = seconds(members.counts.paused_ns),
        .profiler_cpu_s = seconds(clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
        .longest_pause_us = 1e-3 * (double)members.counts.longest_pause_ns,
        .samples = members.samples,
        .retried = members.counts.retried,
        .dropped = members.counts.dropped,
        .missed = run->clock.missed,
        .pauses = members.counts.pauses,
        .profiler_peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024,
    };
    return profile_set_sampling(run->profile, &event);
}

static bool wants_table(const struct options *options)
{
    return options->format && strcmp(options->format, "cli") == 0;
}

static int text_make(const struct run *run, const struct report *report, char **ret_text,
                     size_t *ret_size)
{
    FILE *into = open_memstream(ret_text, ret_size);
    if (!into)
        return -ENOMEM;
    const struct table_settings table = {
        .width = screen_width(stderr),
        .cpu_percent_threshold = run->options->cpu_percent_threshold,
        .malloc_threshold = 100,
    };
    int error = wants_table(run->options) ? profile_table_write(into, report, &table)
                                          : profile_json_write(report, into);
    if (fclose(into))
        error = -ENOMEM;
    return error;
}

/* Where the words say it went, also when that was not where it should. */
static int report_save(struct run *run, const struct report *report, bool last, struct failure *why)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char path[SAVE_PATH_SIZE], saved[SAVE_PATH_SIZE];
    const char *pattern = run->options->output ? run->options->output : VIEW_USUAL_FILE;
    pid_t pid = run->launch ? launch_pid(run->launch) : run->options->pids.items[0];
    int error = text_make(run, report, &text, &size);
    if (!error)
        error = save_path(pattern, pid, path, sizeof path);
    if (error)
        return failure_set(why, error, "the profile could not be written: %s", strerror(-error));
    error = save_text(path, text, size, saved, why);
    if (error)
        return error;
    if (why->code)
        fprintf(stderr, "scalene-attach: %s; it went to %s\n", why->text, saved);
    if (last && !run->options->quiet && wants_table(run->options))
        closing_words_written(stderr, saved);
    else if (last && !run->options->quiet)
        closing_words_saved(stderr, saved, VIEW_USUAL_FILE);
    return 0;
}

/* The table of a run that names no file: beside a launched program on standard error, else on
 * standard output. */
static int table_print(const struct run *run, const struct report *report)
{
    FILE *out = run->launch ? stderr : stdout;
    const struct table_settings settings = {
        .width = screen_width(out),
        .coloured = style_wanted(out),
        .reduced = true,
        .cpu_percent_threshold = run->options->cpu_percent_threshold,
        .malloc_threshold = 100,
    };
    return profile_table_write(out, report, &settings);
}

static int profile_write(struct run *run, bool last, struct failure *why)
{
    struct report *report = NULL;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int error = members_tell(run->members, now_ns, last, run->profile);
    if (!error)
        error = sampling_tell(run, now_ns);
    if (!error)
        error = profile_report(run->profile, &report);
    if (error)
        return failure_set(why, error, "out of memory");
    if (report->files.count) {
        error = last && wants_table(run->options) && !run->options->output
                    ? table_print(run, report)
                    : report_save(run, report, last, why);
    } else if (last) {
        closing_words_nothing(stderr, report);
        error = failure_set(why, -ENODATA, "%s", run->refusal.text);
    }
    report_free(report);
    return error;
}

static int loop(struct run *run, struct failure *why)
{
    while (!run->finished) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        int error = family_follow(run, now_ns);
        signals_follow(run);
        if (!error)
            members_open_due(run->members, now_ns, &run->refusal);
        if (!error && now_ns >= run->clock.next_ns) {
            error = tick(run);
            now_ns = clock_ns(CLOCK_MONOTONIC);
            tick_clock_next(&run->clock, now_ns);
        }
        if (error)
            return failure_set(why, error, "out of memory");
        end_check(run, now_ns);
        heartbeat_show(run, now_ns);
        if (run->options->profile_interval_s > 0 && now_ns >= run->save_ns) {
            run->save_ns = now_ns + (uint64_t)(1e9 * run->options->profile_interval_s);
            if (now_ns - run->start_ns > HEARTBEAT_NS && profile_write(run, false, why))
                return why->code;
        }
        if (!run->finished)
            wait_for_work(run, clock_ns(CLOCK_MONOTONIC));
    }
    return 0;
}

static void run_done(struct run *run)
{
    if (run->launch)
        launch_close(run->launch);
    profile_free(run->profile);
    members_free(run->members);
    if (run->family)
        family_watch_close(run->family);
    sources_free(run->sources);
    word_list_done(&run->only);
    word_list_done(&run->exclude);
}

static int run_open(struct run *run, int *ret_status, struct failure *why)
{
    const struct options *options = run->options;
    const struct stack_options reading = {
        .native = options->native_stacks && !options->nonblocking,
        .nonblocking = options->nonblocking,
    };
    int error = settings_fill(run);
    if (error)
        return failure_set(why, error, "out of memory");
    error = family_watch_open(options->subprocesses, FAMILY_EVENTS, &run->family, why);
    if (error)
        return error;
    error = options->verb == VERB_ATTACH ? attach_targets(run, why)
                                         : launch_program(run, ret_status, why);
    if (error)
        return error;
    error = profile_new(&run->settings, &run->profile);
    if (!error)
        error = members_new(&reading, run->sources, run->start_ns, &run->members);
    return error ? failure_set(why, error, "out of memory") : 0;
}

/* A launched program is waited for, also when the profiling ended before it. */
static int program_wait(struct run *run)
{
    while (run->launch && !run->program_ended) {
        struct pollfd fd = { .fd = run->signals.fd, .events = POLLIN };
        poll(&fd, 1, 100);
        signals_follow(run);
        run->program_ended = launch_reap(run->launch, &run->end) > 0;
    }
    return run->launch ? run->end.exit_status : 0;
}

int profile_run(const struct options *options, const char *version, int *ret_status,
                struct failure *why)
{
    struct run run = { .options = options,
                       .version = version,
                       .start_ns = clock_ns(CLOCK_MONOTONIC) };
    *ret_status = STATUS_OURS;
    int error = signals_open(&run.signals, why);
    if (error)
        return error;
    run.shows_heartbeat = !options->quiet && isatty(STDERR_FILENO);
    tick_clock_init(&run.clock, rate_wanted(options), options->max_overhead / 100, OWN_CPU_SHARE,
                    run.start_ns, run.start_ns);
    error = run_open(&run, ret_status, why);
    if (!error)
        error = loop(&run, why);
    if (run.shows_heartbeat)
        heartbeat_erase(stderr);
    if (!error)
        error = profile_write(&run, true, why);
    int status = run.launch ? program_wait(&run) : 0;
    if (!error || (error == -ENODATA && run.launch && status))
        *ret_status = status;
    run_done(&run);
    signals_close(&run.signals);
    return error;
}
