#include "sampler/app/run_memory.h"

#include "sampler/app/preload.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/injection.h"
#include "sampler/shim/ring_layout.h"

#include <limits.h>
#include <time.h>

enum {
    SLOTS = 32768,      /* 8 MiB: what a storm of samples needs for a quarter of a second */
    SLOTS_LEAST = 1024, /* children that begin, in a few milliseconds */
    CHILDREN = 256,
    SLOTS_MANY = SLOTS / 8, /* so many records at once: look again soon */
    SOONEST_NS = 5000000,
    LATEST_NS = 40000000,
};

/* A ring that is read: one for all that is launched, or one for each target. */
struct ring_source {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct run *run;
    struct ring_reader *reader;
    struct process *process; /* of a target, else NULL */
    struct injection *injection;
    struct child {
        pid_t inner_pid, pid; /* 0: it ended before anybody looked */
    } children[CHILDREN];     /* the last ones of a target in a namespace of its own */
    size_t child_count;
};

struct run_memory {
    struct run *run;
    struct ring_source sources[PIDS_MAX];
    size_t source_count;
    struct shim_folder *folder;
    char **environment;
    uint64_t next_ns, interval_ns;
    bool counts;             /* else the shim gives the program its `profile`, and tells of
                                children */
    struct failure obstacle; /* code 0: none */
};

bool run_memory_wanted(const struct options *options)
{
    if (options->cpu_only || options->memory != WISH_NONE)
        return !options->cpu_only && options->memory == WISH_YES;
    /* as Scalene: who names the GPU alone means it alone */
    return options->verb != VERB_ATTACH && options->gpu != WISH_YES;
}

/* ---- before and after ---- */

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
    struct run *run = source->run;
    const struct process *process = source->process;
    struct memory_event told = *event;
    if (!run->memory->counts)
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
        family_watch_hear(source->run->family, pid, parent);
}

static struct ring_source *source_add(struct run_memory *memory)
{
    struct ring_source *source = &memory->sources[memory->source_count++];
    *source = (struct ring_source){ .sink = { event_take, process_take }, .run = memory->run };
    return source;
}

static struct ring_settings ring_settings(const struct run_memory *memory)
{
    const struct options *options = memory->run->options;
    return (struct ring_settings){
        .slot_count = memory->counts ? SLOTS : SLOTS_LEAST,
        .window = (uint64_t)options->allocation_window,
        .copy_window = (uint64_t)options->allocation_window,
        .start_ns = memory->run->start_ns,
    };
}

static void rings_arm(struct run_memory *memory, bool armed)
{
    for (size_t i = 0; i < memory->source_count; i++)
        if (memory->sources[i].reader)
            ring_reader_arm(memory->sources[i].reader, armed);
}

/* What the library cannot be given to is not worth a folder. */
static int command_check(struct run_memory *memory, char *const *command, const char *library)
{
    char path[PATH_MAX];
    if (launch_find(command[0], path, sizeof path))
        return 0; /* the launch says that better */
    const char *refusal = preload_refusal(path, command, library);
    return refusal ? failure_set(&memory->obstacle, -ENOTSUP, "%s", refusal) : 0;
}

static int memory_prepare(struct run_memory *memory, char *const *command)
{
    char library[PATH_MAX];
    const struct ring_settings settings = ring_settings(memory);
    struct ring_source *source = source_add(memory);
    int error = shim_library_find(library, sizeof library, &memory->obstacle);
    if (!error)
        error = ring_reader_new(&settings, &source->reader, &memory->obstacle);
    if (!error)
        error = shim_folder_open(library, ring_reader_fd(source->reader), &memory->folder,
                                 &memory->obstacle);
    if (!error)
        error = command_check(memory, command, shim_folder_library(memory->folder));
    if (error)
        return error;
    memory->environment = preload_environment(shim_folder_library(memory->folder));
    return memory->environment ? 0 : failure_set(&memory->obstacle, -ENOMEM, "out of memory");
}

static void source_close(struct ring_source *source)
{
    if (source->injection)
        injection_close(source->injection);
    else
        ring_reader_free(source->reader);
    if (source->process)
        process_close(source->process);
}

static void memory_release(struct run_memory *memory, bool may_be_used)
{
    rings_arm(memory, false);
    shim_folder_close(memory->folder, may_be_used);
    for (size_t i = 0; i < memory->source_count; i++)
        source_close(&memory->sources[i]);
    free(memory->environment);
    memory->source_count = 0;
    memory->folder = NULL;
    memory->environment = NULL;
}

static struct run_memory *memory_new(struct run *run, bool counts)
{
    struct run_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        *memory = (struct run_memory){ .run = run, .interval_ns = LATEST_NS, .counts = counts };
    return memory;
}

