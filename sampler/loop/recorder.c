#include "sampler/loop/recorder.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/intern.h"

#include <inttypes.h>
#include <string.h>

/* Frames that were written, by the text of their row: a row is interned, so its address stands for
 * it. */
struct recorder {
    FILE *into;
    struct intern *rows;
    const char **seen; /* hashed by address; free slots are NULL */
    size_t *numbers;   /* of the frame in the same slot */
    size_t count, slot_count;
};

enum { FIRST_SLOTS = 256, ARGV_MAX = 40 };

static int seen_new(struct recorder *recorder, size_t slot_count)
{
    const char **seen = calloc(slot_count, sizeof *seen);
    size_t *numbers = calloc(slot_count, sizeof *numbers);
    if (!seen || !numbers) {
        free(seen);
        free(numbers);
        return -ENOMEM;
    }
    recorder->seen = seen;
    recorder->numbers = numbers;
    recorder->slot_count = slot_count;
    return 0;
}

int recorder_new(FILE *into, struct recorder **ret)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return -ENOMEM;
    recorder->into = into;
    if (intern_new(&recorder->rows) || seen_new(recorder, FIRST_SLOTS)) {
        recorder_free(recorder);
        return -ENOMEM;
    }
    fputs("stream\t2\n", into);
    *ret = recorder;
    return 0;
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    intern_free(recorder->rows);
    free(recorder->seen);
    free(recorder->numbers);
    free(recorder);
}

static size_t find_slot(const struct recorder *recorder, const char *row)
{
    size_t mask = recorder->slot_count - 1;
    size_t slot = (size_t)((uintptr_t)row * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (recorder->seen[slot] && recorder->seen[slot] != row)
        slot = (slot + 1) & mask;
    return slot;
}

static int seen_grow(struct recorder *recorder)
{
    struct recorder old = *recorder;
    if (seen_new(recorder, 2 * old.slot_count))
        return -ENOMEM;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (!old.seen[i])
            continue;
        size_t slot = find_slot(recorder, old.seen[i]);
        recorder->seen[slot] = old.seen[i];
        recorder->numbers[slot] = old.numbers[i];
    }
    free(old.seen);
    free(old.numbers);
    return 0;
}

/* A text as one field: NULL is a minus sign, and what would end a field is escaped. */
static void put_text(FILE *into, const char *text)
{
    putc('\t', into);
    if (!text)
        putc('-', into);
    else if (strcmp(text, "-") == 0)
        fputs("\\-", into);
    for (; text && *text && strcmp(text, "-") != 0; text++) {
        if (*text == '\t' || *text == '\n' || *text == '\\')
            fprintf(into, "\\%c", *text == '\t' ? 't' : *text == '\n' ? 'n' : '\\');
        else
            putc(*text, into);
    }
}

/* ---- frames ---- */

static void put_frame(FILE *into, const struct frame_event *frame)
{
    static const char *const kinds[] = { "py", "native", "gc" };
    fputs(kinds[frame->kind], into);
    put_text(into, frame->name);
    put_text(into, frame->file);
    fprintf(into, "\t%d\t%d\t%d", frame->line, frame->column, frame->first_line);
    put_text(into, frame->module);
    fprintf(into, "\t%" PRIx64 "\t%" PRIx64, frame->ip, frame->offset);
}

/* The row of a frame, interned; NULL when out of memory. */
static const char *row_of(struct recorder *recorder, const struct frame_event *frame)
{
    AUTO_FREE char *row = NULL;
    size_t size;
    FILE *into = open_memstream(&row, &size);
    if (!into)
        return NULL;
    put_frame(into, frame);
    if (fclose(into))
        return NULL;
    return intern_text(recorder->rows, row);
}

/* Writes the frame when it is the first of its kind. Its number or -ENOMEM. */
static int64_t frame_number(struct recorder *recorder, const struct frame_event *frame)
{
    const char *row = row_of(recorder, frame);
    if (!row || (2 * recorder->count >= recorder->slot_count && seen_grow(recorder)))
        return -ENOMEM;
    size_t slot = find_slot(recorder, row);
    if (!recorder->seen[slot]) {
        recorder->seen[slot] = row;
        recorder->numbers[slot] = ++recorder->count;
        fprintf(recorder->into, "frame\t%zu\t%s\n", recorder->count, row);
    }
    return (int64_t)recorder->numbers[slot];
}

