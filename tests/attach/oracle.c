/*
 * Samples the stacks of a process at exponential gaps and writes how often each was seen, for a
 * judge that knows which stacks can exist: count, TAB, microseconds on a CPU by batch, TAB, the sum
 * of their squares by look, TAB, `name:file:line` frames outermost first. Last line: how the reads
 * went. As in a profile, a look at a thread that runs, or would if there were a core, stands for
 * its CPU time since the last one.
 */
#include "sampler/base/cleanup.h"
#include "sampler/loop/stacks.h"

#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { BATCHES = 64, STACK_TEXT = 1 << 20, THREAD_IDS = 1 << 22 };

struct seen {
    char *stack;
    uint64_t count, cpu_us[BATCHES];
    double cpu_us_squares;
};

struct tally {
    void *tree;
    uint64_t total, wanted;
    pid_t pid;
    uint64_t *run_ns;  /* by thread: how long it had run at its last look that counts */
    int last_error;    /* of a sample that was dropped */
    uint64_t unlisted; /* ticks at which the list of threads changed at every look */
    char *text;
};

static int seen_compare(const void *a, const void *b)
{
    return strcmp(((const struct seen *)a)->stack, ((const struct seen *)b)->stack);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

/* What this look stands for. The main thread ran before we came. */
static uint64_t cpu_take(struct tally *tally, const struct thread_event *event)
{
    uint64_t *last_ns = &tally->run_ns[event->tid % THREAD_IDS], since_ns = *last_ns;
    if (event->state != THREAD_RUNNING)
        return 0;
    *last_ns = event->run_ns;
    if (!since_ns && event->tid == tally->pid)
        return 0;
    return event->run_ns - (since_ns <= event->run_ns ? since_ns : 0); /* an id may be used again */
}

static void tally_add(struct tally *tally, const struct thread_event *event)
{
    char *at = tally->text;
    for (size_t i = event->frame_count; i-- > 0;) {
        const struct frame_event *frame = &event->frames[i];
        at += snprintf(at, (size_t)(tally->text + STACK_TEXT - at), "%s%s:%s:%d",
                       i + 1 < event->frame_count ? ";" : "", frame->name ? frame->name : "?",
                       base_name(frame->file), frame->line);
        if (at >= tally->text + STACK_TEXT - 4096)
            break;
    }
    *at = '\0';
    struct seen key = { .stack = tally->text };
    struct seen **slot = tfind(&key, &tally->tree, seen_compare);
    if (!slot) {
        struct seen *fresh = calloc(1, sizeof *fresh);
        fresh->stack = strdup(tally->text);
        slot = tsearch(fresh, &tally->tree, seen_compare);
    }
    (*slot)->count++;
    size_t batch = tally->total * BATCHES / tally->wanted % BATCHES;
    uint64_t cpu_us = cpu_take(tally, event) / 1000;
    (*slot)->cpu_us[batch] += cpu_us;
    (*slot)->cpu_us_squares += (double)cpu_us * (double)cpu_us;
}

static void seen_print(const void *node, VISIT which, int depth)
{
    (void)depth;
    if (which != postorder && which != leaf)
        return;
    const struct seen *seen = *(struct seen *const *)node;
    printf("%" PRIu64 "\t", seen->count);
    for (unsigned i = 0; i < BATCHES; i++)
        printf("%s%" PRIu64, i ? "," : "", seen->cpu_us[i]);
    printf("\t%.0f\t%s\n", seen->cpu_us_squares, seen->stack);
}

/* An exponential gap, so that no rhythm of the program can hide from us. */
static void gap_wait(double mean_us)
{
    double gap_us = -mean_us * log(1.0 - drand48());
    struct timespec gap = { (time_t)(gap_us / 1e6), (long)(fmod(gap_us, 1e6) * 1e3) };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, NULL);
}

static int sample(struct stack_reader *reader, struct tally *tally, bool main_only, double gap_us)
{
    while (tally->total < tally->wanted) {
        int count = stack_reader_list(reader);
        if (count < 0 && count != -EAGAIN)
            return count;
        tally->unlisted += count < 0;
        for (int i = 0; i < count && tally->total < tally->wanted && !(main_only && i); i++) {
            struct thread_event event;
            int error = stack_reader_read(reader, (size_t)i, &event);
            if (error == -ESRCH)
                continue; /* the thread ended, which is no fault of the read */
            if (error)
                tally->last_error = error;
            else
                tally_add(tally, &event);
            tally->total++;
        }
        gap_wait(gap_us);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct stack_options options = { 0 };
    struct tally tally = { .wanted = 100000, .text = malloc(STACK_TEXT) };
    struct failure why = { .text = "" };
    struct process *process = NULL;
    struct stack_reader *reader = NULL;
    pid_t pid = 0;
    bool main_only = false;
    double gap_us = 50;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--pid") == 0 && i + 1 < argc)
            pid = atoi(argv[++i]);
        else if (strcmp(argv[i], "--samples") == 0 && i + 1 < argc)
            tally.wanted = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--gap-us") == 0 && i + 1 < argc)
            gap_us = atof(argv[++i]);
        else if (strcmp(argv[i], "--nonblocking") == 0)
            options.nonblocking = true;
        else if (strcmp(argv[i], "--careful") == 0 && !options.holder)
            core_holder_new(&options.holder);
        else if (strcmp(argv[i], "--main") == 0)
            main_only = true;
        else
            return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1UL); /* else each gap is 50 us longer than it should be */
    srand48(getpid());
    tally.pid = pid;
    tally.run_ns = calloc(THREAD_IDS, sizeof *tally.run_ns);
    if (process_open(pid, &process, &why) || stack_reader_open(process, &options, &reader, &why)) {
        fprintf(stderr, "oracle: %s\n", why.text);
        return 1;
    }
    int error = sample(reader, &tally, main_only, gap_us);
    twalk(tally.tree, seen_print);
    struct stack_counts counts = stack_reader_counts(reader);
    printf("# clean %" PRIu64 " retried %" PRIu64 " dropped %" PRIu64 " pauses %" PRIu64
           " paused_ns %" PRIu64 " longest_ns %" PRIu64 " unlisted %" PRIu64
           " drop_error %d error %d\n",
           counts.clean, counts.retried, counts.dropped, counts.pauses, counts.paused_ns,
           counts.longest_pause_ns, tally.unlisted, tally.last_error, error);
    return error != 0 && error != -ESRCH;
}