/* Where the kernel tells of no children, those that have the shim tell of themselves. */
static bool children_are_quiet(const struct run *run)
{
    return run->options->subprocesses && family_watch_method(run->family) == FAMILY_POLLING;
}

int run_memory_open(struct run *run, char *const *command)
{
    bool counts = run_memory_wanted(run->options);
    if (!counts && !children_are_quiet(run) &&
        !program_may_be_marked(&run->program, (const char *const *)command))
        return 0;
    struct run_memory *memory = run->memory = memory_new(run, counts);
    if (!memory)
        return -ENOMEM;
    if (memory_prepare(memory, command))
        memory_release(memory, false);
    else
        rings_arm(memory, counts && !run->is_off);
    run->settings.memory = counts && memory->source_count;
    return 0;
}

int run_memory_attach(struct run *run, pid_t pid, struct failure *why)
{
    char library[PATH_MAX];
    if (!run_memory_wanted(run->options))
        return 0;
    if (!run->memory)
        run->memory = memory_new(run, true);
    if (!run->memory)
        return failure_set(why, -ENOMEM, "out of memory");
    struct ring_source *source = source_add(run->memory);
    int error = shim_library_find(library, sizeof library, why);
    if (!error)
        error = process_open(pid, &source->process, why);
    const struct injection_plan plan = {
        .library = library,
        .ring = ring_settings(run->memory),
        .cancel_fd = run->signals.end_fd,
    };
    if (!error)
        error = injection_open(source->process, &plan, &source->injection, why);
    if (error)
        return error;
    source->reader = injection_ring(source->injection);
    ring_reader_arm(source->reader, !run->is_off);
    return 0;
}

char **run_memory_environment(const struct run *run)
{
    return run->memory ? run->memory->environment : NULL;
}

void run_memory_close(struct run *run)
{
    if (!run->memory)
        return;
    bool all_gone =
        run->options->subprocesses && (!run->family || family_watch_count(run->family) == 0);
    memory_release(run->memory, !all_gone);
    free(run->memory);
    run->memory = NULL;
}

/* ---- meanwhile ---- */

static bool is_read(const struct run *run)
{
    return run->memory && run->memory->source_count && run->profile;
}

/* The number of records, or negative. */
static long rings_drain(struct run_memory *memory, uint64_t now_ns)
{
    long sum = 0;
    for (size_t i = 0; i < memory->source_count; i++) {
        struct ring_source *source = &memory->sources[i];
        long count = source->reader ? ring_reader_drain(source->reader, now_ns, &source->sink) : 0;
        if (count < 0)
            return count;
        sum += count;
    }
    return sum;
}

/* Where the kernel does not tell of children, they do: whoever comes by looks. */
static bool has_news(const struct run *run, uint64_t now_ns)
{
    const struct run_memory *memory = run->memory;
    bool news = false;
    if (!is_read(run) || family_watch_method(run->family) != FAMILY_POLLING ||
        now_ns + memory->interval_ns < memory->next_ns + SOONEST_NS)
        return false;
    for (size_t i = 0; i < memory->source_count && !news; i++)
        news = memory->sources[i].reader && ring_reader_has_news(memory->sources[i].reader);
    return news;
}

int run_memory_follow(struct run *run, uint64_t now_ns)
{
    struct run_memory *memory = run->memory;
    if (now_ns < run_memory_deadline_ns(run) && !has_news(run, now_ns))
        return 0;
    long count = rings_drain(memory, now_ns);
    if (count < 0)
        return (int)count;
    memory->interval_ns = count > SLOTS_MANY ? SOONEST_NS : memory->interval_ns * 2;
    if (memory->interval_ns > LATEST_NS)
        memory->interval_ns = LATEST_NS;
    for (size_t i = 0; i < memory->source_count; i++)
        if (memory->sources[i].injection)
            injection_follow(memory->sources[i].injection, now_ns);
    memory->next_ns = clock_ns(CLOCK_MONOTONIC) + memory->interval_ns;
    return 0;
}

void run_memory_stood(const struct run *run, struct stood *ret)
{
    *ret = (struct stood){ 0 };
    for (size_t i = 0; run->memory && i < run->memory->source_count; i++)
        if (run->memory->sources[i].injection)
            injection_tell_stood(run->memory->sources[i].injection, ret);
}

uint64_t run_memory_deadline_ns(const struct run *run)
{
    return is_read(run) ? run->memory->next_ns : UINT64_MAX;
}

int run_memory_switch(struct run *run, bool on)
{
    if (!is_read(run))
        return 0;
    rings_arm(run->memory, on && run->memory->counts);
    long count = rings_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
    return count < 0 ? (int)count : 0;
}

