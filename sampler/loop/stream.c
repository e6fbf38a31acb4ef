/* The reading half of recorder.h: rows of a stream back to events. Any text is safe to replay. */
#include "sampler/base/arena.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/recorder.h"

#include <limits.h>
#include <string.h>

DEFINE_CLEANUP(char *, free)

enum { FIELDS_MAX = 64 };

/* The rows of one tick come before it is complete: the next row that is no part of it tells. */
struct stream {
    struct stream_sink *sink;
    struct arena texts;   /* of frames: for the whole replay */
    struct arena scratch; /* of one event */
    struct frame_event *frames;
    size_t frame_count, frame_room;
    struct sample_event *samples;
    size_t sample_room;
    struct tick_event tick;
    bool in_tick;
    char *fields[FIELDS_MAX];
    size_t count, taken; /* fields of the row, and how many of them were used */
    bool is_bad;
};

/* ---- fields ---- */

static char *field_take(struct stream *stream)
{
    static char nothing[1];
    if (stream->taken < stream->count)
        return stream->fields[stream->taken++];
    stream->is_bad = true;
    return nothing;
}

static uint64_t number_take(struct stream *stream, int base)
{
    char *end;
    const char *field = field_take(stream);
    errno = 0;
    unsigned long long number = strtoull(field, &end, base);
    stream->is_bad |= !*field || *end || errno;
    return number;
}

static int integer_take(struct stream *stream)
{
    char *end;
    const char *field = field_take(stream);
    long number = strtol(field, &end, 10);
    stream->is_bad |= !*field || *end || number < INT_MIN || number > INT_MAX;
    return (int)number;
}

static double float_take(struct stream *stream)
{
    char *end;
    const char *field = field_take(stream);
    double number = strtod(field, &end);
    stream->is_bad |= !*field || *end;
    return number;
}

/* Undoes put_text, in place; the text lives as long as the row. */
static char *text_take(struct stream *stream)
{
    char *text = field_take(stream), *to = text;
    if (strcmp(text, "-") == 0)
        return NULL;
    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1]) {
            from++;
            *to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return text;
}

