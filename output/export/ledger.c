#define _GNU_SOURCE /* asprintf */
#include "output/export/ledger.h"

#include "output/model/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* Sums of these, in nanoseconds, too, stay in 64 bits. */
#define MILLIONTHS_MAX 100000000000000u
#define SAMPLES_MAX 1000000000000u
#define MOMENT_MAX 9e9 /* in the year 2255 */

static uint64_t text_millionths(double number)
{
    char text[64];
    snprintf(text, sizeof text, "%.6f", number);
    return (uint64_t)llround(1e6 * strtod(text, NULL));
}

/* Near the middle between two of them, the text decides, as in the JSON. */
uint64_t ledger_millionths(double number)
{
    if (!(number > 0))
        return 0;
    if (number * 1e6 >= (double)MILLIONTHS_MAX)
        return MILLIONTHS_MAX;
    double whole = floor(number * 1e6), rest = number * 1e6 - whole;
    return fabs(rest - 0.5) > 0.01 ? (uint64_t)whole + (rest > 0.5) : text_millionths(number);
}

uint64_t ledger_moment_us(double seconds)
{
    return seconds > 0 && seconds < MOMENT_MAX ? text_millionths(seconds) : 0;
}

uint64_t ledger_point_ns(const struct point *point)
{
    double most = 1e3 * (double)MILLIONTHS_MAX;
    return point->time_ns > 0 ? (uint64_t)fmin(point->time_ns, most) : 0;
}

uint64_t ledger_bytes(double megabytes)
{
    return (uint64_t)llround(1.048576 * (double)ledger_millionths(megabytes));
}

static uint64_t samples_of(int64_t number)
{
    return number < 0 ? 0 : number < (int64_t)SAMPLES_MAX ? (uint64_t)number : SAMPLES_MAX;
}

const char *ledger_state_name(enum ledger_state state)
{
    static const char *const names[] = { "python", "native", "kernel", "idle" };
    return state < STATE_WAIT ? names[state]
                              : thread_state_name(THREAD_WAIT_GIL + (state - STATE_WAIT));
}

static uint64_t sum(const uint64_t *us, size_t from, size_t to)
{
    uint64_t all = 0;
    for (size_t i = from; i < to; i++)
        all += us[i];
    return all;
}

uint64_t ledger_base_us(const struct ledger_entry *entry)
{
    return sum(entry->us, 0, STATE_WAIT);
}

uint64_t ledger_cpu_us(const struct ledger_entry *entry)
{
    return sum(entry->us, 0, STATE_IDLE);
}

uint64_t ledger_wait_us(const struct ledger_entry *entry)
{
    return sum(entry->us, STATE_WAIT, STATE_COUNT);
}

uint64_t ledger_wall_us(const struct ledger_entry *entry)
{
    return ledger_cpu_us(entry) + ledger_wait_us(entry);
}

uint64_t ledger_part(const struct ledger *ledger, const struct ledger_run *run, uint64_t amount)
{
    const struct ledger_entry *entry = &ledger->entries[run->entry];
    unsigned __int128 all = amount;
    if (!entry->run_samples)
        return 0;
    return (uint64_t)(all * (run->before + run->samples) / entry->run_samples -
                      all * run->before / entry->run_samples);
}

/* ---- threads ---- */

static int64_t thread_find(struct ledger *ledger, int64_t pid, int64_t tid)
{
    size_t count = ledger->thread_index.count;
    if (pid < 0 || tid < 0)
        pid = tid = -1;
    if (ARRAY_GROW(ledger->threads, count, ledger->thread_room))
        return -ENOMEM;
    int64_t number =
        key_index_add(&ledger->thread_index, (struct key){ { (uint64_t)pid, (uint64_t)tid } });
    if (number == (int64_t)count)
        ledger->threads[number] = (struct ledger_thread){ .pid = pid, .tid = tid, .name = "" };
    return number;
}

/* The first process of that pid; and which thread is the first one of its process. */
static int processes_tell(struct ledger *ledger, const struct report *report)
{
    struct key_index known = { 0 }, begun = { 0 };
    size_t *first = calloc(report->processes.count + 1, sizeof *first);
    int64_t number = first ? 0 : -ENOMEM;
    for (size_t i = 0; i < report->processes.count && number >= 0; i++) {
        size_t count = known.count;
        number =
            key_index_add(&known, (struct key){ { (uint64_t)report->processes.items[i].pid } });
        if (number == (int64_t)count)
            first[number] = i;
    }
    for (size_t i = 0; i < ledger->thread_index.count && number >= 0; i++) {
        struct ledger_thread *thread = &ledger->threads[i];
        struct key key = { { (uint64_t)thread->pid } };
        int64_t process = key_index_find(&known, key);
        thread->process = process < 0 ? NULL : &report->processes.items[first[process]];
        thread->is_first = key_index_find(&begun, key) < 0;
        number = key_index_add(&begun, key);
    }
    key_index_done(&known);
    key_index_done(&begun);
    free(first);
    return number < 0 ? -ENOMEM : 0;
}