int run_memory_end(struct run *run, pid_t pid)
{
    if (!is_read(run))
        return 0;
    long count = rings_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
    for (size_t i = 0; i < run->memory->source_count; i++)
        if (run->memory->sources[i].reader)
            ring_reader_forget(run->memory->sources[i].reader, pid);
    return count < 0 ? (int)count : 0;
}

/* ---- the profile ---- */

static int shim_notes_add(struct run *run)
{
    struct members_glance members;
    members_look(run->members, &members);
    int error = members.without_shim
                    ? profile_add_note(run->profile, "the memory of Python processes that did not "
                                                     "load the shim, or see another /proc, is "
                                                     "missing")
                    : 0;
    if (!error && run->settings.attached)
        error = profile_add_note(run->profile, "what was allocated before profiling began is not "
                                               "counted; the shim stays loaded where it was "
                                               "brought, and does nothing there any more");
    return error;
}

/* What shims say that they do not tell. */
static int gap_notes_add(struct run *run)
{
    static const struct {
        enum ring_gap gap;
        const char *note;
    } rows[] = {
        { GAP_CODES, "so many code objects allocated that the last of them have no names: what "
                     "they allocated is in the totals alone" },
        { GAP_IMPORTS, "a program has so many imports that not all were hooked: some of its native "
                       "memory is missing" },
        { GAP_ALLOCATORS, "a program has set Python's allocators by itself: some of Python's "
                          "memory is missing" },
        { GAP_PROGRAM, "a program has an allocator of its own linked in: its native memory is "
                       "missing" },
    };
    uint32_t gaps = 0;
    int error = 0;
    for (size_t i = 0; i < run->memory->source_count; i++)
        if (run->memory->sources[i].reader)
            gaps |= ring_reader_gaps(run->memory->sources[i].reader);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !error; i++)
        if (gaps & rows[i].gap)
            error = profile_add_note(run->profile, rows[i].note);
    return error;
}

static int late_notes_add(struct run *run)
{
    bool behind = false;
    for (size_t i = 0; i < run->memory->source_count; i++) {
        const struct injection *injection = run->memory->sources[i].injection;
        behind |= injection && injection_is_behind(injection);
    }
    return behind ? profile_add_note(run->profile,
                                     "libraries that a program has loaded meanwhile could not be "
                                     "hooked: their native memory is missing")
                  : 0;
}

static int notes_add(struct run *run)
{
    char text[sizeof run->memory->obstacle.text + 64];
    if (!run->memory->obstacle.code) {
        int error = gap_notes_add(run);
        if (!error)
            error = late_notes_add(run);
        return error ? error : shim_notes_add(run);
    }
    snprintf(text, sizeof text, "memory was not profiled: %s", run->memory->obstacle.text);
    return profile_add_note(run->profile, text);
}

/* What cannot be taken back is said at once, too: a thread may have been left in our call. */
static int targets_disarm(struct run *run)
{
    struct failure why;
    int error = 0;
    for (size_t i = 0; i < run->memory->source_count && !error; i++) {
        struct injection *injection = run->memory->sources[i].injection;
        if (injection && injection_disarm(injection, &why)) {
            fprintf(stderr, "scalene-attach: %s\n", why.text);
            error = profile_add_note(run->profile, why.text);
        }
    }
    return error;
}

/* At the end nobody comes back to a slot that is not whole yet. */
static long rings_empty(struct run *run)
{
    struct run_memory *memory = run->memory;
    rings_arm(memory, false);
    int error = targets_disarm(run);
    if (error)
        return error;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    long count = rings_drain(memory, now_ns);
    return count < 0 ? count : rings_drain(memory, now_ns + 2 * RING_PATIENCE_NS);
}

static int losses_tell(struct run *run)
{
    struct memory_loss_event sum = { 0 }, loss;
    for (size_t i = 0; i < run->memory->source_count; i++) {
        if (!run->memory->sources[i].reader)
            continue;
        ring_reader_losses(run->memory->sources[i].reader, &loss);
        sum.records += loss.records;
        sum.lost += loss.lost;
        sum.allocated_bytes += loss.allocated_bytes;
        sum.freed_bytes += loss.freed_bytes;
        sum.copied_bytes += loss.copied_bytes;
    }
    return profile_add_memory_loss(run->profile, &sum);
}

int run_memory_tell(struct run *run, bool last)
{
    if (!run->memory)
        return 0;
    if (is_read(run)) {
        long count = last ? rings_empty(run) : rings_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
        int error = count < 0 ? (int)count : run->memory->counts ? losses_tell(run) : 0;
        if (error)
            return error;
    }
    return last && run->memory->counts ? notes_add(run) : 0;
}
