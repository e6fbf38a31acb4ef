#include "sampler/app/run_output.h"

#include "output/cli/closing_words.h"
#include "output/cli/heartbeat.h"
#include "output/cli/profile_table.h"
#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "sampler/app/formats.h"
#include "sampler/app/page_file.h"
#include "sampler/app/report_load.h"
#include "sampler/app/run_memory.h"
#include "sampler/app/run_sampling.h"
#include "sampler/app/run_targets.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/footprint.h"
#include "sampler/target/stillness.h"

#include <string.h>
#include <time.h>

DEFINE_CLEANUP(struct report *, report_free)

static uint64_t longer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void run_look(struct run *run, uint64_t now_ns, struct sampling_event *ret)
{
    struct members_glance members;
    struct stood stood;
    run_memory_stood(run, &stood);
    members_look(run->members, &members);
    *ret = (struct sampling_event){
        .rate_hz = tick_clock_mean_rate(&run->clock),
        .elapsed_s = seconds(run_on_ns(run, now_ns)),
        .paused_s = seconds(members.counts.paused_ns + stood.sum_ns),
        .profiler_cpu_s = seconds(clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
        .longest_pause_us =
            1e-3 * (double)longer(members.counts.longest_pause_ns, stood.longest_ns),
        .samples = members.samples,
        .retried = members.counts.retried,
        .dropped = members.counts.dropped,
        .missed = run->clock.missed,
        .pauses = members.counts.pauses + stood.count,
        .profiler_peak_rss_bytes = footprint_own_peak(),
    };
}

static const struct format *run_format(const struct run *run)
{
    return format_choose(run->options->format, run->options->output);
}

static bool goes_to_terminal(const struct run *run)
{
    return !run_format(run)->write && !run->options->output;
}

int run_output_path(const struct run *run, char *into)
{
    char usual[64];
    format_usual_file(run_format(run), usual, sizeof usual);
    const char *pattern = run->options->output ? run->options->output : usual;
    pid_t pid = run->launch ? launch_pid(run->launch) : run->options->pids.items[0];
    if (goes_to_terminal(run))
        return -ENOENT;
    return save_path_of(pattern, pid, run->rank, into, SAVE_PATH_SIZE);
}

struct report_source {
    struct save_source source; /* first, so that a struct save_source * leads back here */
    const struct run *run;
    const struct report *report;
};

static int report_put(const struct save_source *self, FILE *into)
{
    const struct report_source *source = (const struct report_source *)self;
    const struct options *options = source->run->options;
    const struct table_settings table = {
        .width = screen_width(stderr),
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .malloc_threshold = options->malloc_threshold,
    };
    return format_write(run_format(source->run), source->report, &table, into);
}

static int report_save(const struct run *run, const struct report *report, char *ret_path,
                       struct failure *why)
{
    char path[SAVE_PATH_SIZE];
    const struct report_source source = { { report_put }, run, report };
    int error = run_output_path(run, path);
    if (error)
        return failure_set(why, error, "the profile could not be written: %s", strerror(-error));
    error = save_write(path, &source.source, ret_path, why);
    return error || !format_has_assets(run_format(run)) ? error : page_file_assets(ret_path, why);
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
        .malloc_threshold = run->options->malloc_threshold,
    };
    int error = profile_table_write(out, report, &settings);
    fflush(out);
    return error;
}

/* Where the words say it went, also when that was not where it should. */
static void saving_tell(struct run *run, bool last, const char *path, const struct failure *why)
{
    if (why->code && (last || !run->told_trouble)) {
        fprintf(stderr, "scalene-attach: %s; it went to %s\n", why->text, path);
        run->told_trouble = true;
    }
    if (!last || run->options->quiet)
        return;
    if (run_format(run) == format_find("json"))
        closing_words_saved(stderr, path, VIEW_USUAL_FILE);
    else
        closing_words_written(stderr, "profile", path);
}