/* In the order in which the report has them, then those that found no room there. */
static int threads_add(struct ledger *ledger, const struct report *report)
{
    for (size_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = &report->threads.items[i];
        int64_t number = thread_find(ledger, thread->pid, thread->tid);
        if (number < 0)
            return (int)number;
        ledger->threads[number].name = thread->name ?: "";
    }
    for (size_t i = 0; i < report->stack_times.count; i++) {
        const struct report_stack_time *time = &report->stack_times.items[i];
        if (thread_find(ledger, time->pid, time->tid) < 0)
            return -ENOMEM;
    }
    if (!report->stack_times.count && thread_find(ledger, -1, -1) < 0)
        return -ENOMEM;
    return processes_tell(ledger, report);
}

char *ledger_command(const struct ledger_thread *thread)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    if (!into)
        return NULL;
    for (size_t i = 0; thread->process && i < thread->process->argv.count; i++)
        fprintf(into, "%s%s", i ? " " : "", thread->process->argv.items[i]);
    if (fclose(into)) {
        free(text);
        return NULL;
    }
    return text;
}

char *ledger_title(const struct ledger_thread *thread)
{
    char *text = NULL;
    if (thread->pid < 0)
        return strdup("all threads");
    int length = asprintf(&text, "process %" PRId64 ", thread %" PRId64 "%s%s", thread->pid,
                          thread->tid, *thread->name ? " " : "", thread->name);
    return length < 0 ? NULL : text;
}

/* ---- entries ---- */

/* Of equal keys, which only a foreign report has, they are one. */
static struct ledger_entry *entry_find(struct ledger *ledger, uint32_t thread, uint32_t stack)
{
    int64_t number = key_index_add(&ledger->entry_index, (struct key){ { thread, stack } });
    if (number < 0)
        return NULL;
    struct ledger_entry *entry = &ledger->entries[number];
    entry->thread = thread;
    entry->stack = stack;
    return entry;
}

static int time_add(struct ledger *ledger, const struct report_stack_time *time)
{
    const double seconds[] = { time->cpu_python_s, time->cpu_native_s, time->cpu_kernel_s,
                               time->idle_s };
    int64_t thread = thread_find(ledger, time->pid, time->tid);
    struct ledger_entry *entry =
        thread < 0 ? NULL : entry_find(ledger, (uint32_t)thread, (uint32_t)time->stack_index);
    if (!entry)
        return -ENOMEM;
    entry->hits = samples_of(time->hits);
    entry->samples = samples_of(time->samples);
    for (size_t i = 0; i < STATE_WAIT; i++)
        entry->us[i] = ledger_millionths(seconds[i]);
    for (size_t i = 0; i < WAIT_KINDS; i++)
        entry->us[STATE_WAIT + i] = ledger_millionths(time->wait_s.seconds[i]);
    return 0;
}

/* Hits come at equal intervals. */
static int hits_add(struct ledger *ledger, const struct report *report)
{
    double all = 0, base = report_base_s(report);
    for (size_t i = 0; i < report->combined_stacks.count; i++)
        all += (double)samples_of(report->combined_stacks.items[i].hits);
    double each = all > 0 ? (base > 0 ? base : report->elapsed_time_sec) / all : 0;
    for (size_t i = 0; i < report->combined_stacks.count; i++) {
        const struct report_stack *stack = &report->combined_stacks.items[i];
        size_t depth = stack->frames.count;
        const char *kind = depth ? stack->frames.items[depth - 1]->kind : NULL;
        int64_t thread = thread_find(ledger, -1, -1);
        struct ledger_entry *entry =
            thread < 0 ? NULL : entry_find(ledger, (uint32_t)thread, (uint32_t)i);
        if (!entry)
            return -ENOMEM;
        bool native = kind && strcmp(kind, "native") == 0;
        entry->hits = entry->samples = samples_of(stack->hits);
        entry->us[native ? STATE_NATIVE : STATE_PYTHON] =
            ledger_millionths(each * (double)entry->hits);
    }
    return 0;
}

static int entry_is_later(const void *a, const void *b)
{
    const struct ledger_entry *left = a, *right = b;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    return (left->stack > right->stack) - (left->stack < right->stack);
}

/* Sorting gave them new numbers. */
static int entries_settle(struct ledger *ledger)
{
    ledger->entry_count = ledger->entry_index.count;
    qsort(ledger->entries, ledger->entry_count, sizeof *ledger->entries, entry_is_later);
    key_index_done(&ledger->entry_index);
    for (size_t i = 0; i < ledger->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[i];
        struct ledger_thread *thread = &ledger->threads[entry->thread];
        if (key_index_add(&ledger->entry_index, (struct key){ { entry->thread, entry->stack } }) <
            0)
            return -ENOMEM;
        if (!thread->entry_count++)
            thread->first_entry = i;
    }
    return 0;
}

