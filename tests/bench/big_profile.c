/*
 * A profile of 200,000 lines in 2,000 files, with 10,000 stacks of 40 frames, the inner ten of
 * which differ most, and 100,000 runs: how long it takes to write, to read and to show in each
 * format, and what memory that needs, beside the size of its file. Each step is a process of its
 * own that reads the file first, which its memory includes. The file is in the folder that is
 * named, else in /tmp.   usage: big_profile [FOLDER]
 */
#include "output/json/profile_json.h"
#include "sampler/app/formats.h"
#include "sampler/app/report_load.h"
#include "sampler/base/cleanup.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    FILES = 2000,
    LINES = 100,
    FUNCTIONS = 10,
    STACKS = 10000,
    DEPTH = 40,
    MEMORY_STACKS = 2000,
    RUNS = 100000,
    THREADS = 8
};

DEFINE_CLEANUP(struct report *, report_free)

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the profile ---- */

static const char *text_make(struct report *report, const char *format, size_t number)
{
    char *text = arena_take(&report->arena, 128);
    snprintf(text, 128, format, number);
    return text;
}

static void *list_make(struct report *report, size_t count, size_t size)
{
    void *items = arena_take(&report->arena, count * size);
    if (!items)
        abort();
    return items;
}

/* Most lines of a program cost nothing; a tenth has numbers in all columns. */
static void line_make(struct report *report, struct line_stats *line, size_t number)
{
    *line = (struct line_stats){
        .lineno = (int64_t)(number % LINES) + 1,
        .line = text_make(report, "        value = compute(value, %zu)  # of the source\n", number),
    };
    if (number % 10)
        return;
    line->n_cpu_percent_python = 0.001234 * (double)(number % 977);
    line->n_cpu_percent_c = 0.000517 * (double)(number % 311);
    line->cpu_python_s = 0.012345 * (double)(number % 97);
    line->cumulative_s = 0.123457 * (double)(number % 89);
    line->samples = (int64_t)(number % 4099);
    line->n_malloc_mb = 1.234567 * (double)(number % 53);
    line->memory_samples.count = 20;
    line->memory_samples.items = list_make(report, 20, sizeof(struct point));
    for (size_t i = 0; i < 20; i++)
        line->memory_samples.items[i] = (struct point){ 1e7 * (double)i, 0.37 * (double)i };
}

static void files_make(struct report *report)
{
    report->files.count = FILES;
    report->files.items = list_make(report, FILES, sizeof *report->files.items);
    for (size_t i = 0; i < FILES; i++) {
        struct report_file *file = &report->files.items[i];
        file->path = text_make(report, "/srv/application/package/module_%05zu.py", i);
        file->percent_cpu_time = 100.0 / FILES;
        file->lines.count = LINES;
        file->lines.items = list_make(report, LINES, sizeof *file->lines.items);
        for (size_t n = 0; n < LINES; n++)
            line_make(report, &file->lines.items[n], i * LINES + n);
        file->functions.count = FUNCTIONS;
        file->functions.items = list_make(report, FUNCTIONS, sizeof *file->functions.items);
        for (size_t n = 0; n < FUNCTIONS; n++)
            line_make(report, &file->functions.items[n], i * LINES + n);
    }
}

static struct report_stack *stacks_make(struct report *report, size_t count)
{
    enum { FRAMES = 4000 };
    struct report_stack *stacks = list_make(report, count, sizeof *stacks);
    struct report_frame *frames = list_make(report, FRAMES, sizeof *frames);
    for (size_t i = 0; i < FRAMES; i++)
        frames[i] = (struct report_frame){
            .kind = i % 8 ? "py" : "native",
            .display_name = text_make(report, "Class.method_%zu", i),
            .filename_or_module =
                text_make(report, "/srv/application/package/module_%05zu.py", i % FILES),
            .line = i % 8 ? (int64_t)(i % LINES) + 1 : -1,
            .ip = i % 8 ? -1 : 0x7F0000000000 + (int64_t)i,
            .offset = i % 8 ? -1 : (int64_t)i,
        };
    for (size_t i = 0; i < count; i++) {
        stacks[i].frames.count = DEPTH;
        stacks[i].frames.items = list_make(report, DEPTH, sizeof(void *));
        for (size_t n = 0; n < DEPTH; n++)
            stacks[i].frames.items[n] = &frames[(n * 97 + (n > 30 ? i * n : 0)) % FRAMES];
        stacks[i].hits = (int64_t)(count - i);
        stacks[i].megabytes = 0.5 * (double)(count - i);
    }
    return stacks;
}

static void times_make(struct report *report)
{
    report->stack_times.count = STACKS;
    report->stack_times.items = list_make(report, STACKS, sizeof *report->stack_times.items);
    for (size_t i = 0; i < STACKS; i++)
        report->stack_times.items[i] = (struct report_stack_time){
            .stack_index = (int64_t)i,
            .pid = 100,
            .tid = 100 + (int64_t)(i % THREADS),
            .samples = 50,
            .hits = (int64_t)(STACKS - i),
            .cpu_python_s = 0.010001 * (double)(i % 1009),
            .idle_s = 0.002003 * (double)(i % 503),
            .wait_s = { { 0.1, 0, 0, 0.012345 * (double)(i % 13) } },
        };
    report->timeline.count = RUNS;
    report->timeline.items = list_make(report, RUNS, sizeof *report->timeline.items);
    for (size_t i = 0; i < RUNS; i++)
        report->timeline.items[i] = (struct report_run){
            .t_sec = 0.001 * (double)i,
            .stack_index = (int64_t)((i * 7919) % STACKS / THREADS * THREADS + i % THREADS),
            .count = 3,
            .thread_id = 140000000000000 + (int64_t)(i % THREADS),
            .pid = 100,
            .tid = 100 + (int64_t)(i % THREADS),
        };
}