/* Also where lines were met and have no number: virtual time, of a target that only waited. */
static bool has_nothing(const struct report *report)
{
    const struct report_totals *totals = &report->totals;
    return !report->files.count ||
           (!report_has_time(report) && wait_times_sum(&totals->wait_s) <= 0 &&
            totals->allocated_mb <= 0 && totals->copied_mb <= 0);
}

static int report_write(struct run *run, const struct report *report, bool last, char *ret_path,
                        struct failure *why)
{
    if (run->shows_heartbeat)
        heartbeat_erase(stderr);
    if (has_nothing(report)) {
        if (last)
            closing_words_nothing(stderr, report, &run->settings);
        return failure_set(why, -ENODATA, "%s", run->refusal.text);
    }
    *ret_path = '\0';
    if (goes_to_terminal(run))
        return table_print(run, report);
    int error = report_save(run, report, ret_path, why);
    if (!error)
        saving_tell(run, last, ret_path, why);
    return error;
}

int run_write_told(struct run *run, bool last, char *ret_path, struct failure *why)
{
    CLEANUP(report_freep) struct report *report = NULL;
    run_learn_first(run);
    if (profile_report(run->profile, &report))
        return failure_set(why, -ENOMEM, "out of memory");
    return report_write(run, report, last, ret_path, why);
}

/* What a reader of the numbers must know of the time without sampling. */
static int cut_note(struct run *run)
{
    struct members_glance members;
    members_look(run->members, &members);
    return members.counts.cut ? profile_add_note(run->profile, "some stacks were deeper than what "
                                                               "is read of them: their outermost "
                                                               "frames are missing")
                              : 0;
}

static int below_note(struct run *run)
{
    char text[sizeof run->below + 128];
    struct members_glance members;
    members_look(run->members, &members);
    if (members.python || !*run->below)
        return 0;
    snprintf(text, sizeof text, "Python ran below it, and was not followed (--no-subprocesses): %s",
             run->below);
    return profile_add_note(run->profile, text);
}

static int gpu_note(struct run *run)
{
    return run->options->gpu == WISH_YES
               ? profile_add_note(run->profile, "GPUs are not looked at yet")
               : 0;
}

/* Nobody is to believe that it took effect. */
static int set_aside_note(struct run *run)
{
    char note[512];
    if (!run->options->set_aside)
        return 0;
    snprintf(note, sizeof note, "the configuration's %s had no effect: %s", run->options->set_aside,
             run->options->verb == VERB_ATTACH ? "that is for programs that are started here"
                                               : "that is for another way to profile");
    return profile_add_note(run->profile, note);
}

/* What a thread does with its core is told by its registers, and by what it has called. */
static int kinds_note(struct run *run)
{
    if (run->options->nonblocking)
        return profile_add_note(run->profile, "without pauses, all time on a core counts as "
                                              "Python's: native and kernel time among it");
    return run->options->native_stacks
               ? 0
               : profile_add_note(run->profile, "without native stacks, native time counts as "
                                                "Python's");
}

static int rest_note(struct run *run, bool last)
{
    if (last && !run->was_on)
        return profile_add_note(run->profile, "sampling was never switched on, which "
                                              "scalene-attach on --pid N does");
    if (!run->was_off || !run->was_on)
        return 0;
    return profile_add_note(run->profile, "sampling was off for some of the time, which is in none "
                                          "of the sums");
}

int run_write(struct run *run, bool last, char *ret_path, struct failure *why)
{
    struct sampling_event sampling;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int error = members_tell(run->members, now_ns, last || run->is_off, run->profile);
    if (!error)
        error = run_memory_tell(run, last);
    run_look(run, now_ns, &sampling); /* with what threads stood at the very end */
    if (!error)
        error = profile_set_sampling(run->profile, &sampling);
    if (!error)
        error = rest_note(run, last);
    if (!error)
        error = cut_note(run);
    if (!error)
        error = below_note(run);
    if (!error)
        error = gpu_note(run);
    if (!error)
        error = set_aside_note(run);
    if (!error)
        error = kinds_note(run);
    if (error)
        return failure_set(why, error, "out of memory");
    return run_write_told(run, last, ret_path, why);
}
