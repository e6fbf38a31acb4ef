#include "sampler/app/ring_sources.h"

#include "output/model/array.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/injection.h"
#include "sampler/shim/ring_layout.h"

#include <limits.h>
#include <string.h>

enum { CHILDREN = 256 };

/* So long a child that was being forked as its parent ended may be unknown. */
static const uint64_t SWEEP_NS = 2000000000;

struct ring_source {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct ring_sources *sources;
    struct ring_reader *reader;
    struct process *process; /* of a target, else NULL */
    struct injection *injection;
    bool is_gone; /* its process has ended, or become another program, at the last sweep */
    struct child {
        pid_t inner_pid, pid; /* 0: it ended before anybody looked */
    } children[CHILDREN];     /* the last ones of a target in a namespace of its own */
    size_t child_count;
};

/* ---- what comes ---- */

/* What a target in a namespace of its own calls itself is what it has there, and so do its
 * children; who a child is can be told when it begins. */
static pid_t pid_outside(struct ring_source *source, const struct memory_event *event)
{
    const struct process *process = source->process;
    if (!process || !process->other_namespace)
        return event->pid;
    if (event->pid == process->inner_pid)
        return process->pid;
    if (event->change == MEMORY_EMPTIED)
        source->children[source->child_count++ % CHILDREN] =
            (struct child){ event->pid, process_find_inner(process->pid, event->pid) };
    for (size_t i = source->child_count; i > 0 && source->child_count - i < CHILDREN; i--) {
        const struct child *child = &source->children[(i - 1) % CHILDREN];
        if (child->inner_pid == event->pid && child->pid)
            return child->pid;
    }
    return event->pid;
}

/* All that inherit the ring write into it, whoever is followed. */
static int event_take(struct ring_sink *sink, const struct memory_event *event)
{
    struct ring_source *source = (struct ring_source *)sink;
    struct run *run = source->sources->run;
    const struct process *process = source->process;
    struct memory_event told = *event;
    if (!source->sources->counts)
        return 0;
    told.pid = pid_outside(source, event);
    pid_t first = process ? process->pid : launch_pid(run->launch);
    if (!run->options->subprocesses && told.pid != first)
        return 0;
    int error = members_introduce(run->members, told.pid, run->profile);
    return error ? error : profile_add_memory(run->profile, &told);
}

/* What a target in a namespace of its own calls its children is not what they are called here. */
static void process_take(struct ring_sink *sink, pid_t pid, pid_t parent)
{
    const struct ring_source *source = (struct ring_source *)sink;
    if (!source->process)
        family_watch_hear(source->sources->run->family, pid, parent);
}

/* ---- opening and closing ---- */

static int source_new(struct ring_sources *sources, struct ring_source **ret)
{
    if (ARRAY_GROW(sources->list, sources->count, sources->capacity))
        return -ENOMEM;
    struct ring_source *source = calloc(1, sizeof *source);
    if (!source)
        return -ENOMEM;
    *source = (struct ring_source){ .sink = { event_take, process_take }, .sources = sources };
    *ret = source;
    return 0;
}

static void source_free(struct ring_source *source)
{
    if (!source)
        return;
    if (source->injection)
        injection_close(source->injection);
    else
        ring_reader_free(source->reader);
    if (source->process)
        process_close(source->process);
    free(source);
}

DEFINE_CLEANUP(struct ring_source *, source_free)

static void source_sum(const struct ring_source *source, struct ring_sums *sum)
{
    struct memory_loss_event loss;
    ring_reader_losses(source->reader, &loss);
    sum->loss.records += loss.records;
    sum->loss.lost += loss.lost;
    sum->loss.allocated_bytes += loss.allocated_bytes;
    sum->loss.freed_bytes += loss.freed_bytes;
    sum->loss.copied_bytes += loss.copied_bytes;
    sum->gaps |= ring_reader_gaps(source->reader);
    if (!source->injection)
        return;
    injection_tell_stood(source->injection, &sum->stood);
    sum->is_behind |= injection_is_behind(source->injection);
}

int ring_sources_add(struct ring_sources *sources, const struct ring_settings *settings,
                     struct failure *why)
{
    CLEANUP(source_freep) struct ring_source *source = NULL;
    if (source_new(sources, &source))
        return failure_set(why, -ENOMEM, "out of memory");
    int error = ring_reader_new(settings, &source->reader, why);
    if (!error)
        sources->list[sources->count++] = TAKE_PTR(source);
    return error;
}