/* ---- events ---- */

/* Numbers of the frames, as the last field of a row; frames that are new get rows of their own
 * first. The caller frees them; NULL when out of memory. */
static char *stack_text(struct recorder *recorder, const struct frame_event *frames, size_t count)
{
    AUTO_FREE char *text = malloc(count * (sizeof "18446744073709551615") + 1);
    char *to = text;
    if (!text)
        return NULL;
    *to = '\0';
    for (size_t i = 0; i < count; i++) {
        int64_t number = frame_number(recorder, &frames[i]);
        if (number < 0)
            return NULL;
        to += sprintf(to, "%s%" PRId64, i ? " " : "", number);
    }
    return TAKE_PTR(text);
}

static int put_sample(struct recorder *recorder, const struct sample_event *sample)
{
    AUTO_FREE char *stack = stack_text(recorder, sample->frames, sample->frame_count);
    if (!stack)
        return -ENOMEM;
    fprintf(recorder->into, "sample\t%d\t%" PRIu64, (int)sample->tid, sample->ident);
    put_text(recorder->into, sample->name);
    fprintf(recorder->into,
            "\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n",
            sample->is_main ? "main" : "other", thread_state_name(sample->state), sample->python_ns,
            sample->native_ns, sample->kernel_ns, sample->wait_ns, sample->samples, stack);
    return 0;
}

int recorder_add_tick(struct recorder *recorder, const struct tick_event *tick)
{
    fprintf(recorder->into, "tick\t%" PRIu64 "\t%d\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            tick->time_ns, (int)tick->pid, tick->wall_ns, tick->idle_ns, tick->rss_bytes);
    for (size_t i = 0; i < tick->sample_count; i++) {
        int error = put_sample(recorder, &tick->samples[i]);
        if (error)
            return error;
    }
    return 0;
}

int recorder_add_process(struct recorder *recorder, const struct process_event *process)
{
    FILE *into = recorder->into;
    const struct footprint *footprint = &process->footprint;
    fprintf(into, "process\t%d\t%d\t%d\t%.9g\t%.9g\t%.9g\t%" PRIu64, (int)process->pid,
            (int)process->ppid, process->rank, process->start_s, process->end_s, process->cpu_s,
            process->peak_rss_bytes);
    fprintf(into, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, footprint->rss_bytes,
            footprint->pss_bytes, footprint->shared_bytes, footprint->private_bytes);
    fprintf(into, "\t%" PRIu64 "\t%" PRIu64 "\t%d", footprint->anonymous_bytes,
            process->grown_bytes, process->exit_status);
    put_text(into, process->executable);
    put_text(into, process->python);
    put_text(into, process->cwd);
    put_text(into, process->note);
    for (size_t i = 0; process->argv && process->argv[i] && i < ARGV_MAX; i++)
        put_text(into, process->argv[i]);
    putc('\n', into);
    return 0;
}

int recorder_add_sampling(struct recorder *recorder, const struct sampling_event *sampling)
{
    fprintf(recorder->into,
            "sampling\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
            "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            sampling->rate_hz, sampling->elapsed_s, sampling->paused_s, sampling->profiler_cpu_s,
            sampling->longest_pause_us, sampling->samples, sampling->retried, sampling->dropped,
            sampling->missed, sampling->pauses, sampling->profiler_peak_rss_bytes);
    return 0;
}

int recorder_add_memory(struct recorder *recorder, const struct memory_event *event)
{
    AUTO_FREE char *stack = stack_text(recorder, event->frames, event->frame_count);
    if (!stack)
        return -ENOMEM;
    fprintf(recorder->into,
            "memory\t%" PRIu64 "\t%d\t%d\t%s\t%" PRIu64 "\t%" PRIu64 "\t%.17g\t%s\t%s\n",
            event->time_ns, (int)event->pid, (int)event->tid, memory_change_name(event->change),
            event->block, event->size_bytes, event->weight_bytes,
            event->python ? "python" : "native", stack);
    return 0;
}

int recorder_add_memory_loss(struct recorder *recorder, const struct memory_loss_event *loss)
{
    fprintf(
        recorder->into, "loss\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
        loss->records, loss->lost, loss->allocated_bytes, loss->freed_bytes, loss->copied_bytes);
    return 0;
}