static struct report *report_make(void)
{
    static struct report_process process = { .pid = 100, .rank = -1, .exit_status = 0 };
    struct report *report = report_new();
    if (!report)
        abort();
    files_make(report);
    report->combined_stacks.items = stacks_make(report, STACKS);
    report->combined_stacks.count = STACKS;
    report->memory_stacks.items = stacks_make(report, MEMORY_STACKS);
    report->memory_stacks.count = MEMORY_STACKS;
    times_make(report);
    report->threads.count = THREADS;
    report->threads.items = list_make(report, THREADS, sizeof *report->threads.items);
    for (size_t i = 0; i < THREADS; i++)
        report->threads.items[i] = (struct report_thread){
            .pid = 100, .tid = 100 + (int64_t)i, .name = text_make(report, "worker-%zu", i)
        };
    report->processes.items = &process;
    report->processes.count = 1;
    report->memory = true;
    report->elapsed_time_sec = report->totals.elapsed_s = 100;
    report->totals.cpu_python_s = 400;
    return report;
}

/* ---- steps ---- */

struct taken {
    double seconds, cpu_s, peak_mb;
};

static struct report *report_read(const char *path)
{
    struct report *report = NULL;
    struct failure why = { 0 };
    if (report_load(path, "9.9", &report, &why)) {
        fprintf(stderr, "%s\n", why.text);
        exit(1);
    }
    return report;
}

/* NULL: the file is only read. */
static void step_run(const char *path, const struct format *format, const char *into,
                     struct taken *ret)
{
    const struct table_settings table = { .width = 100, .coloured = true };
    bool makes = strcmp(into, path) == 0;
    CLEANUP(report_freep) struct report *report = makes ? report_make() : NULL;
    double begin_s = now(CLOCK_MONOTONIC), begin_cpu_s = now(CLOCK_PROCESS_CPUTIME_ID);
    if (!report)
        report = report_read(path);
    if (format && !makes) {
        begin_s = now(CLOCK_MONOTONIC);
        begin_cpu_s = now(CLOCK_PROCESS_CPUTIME_ID);
    }
    AUTO_FCLOSE FILE *out = fopen(into, "we");
    if (format && (!out || format_write(format, report, &table, out) || fflush(out)))
        abort();
    ret->seconds = now(CLOCK_MONOTONIC) - begin_s;
    ret->cpu_s = now(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_s;
}

/* In a process of its own. */
static struct taken step_measure(const char *path, const struct format *format, const char *into)
{
    int pipe_fds[2];
    struct taken taken = { 0 };
    struct rusage usage;
    if (pipe(pipe_fds))
        abort();
    pid_t child = fork();
    if (child == 0) {
        step_run(path, format, into, &taken);
        _exit(write(pipe_fds[1], &taken, sizeof taken) != sizeof taken);
    }
    close(pipe_fds[1]);
    if (child < 0 || read(pipe_fds[0], &taken, sizeof taken) != sizeof taken ||
        wait4(child, NULL, 0, &usage) != child)
        abort();
    close(pipe_fds[0]);
    taken.peak_mb = (double)usage.ru_maxrss / 1024;
    return taken;
}

enum { MOST_TIMES = 10 }; /* of the file's size, in memory */
static const double MOST_S = 1;

/* Is it within the limits? */
static bool taken_show(const char *name, const struct taken *taken, double size_mb)
{
    printf("%-24s %8.2f %8.2f %9.0f %6.1f\n", name, taken->seconds, taken->cpu_s, taken->peak_mb,
           taken->peak_mb / size_mb);
    return taken->seconds <= MOST_S && taken->peak_mb < MOST_TIMES * size_mb;
}

int main(int argc, char **argv)
{
    char path[4096];
    struct stat stat_buffer;
    snprintf(path, sizeof path, "%s/big-profile-%d.json", argc > 1 ? argv[1] : "/tmp", getpid());
    struct taken taken = step_measure(path, format_find("json"), path);
    stat(path, &stat_buffer);
    double size_mb = (double)stat_buffer.st_size / 1048576;
    printf("%-24s %8s %8s %9s %6s\n", "", "seconds", "CPU s", "peak MB", "x file");
    bool fine = taken_show("json, written", &taken, size_mb);
    taken = step_measure(path, NULL, "/dev/null");
    fine = taken_show("json, read", &taken, size_mb) && fine;
    for (size_t i = 1; i < format_count; i++) {
        taken = step_measure(path, &formats[i], "/dev/null");
        fine = taken_show(formats[i].name, &taken, size_mb) && fine;
    }
    printf(
        "the file has %.1f MB; %s %.0f second at most for each, and less than %d times its size\n",
        size_mb, fine ? "held:" : "wanted, and not held:", MOST_S, MOST_TIMES);
    unlink(path);
    return fine ? 0 : 1;
}