static int entries_add(struct ledger *ledger, const struct report *report)
{
    size_t most = report->stack_times.count ?: report->combined_stacks.count;
    int error = 0;
    ledger->entries = calloc(most + 1, sizeof *ledger->entries);
    if (!ledger->entries)
        return -ENOMEM;
    if (!report->stack_times.count)
        error = hits_add(ledger, report);
    for (size_t i = 0; i < report->stack_times.count && !error; i++) {
        const struct report_stack_time *time = &report->stack_times.items[i];
        if (time->stack_index >= 0 && (size_t)time->stack_index < report->combined_stacks.count)
            error = time_add(ledger, time);
    }
    return error ? error : entries_settle(ledger);
}

/* ---- runs ---- */

/* Where it is not known whose run it is, it is the nameless thread's. */
static int64_t run_entry(const struct ledger *ledger, const struct report_run *run)
{
    const struct key asked[] = { { { (uint64_t)run->pid, (uint64_t)run->tid } },
                                 { { (uint64_t)-1, (uint64_t)-1 } } };
    int64_t entry = -ENOENT;
    for (size_t i = 0; i < 2 && entry < 0; i++) {
        int64_t thread = key_index_find(&ledger->thread_index, asked[i]);
        if (thread >= 0 && run->stack_index >= 0)
            entry =
                key_index_find(&ledger->entry_index,
                               (struct key){ { (uint64_t)thread, (uint64_t)run->stack_index } });
    }
    return entry;
}

static int run_is_later(const void *a, const void *b)
{
    const struct ledger_run *left = a, *right = b;
    if (left->start_us != right->start_us)
        return left->start_us < right->start_us ? -1 : 1;
    return (left->before > right->before) - (left->before < right->before);
}

/* `before` is the run's place in the report until all are in order. */
static void thread_runs_settle(struct ledger *ledger, struct ledger_thread *thread)
{
    struct ledger_run *runs = &ledger->runs[thread->first_run];
    uint64_t alive_us = 0, samples = 0;
    qsort(runs, thread->run_count, sizeof *runs, run_is_later);
    for (size_t i = 0; i < thread->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[thread->first_entry + i];
        alive_us += ledger_wall_us(entry);
    }
    for (size_t i = 0; i < thread->run_count; i++) {
        struct ledger_entry *entry = &ledger->entries[runs[i].entry];
        runs[i].before = entry->run_samples;
        entry->run_samples += runs[i].samples;
        samples += runs[i].samples;
        if (i)
            runs[i - 1].end_us = runs[i].start_us;
    }
    if (thread->run_count) {
        struct ledger_run *last = &runs[thread->run_count - 1];
        unsigned __int128 part = (unsigned __int128)alive_us * last->samples;
        last->end_us = last->start_us + (samples ? (uint64_t)(part / samples) : 0);
        thread->end_us = last->end_us;
    }
}

/* The runs of each thread behind those of the thread before. */
static int runs_add(struct ledger *ledger, const struct report *report)
{
    size_t count = report->timeline.count, next = 0;
    int64_t *entries = calloc(count + 1, sizeof *entries);
    ledger->runs = calloc(count + 1, sizeof *ledger->runs);
    for (size_t i = 0; entries && i < count; i++) {
        entries[i] = run_entry(ledger, &report->timeline.items[i]);
        if (entries[i] >= 0)
            ledger->threads[ledger->entries[entries[i]].thread].run_count++;
    }
    for (size_t i = 0; i < ledger->thread_index.count; i++) {
        ledger->threads[i].first_run = next;
        next += ledger->threads[i].run_count;
        ledger->threads[i].run_count = 0;
    }
    for (size_t i = 0; entries && ledger->runs && i < count; i++) {
        const struct report_run *run = &report->timeline.items[i];
        if (entries[i] < 0)
            continue;
        struct ledger_thread *thread = &ledger->threads[ledger->entries[entries[i]].thread];
        ledger->runs[thread->first_run + thread->run_count++] = (struct ledger_run){
            .entry = (uint32_t)entries[i],
            .start_us = ledger_millionths(run->t_sec),
            .samples = samples_of(run->count),
            .before = i,
        };
    }
    bool failed = !entries || !ledger->runs;
    ledger->run_count = next;
    free(entries);
    for (size_t i = 0; !failed && i < ledger->thread_index.count; i++)
        thread_runs_settle(ledger, &ledger->threads[i]);
    return failed ? -ENOMEM : 0;
}

int ledger_init(struct ledger *ledger, const struct report *report)
{
    *ledger = (struct ledger){ 0 };
    int error = threads_add(ledger, report);
    if (!error)
        error = entries_add(ledger, report);
    if (!error)
        error = runs_add(ledger, report);
    if (error)
        ledger_done(ledger);
    return error;
}

void ledger_done(struct ledger *ledger)
{
    key_index_done(&ledger->thread_index);
    key_index_done(&ledger->entry_index);
    free(ledger->threads);
    free(ledger->entries);
    free(ledger->runs);
    *ledger = (struct ledger){ 0 };
}