static const char *text_keep(struct arena *arena, const char *text)
{
    if (!text)
        return NULL;
    char *copy = arena_take(arena, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static int find_word(struct stream *stream, const char *const *words, int count)
{
    const char *field = field_take(stream);
    for (int i = 0; i < count; i++)
        if (strcmp(field, words[i]) == 0)
            return i;
    stream->is_bad = true;
    return 0;
}

/* ---- rows ---- */

static int items_grow(void *items, size_t count, size_t *room, size_t size)
{
    void **slot = items;
    if (count < *room)
        return 0;
    size_t wanted = *room ? 2 * *room : 64;
    void *grown = realloc(*slot, wanted * size);
    if (!grown)
        return -ENOMEM;
    *slot = grown;
    *room = wanted;
    return 0;
}

static int frame_read(struct stream *stream)
{
    static const char *const kinds[] = { "py", "native", "gc" };
    if (items_grow(&stream->frames, stream->frame_count, &stream->frame_room,
                   sizeof *stream->frames))
        return -ENOMEM;
    stream->is_bad |= number_take(stream, 10) != stream->frame_count + 1;
    struct frame_event *frame = &stream->frames[stream->frame_count++];
    *frame = (struct frame_event){ .kind = (enum frame_kind)find_word(stream, kinds, 3) };
    frame->name = text_keep(&stream->texts, text_take(stream));
    frame->file = text_keep(&stream->texts, text_take(stream));
    frame->line = integer_take(stream);
    frame->column = integer_take(stream);
    frame->first_line = integer_take(stream);
    frame->module = text_keep(&stream->texts, text_take(stream));
    frame->ip = number_take(stream, 16);
    frame->offset = number_take(stream, 16);
    return 0;
}

/* "3 2 1" */
static int stack_read(struct stream *stream, const struct frame_event **ret, size_t *ret_count)
{
    size_t count = 0;
    char *at = field_take(stream);
    struct frame_event *frames = arena_take(&stream->scratch, (strlen(at) + 1) * sizeof *frames);
    if (!frames)
        return -ENOMEM;
    while (*at) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (end == at || number == 0 || number > stream->frame_count) {
            stream->is_bad = true;
            return 0;
        }
        frames[count++] = stream->frames[number - 1];
        at = end + (*end == ' ');
    }
    *ret = frames;
    *ret_count = count;
    return 0;
}

static enum thread_state state_take(struct stream *stream)
{
    const char *words[THREAD_STATE_COUNT];
    for (int i = 0; i < THREAD_STATE_COUNT; i++)
        words[i] = thread_state_name((enum thread_state)i);
    return (enum thread_state)find_word(stream, words, THREAD_STATE_COUNT);
}

static int sample_read(struct stream *stream)
{
    static const char *const roles[] = { "other", "main" };
    if (!stream->in_tick) {
        stream->is_bad = true;
        return 0;
    }
    if (items_grow(&stream->samples, stream->tick.sample_count, &stream->sample_room,
                   sizeof *stream->samples))
        return -ENOMEM;
    struct sample_event *sample = &stream->samples[stream->tick.sample_count++];
    *sample = (struct sample_event){ .tid = integer_take(stream) };
    sample->ident = number_take(stream, 10);
    sample->name = text_keep(&stream->scratch, text_take(stream));
    sample->is_main = find_word(stream, roles, 2);
    sample->state = state_take(stream);
    sample->python_ns = number_take(stream, 10);
    sample->native_ns = number_take(stream, 10);
    sample->kernel_ns = number_take(stream, 10);
    sample->wait_ns = number_take(stream, 10);
    sample->samples = number_take(stream, 10);
    return stack_read(stream, &sample->frames, &sample->frame_count);
}

static int tick_read(struct stream *stream)
{
    stream->tick = (struct tick_event){ .time_ns = number_take(stream, 10) };
    stream->tick.pid = integer_take(stream);
    stream->tick.wall_ns = number_take(stream, 10);
    stream->tick.idle_ns = number_take(stream, 10);
    stream->tick.rss_bytes = number_take(stream, 10);
    stream->in_tick = true;
    return 0;
}

static int process_read(struct stream *stream)
{
    const char *argv[FIELDS_MAX] = { NULL };
    struct process_event process = { .pid = integer_take(stream) };
    process.ppid = integer_take(stream);
    process.rank = integer_take(stream);
    process.start_s = float_take(stream);
    process.end_s = float_take(stream);
    process.cpu_s = float_take(stream);
    process.peak_rss_bytes = number_take(stream, 10);
    process.footprint.rss_bytes = number_take(stream, 10);
    process.footprint.pss_bytes = number_take(stream, 10);
    process.footprint.shared_bytes = number_take(stream, 10);
    process.footprint.private_bytes = number_take(stream, 10);
    process.footprint.anonymous_bytes = number_take(stream, 10);
    process.grown_bytes = number_take(stream, 10);
    process.exit_status = integer_take(stream);
    process.executable = text_take(stream);
    process.python = text_take(stream);
    process.cwd = text_take(stream);
    process.note = text_take(stream);
    for (size_t i = 0; stream->taken < stream->count; i++)
        argv[i] = text_take(stream);
    process.argv = argv;
    return stream->is_bad ? 0 : stream->sink->process(stream->sink, &process);
}

static int sampling_read(struct stream *stream)
{
    struct sampling_event sampling = { .rate_hz = float_take(stream) };
    sampling.elapsed_s = float_take(stream);
    sampling.paused_s = float_take(stream);
    sampling.profiler_cpu_s = float_take(stream);
    sampling.longest_pause_us = float_take(stream);
    sampling.samples = number_take(stream, 10);
    sampling.retried = number_take(stream, 10);
    sampling.dropped = number_take(stream, 10);
    sampling.missed = number_take(stream, 10);
    sampling.pauses = number_take(stream, 10);
    sampling.profiler_peak_rss_bytes = number_take(stream, 10);
    return stream->is_bad ? 0 : stream->sink->sampling(stream->sink, &sampling);
}

static int memory_read(struct stream *stream)
{
    static const char *const domains[] = { "native", "python" };
    const char *changes[MEMORY_CHANGES];
    for (int i = 0; i < MEMORY_CHANGES; i++)
        changes[i] = memory_change_name((enum memory_change)i);
    struct memory_event event = { .time_ns = number_take(stream, 10) };
    event.pid = integer_take(stream);
    event.tid = integer_take(stream);
    event.change = (enum memory_change)find_word(stream, changes, MEMORY_CHANGES);
    event.block = number_take(stream, 10);
    event.size_bytes = number_take(stream, 10);
    event.weight_bytes = float_take(stream);
    event.python = find_word(stream, domains, 2);
    int error = stack_read(stream, &event.frames, &event.frame_count);
    if (!error && !stream->is_bad)
        error = stream->sink->memory(stream->sink, &event);
    arena_empty(&stream->scratch);
    return error;
}

static int loss_read(struct stream *stream)
{
    struct memory_loss_event loss = { .records = number_take(stream, 10) };
    loss.lost = number_take(stream, 10);
    loss.allocated_bytes = number_take(stream, 10);
    loss.freed_bytes = number_take(stream, 10);
    loss.copied_bytes = number_take(stream, 10);
    return stream->is_bad ? 0 : stream->sink->memory_loss(stream->sink, &loss);
}

static int stream_read(struct stream *stream)
{
    stream->is_bad |= number_take(stream, 10) != 2; /* the format's version */
    return 0;
}

static const struct {
    const char *word;
    int (*read)(struct stream *stream);
    bool in_tick; /* may stand between a tick and its end */
} rows[] = {
    { "stream", stream_read, false }, { "process", process_read, false },
    { "tick", tick_read, false },     { "sampling", sampling_read, false },
    { "memory", memory_read, false }, { "loss", loss_read, false },
    { "frame", frame_read, true },    { "sample", sample_read, true },
};

static int tick_end(struct stream *stream)
{
    if (!stream->in_tick)
        return 0;
    stream->in_tick = false;
    stream->tick.samples = stream->samples;
    int result = stream->sink->tick(stream->sink, &stream->tick);
    arena_empty(&stream->scratch);
    return result;
}

static void row_split(struct stream *stream, char *row)
{
    row[strcspn(row, "\n")] = '\0';
    stream->taken = stream->count = 0;
    for (char *at = row; at && stream->count < FIELDS_MAX;)
        stream->fields[stream->count++] = strsep(&at, "\t");
}

static int row_read(struct stream *stream, char *row)
{
    if (row[0] == '#' || row[0] == '\n')
        return 0;
    row_split(stream, row);
    const char *word = field_take(stream);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(word, rows[i].word) != 0)
            continue;
        int error = rows[i].in_tick ? 0 : tick_end(stream);
        if (!error)
            error = rows[i].read(stream);
        stream->is_bad |= stream->taken != stream->count;
        return error;
    }
    stream->is_bad = true;
    return 0;
}

int stream_replay(FILE *from, struct stream_sink *sink, struct failure *why)
{
    struct stream stream = { .sink = sink };
    CLEANUP(freep) char *row = NULL;
    size_t size = 0;
    int error = 0;
    for (unsigned long number = 1; !error && getline(&row, &size, from) > 0; number++) {
        error = row_read(&stream, row);
        if (!error && stream.is_bad)
            error = failure_set(why, -EBADMSG, "line %lu of the stream makes no sense", number);
    }
    if (!error)
        error = tick_end(&stream);
    arena_done(&stream.texts);
    arena_done(&stream.scratch);
    free(stream.frames);
    free(stream.samples);
    return error;
}