int ring_sources_attach(struct ring_sources *sources, pid_t pid,
                        const struct ring_settings *settings, unsigned patience_ms,
                        struct failure *why)
{
    char library[PATH_MAX];
    CLEANUP(source_freep) struct ring_source *source = NULL;
    if (source_new(sources, &source))
        return failure_set(why, -ENOMEM, "out of memory");
    int error = shim_library_find(library, sizeof library, why);
    if (!error)
        error = process_open(pid, &source->process, why);
    const struct injection_plan plan = {
        .library = library,
        .ring = *settings,
        .cancel_fd = sources->run->signals.end_fd,
        .patience_ms = patience_ms,
    };
    if (!error)
        error = injection_open(source->process, &plan, &source->injection, why);
    if (error)
        return error;
    source->reader = injection_ring(source->injection);
    sources->list[sources->count++] = TAKE_PTR(source);
    return 0;
}

int ring_sources_fd(const struct ring_sources *sources)
{
    return ring_reader_fd(sources->list[0]->reader);
}

void ring_sources_done(struct ring_sources *sources)
{
    ring_sources_arm(sources, false);
    while (sources->count)
        source_free(sources->list[--sources->count]);
    free(TAKE_PTR(sources->list));
    sources->capacity = 0;
}

/* ---- meanwhile ---- */

void ring_sources_arm(struct ring_sources *sources, bool armed)
{
    for (size_t i = 0; i < sources->count; i++)
        ring_reader_arm(sources->list[i]->reader, armed);
}

bool ring_sources_have_news(const struct ring_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        if (ring_reader_has_news(sources->list[i]->reader))
            return true;
    return false;
}

static long source_drain(struct ring_source *source, uint64_t now_ns)
{
    return ring_reader_drain(source->reader, now_ns, &source->sink);
}

long ring_sources_drain(struct ring_sources *sources, uint64_t now_ns)
{
    long sum = 0;
    for (size_t i = 0; i < sources->count; i++) {
        long count = source_drain(sources->list[i], now_ns);
        if (count < 0)
            return count;
        sum += count;
    }
    return sum;
}

/* The process has been gone for a while, and nobody has the ring from it. */
static bool source_has_ended(struct ring_source *source)
{
    bool was_gone = source->is_gone;
    source->is_gone = source->process && process_check(source->process);
    return was_gone && source->is_gone &&
           !members_share_ring(source->sources->run->members, ring_reader_fd(source->reader));
}

/* Nobody comes back to a slot that is not whole. */
static int source_end(struct ring_source *source, uint64_t now_ns)
{
    long count = source_drain(source, now_ns);
    if (count >= 0)
        count = source_drain(source, now_ns + 2 * RING_PATIENCE_NS);
    source_sum(source, &source->sources->closed);
    source_free(source);
    return count < 0 ? (int)count : 0;
}

static int sources_sweep(struct ring_sources *sources, uint64_t now_ns)
{
    size_t kept = 0;
    int error = 0;
    if (now_ns < sources->sweep_ns)
        return 0;
    sources->sweep_ns = now_ns + SWEEP_NS;
    for (size_t i = 0; i < sources->count; i++) {
        struct ring_source *source = sources->list[i];
        if (!error && source_has_ended(source))
            error = source_end(source, now_ns);
        else
            sources->list[kept++] = source;
    }
    sources->count = kept;
    return error;
}

int ring_sources_follow(struct ring_sources *sources, uint64_t now_ns)
{
    for (size_t i = 0; i < sources->count; i++)
        if (sources->list[i]->injection)
            injection_follow(sources->list[i]->injection, now_ns);
    return sources_sweep(sources, now_ns);
}

void ring_sources_forget(struct ring_sources *sources, pid_t pid)
{
    for (size_t i = 0; i < sources->count; i++)
        ring_reader_forget(sources->list[i]->reader, pid);
}

void ring_sources_sum(const struct ring_sources *sources, struct ring_sums *ret)
{
    *ret = sources->closed;
    for (size_t i = 0; i < sources->count; i++)
        source_sum(sources->list[i], ret);
}

int ring_sources_disarm(struct ring_sources *sources)
{
    struct failure why;
    int error = 0;
    for (size_t i = 0; i < sources->count && !error; i++) {
        struct injection *injection = sources->list[i]->injection;
        if (injection && injection_disarm(injection, &why)) {
            fprintf(stderr, "scalene-attach: %s\n", why.text);
            error = profile_add_note(sources->run->profile, why.text);
        }
    }
    return error;
}
