/*
 * How fast are whole stacks read, with how many process_vm_readv calls, and how long does a pause
 * last? Starts the given Python on a program of N distinct functions, each calling the next, the
 * last one busy. For each depth a row for one look at the Python stack (what a paused thread
 * needs), for looks that agree (what a running one needs), for the thread's event without pausing
 * (the kernel's account too), and with pauses (their median). usage: read_stack [PYTHON [DEPTH…]]
 */
#include "sampler/base/cleanup.h"
#include "sampler/loop/stacks.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static const char program[] = "import os, sys\n"
                              "sys.setrecursionlimit(100000)\n"
                              "depth = int(sys.argv[1])\n"
                              "for i in range(depth - 1):\n"
                              "    exec(f'def f{i}(): f{i + 1}()\\n')\n"
                              "def busy():\n"
                              "    os.write(1, b'r')\n"
                              "    n = 0\n"
                              "    while True:\n"
                              "        n = (n * 5 + 1) & 0xffff\n"
                              "globals()[f'f{depth - 2}'] = busy\n"
                              "f0()\n";

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static pid_t target_start(const char *python, int depth)
{
    int ready[2];
    char text[16], byte;
    snprintf(text, sizeof text, "%d", depth);
    if (pipe(ready))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], 1);
        execlp(python, python, "-c", program, text, NULL);
        _exit(127);
    }
    close(ready[1]);
    long got = read(ready[0], &byte, 1);
    close(ready[0]);
    return got == 1 ? pid : -1;
}

struct result {
    uint64_t stacks, calls, whole;
    double seconds, cpu;
    double pause_us, longest_us; /* the median; 0: no pauses */
};

enum { PAUSES_KEPT = 1 << 16 };

static int pause_compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* What is measured: reads one stack, 0 when it was whole. */
struct subject {
    const char *name;
    bool nonblocking;
    int (*read)(struct stack_reader *reader);
};

static int read_event(struct stack_reader *reader)
{
    struct thread_event event;
    return stack_reader_read(reader, 0, &event);
}

/* A thread that was just let go has not run yet, and would be read without a pause. */
static int read_event_after_a_gap(struct stack_reader *reader)
{
    struct timespec gap = { .tv_nsec = 100000 };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, NULL);
    return read_event(reader);
}

static int look_once(struct stack_reader *reader)
{
    return stack_reader_look(reader, 0, true);
}

static int look_until_sure(struct stack_reader *reader)
{
    return stack_reader_look(reader, 0, false);
}

static const struct subject subjects[] = {
    { "one look", true, look_once },
    { "agreeing", true, look_until_sure },
    { "nonblocking", true, read_event },
    { "pausing", false, read_event_after_a_gap },
};

static int measure(struct stack_reader *reader, struct process *process,
                   const struct subject *subject, double seconds, struct result *ret)
{
    AUTO_FREE uint64_t *pauses_ns = calloc(PAUSES_KEPT, sizeof *pauses_ns);
    size_t pauses = 0;
    if (!pauses_ns || stack_reader_list(reader) < 0)
        return -1;
    for (int i = 0; i < 20; i++)
        subject->read(reader); /* warm: prediction and names */
    uint64_t calls = process->read_calls, round = 0;
    double start = seconds_now(), cpu = cpu_seconds();
    *ret = (struct result){ 0 };
    while (ret->seconds < seconds) {
        for (int i = 0; i < 100; i++, ret->stacks++) {
            uint64_t paused_ns = stack_reader_counts(reader).paused_ns;
            ret->whole += subject->read(reader) == 0;
            paused_ns = stack_reader_counts(reader).paused_ns - paused_ns;
            if (paused_ns && pauses < PAUSES_KEPT)
                pauses_ns[pauses++] = paused_ns;
        }
        ret->seconds = seconds_now() - start;
        if (++round % 100 == 0 && stack_reader_list(reader) < 0)
            return -1; /* a round's memory is freed with the round */
    }
    ret->cpu = cpu_seconds() - cpu;
    ret->calls = process->read_calls - calls;
    qsort(pauses_ns, pauses, sizeof *pauses_ns, pause_compare);
    if (pauses)
        ret->pause_us = 1e-3 * (double)pauses_ns[pauses / 2];
    ret->longest_us = 1e-3 * (double)stack_reader_counts(reader).longest_pause_ns;
    return 0;
}

static int run(pid_t pid, const struct subject *subject, double seconds, struct result *ret)
{
    const struct stack_options options = { .nonblocking = subject->nonblocking };
    struct failure why = { .text = "" };
    struct process *process = NULL;
    struct stack_reader *reader = NULL;
    if (process_open(pid, &process, &why) || stack_reader_open(process, &options, &reader, &why)) {
        fprintf(stderr, "read_stack: %s\n", why.text);
        return -1;
    }
    int error = measure(reader, process, subject, seconds, ret);
    stack_reader_close(reader);
    process_close(process);
    return error;
}

static void row_print(const char *mode, int depth, const struct result *result)
{
    double stacks = (double)result->stacks;
    printf("%-12s %6d %12.0f %10.2f %9.2f %9.1f%% %12.1f %12.1f\n", mode, depth,
           stacks / result->seconds, (double)result->calls / stacks, 1e6 * result->cpu / stacks,
           100.0 * (double)result->whole / stacks, result->pause_us, result->longest_us);
}

int main(int argc, char **argv)
{
    static char *usual[] = { "10", "12", "100", "1000" };
    const char *python = argc > 1 ? argv[1] : "python3";
    char **depths = argc > 2 ? argv + 2 : usual;
    int depth_count = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    printf("%-12s %6s %12s %10s %9s %10s %12s %12s\n", "mode", "depth", "stacks/s", "readv each",
           "cpu us", "whole", "pause us", "longest us");
    for (int i = 0; i < depth_count; i++) {
        int depth = atoi(depths[i]);
        pid_t pid = target_start(python, depth);
        if (pid < 0) {
            fprintf(stderr, "read_stack: %s cannot be started\n", python);
            return 1;
        }
        for (size_t j = 0; j < sizeof subjects / sizeof *subjects; j++) {
            struct result result;
            if (!run(pid, &subjects[j], 1.0, &result))
                row_print(subjects[j].name, depth, &result);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return 0;
}
