#include "sampler/app/run_memory.h"

#include "sampler/app/preload.h"
#include "sampler/app/ring_sources.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/shim/ring_layout.h"

#include <limits.h>
#include <time.h>

enum {
    SLOTS = 32768,          /* 8 MiB: what a storm of samples needs for a quarter of a second */
    SLOTS_LEAST = 1024,     /* children that begin, in a few milliseconds */
    SLOTS_MANY = SLOTS / 8, /* so many records at once: look again soon */
    SOONEST_NS = 5000000,
    LATEST_NS = 40000000,
    TARGET_PATIENCE_MS = 5000, /* with those that were asked for; … */
    MEMBER_PATIENCE_MS = 20,   /* … of the others nobody is looked at meanwhile */
};

struct run_memory {
    struct ring_sources sources;
    struct shim_folder *folder;
    char **environment;
    uint64_t next_ns, interval_ns;
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

static struct ring_settings ring_settings(const struct run_memory *memory)
{
    const struct options *options = memory->sources.run->options;
    return (struct ring_settings){
        .slot_count = memory->sources.counts ? SLOTS : SLOTS_LEAST,
        .window = (uint64_t)options->allocation_window,
        .copy_window = (uint64_t)options->allocation_window,
        .start_ns = memory->sources.run->start_ns,
    };
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
    int error = shim_library_find(library, sizeof library, &memory->obstacle);
    if (!error)
        error = ring_sources_add(&memory->sources, &settings, &memory->obstacle);
    if (!error)
        error = shim_folder_open(library, ring_sources_fd(&memory->sources), &memory->folder,
                                 &memory->obstacle);
    if (!error)
        error = command_check(memory, command, shim_folder_library(memory->folder));
    if (error)
        return error;
    memory->environment = preload_environment(shim_folder_preload(memory->folder));
    return memory->environment ? 0 : failure_set(&memory->obstacle, -ENOMEM, "out of memory");
}

static void memory_release(struct run_memory *memory, bool may_be_used)
{
    ring_sources_arm(&memory->sources, false);
    shim_folder_close(TAKE_PTR(memory->folder), may_be_used);
    ring_sources_done(&memory->sources);
    free(TAKE_PTR(memory->environment));
}

/* Else the shim gives the program its `profile`, and tells of children. */
static struct run_memory *memory_new(struct run *run, bool counts)
{
    struct run_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        *memory = (struct run_memory){
            .sources = { .run = run, .counts = counts },
            .interval_ns = LATEST_NS,
        };
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
        ring_sources_arm(&memory->sources, counts && !run->is_off);
    run->settings.memory = counts && memory->sources.count;
    return 0;
}

static int source_attach(struct run *run, pid_t pid, unsigned patience_ms, struct failure *why)
{
    const struct ring_settings settings = ring_settings(run->memory);
    int error = ring_sources_attach(&run->memory->sources, pid, &settings, patience_ms, why);
    if (!error)
        ring_sources_arm(&run->memory->sources, !run->is_off);
    return error;
}

int run_memory_attach(struct run *run, pid_t pid, struct failure *why)
{
    if (!run_memory_wanted(run->options))
        return 0;
    if (!run->memory)
        run->memory = memory_new(run, true);
    if (!run->memory)
        return failure_set(why, -ENOMEM, "out of memory");
    return source_attach(run, pid, TARGET_PATIENCE_MS, why);
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

/* Of those that were attached to others may come when none is left. */
static bool is_read(const struct run *run)
{
    return run->memory && run->profile && (run->memory->sources.count || run->settings.attached);
}

/* Where the kernel does not tell of children, they do: whoever comes by looks. */
static bool has_news(const struct run *run, uint64_t now_ns)
{
    const struct run_memory *memory = run->memory;
    return is_read(run) && family_watch_method(run->family) == FAMILY_POLLING &&
           now_ns + memory->interval_ns >= memory->next_ns + SOONEST_NS &&
           ring_sources_have_news(&memory->sources);
}

/* One that came up without the shim: at most one at a time, as all its threads stand for it. */
static void bare_attach(struct run *run, uint64_t now_ns)
{
    struct failure why;
    if (!run->settings.attached)
        return;
    pid_t pid = members_find_bare(run->members, now_ns);
    if (pid)
        members_learn_shim(run->members, pid, source_attach(run, pid, MEMBER_PATIENCE_MS, &why),
                           clock_ns(CLOCK_MONOTONIC));
}

int run_memory_follow(struct run *run, uint64_t now_ns)
{
    struct run_memory *memory = run->memory;
    if (now_ns < run_memory_deadline_ns(run) && !has_news(run, now_ns))
        return 0;
    long count = ring_sources_drain(&memory->sources, now_ns);
    if (count < 0)
        return (int)count;
    memory->interval_ns = count > SLOTS_MANY ? SOONEST_NS : memory->interval_ns * 2;
    if (memory->interval_ns > LATEST_NS)
        memory->interval_ns = LATEST_NS;
    int error = ring_sources_follow(&memory->sources, now_ns);
    bare_attach(run, now_ns);
    memory->next_ns = clock_ns(CLOCK_MONOTONIC) + memory->interval_ns;
    return error;
}

static struct ring_sums memory_sums(const struct run *run)
{
    struct ring_sums sums = { 0 };
    if (run->memory)
        ring_sources_sum(&run->memory->sources, &sums);
    return sums;
}

void run_memory_stood(const struct run *run, struct stood *ret)
{
    *ret = memory_sums(run).stood;
}

uint64_t run_memory_deadline_ns(const struct run *run)
{
    return is_read(run) ? run->memory->next_ns : UINT64_MAX;
}

int run_memory_switch(struct run *run, bool on)
{
    if (!is_read(run))
        return 0;
    ring_sources_arm(&run->memory->sources, on && run->memory->sources.counts);
    long count = ring_sources_drain(&run->memory->sources, clock_ns(CLOCK_MONOTONIC));
    return count < 0 ? (int)count : 0;
}

int run_memory_end(struct run *run, pid_t pid)
{
    if (!is_read(run))
        return 0;
    long count = ring_sources_drain(&run->memory->sources, clock_ns(CLOCK_MONOTONIC));
    ring_sources_forget(&run->memory->sources, pid);
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
        error = profile_add_note(run->profile, "what a process allocated before it had the shim is "
                                               "not counted; the shim stays loaded where it was "
                                               "brought, and does nothing there any more");
    return error;
}

/* What shims say that they do not tell. */
static int gap_notes_add(struct run *run, uint32_t gaps)
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
        { GAP_MAPPINGS, "a program has so many mappings at once that the last of them are told as "
                        "freed" },
    };
    int error = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !error; i++)
        if (gaps & rows[i].gap)
            error = profile_add_note(run->profile, rows[i].note);
    return error;
}

static int notes_add(struct run *run)
{
    char text[sizeof run->memory->obstacle.text + 64];
    if (!run->memory->obstacle.code) {
        const struct ring_sums sums = memory_sums(run);
        int error = gap_notes_add(run, sums.gaps);
        if (!error && sums.is_behind)
            error = profile_add_note(run->profile,
                                     "libraries that a program has loaded meanwhile could not be "
                                     "hooked: their native memory is missing");
        return error ? error : shim_notes_add(run);
    }
    snprintf(text, sizeof text, "memory was not profiled: %s", run->memory->obstacle.text);
    return profile_add_note(run->profile, text);
}

/* At the end nobody comes back to a slot that is not whole yet. */
static long rings_empty(struct ring_sources *sources)
{
    ring_sources_arm(sources, false);
    int error = ring_sources_disarm(sources);
    if (error)
        return error;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    long count = ring_sources_drain(sources, now_ns);
    return count < 0 ? count : ring_sources_drain(sources, now_ns + 2 * RING_PATIENCE_NS);
}

int run_memory_tell(struct run *run, bool last)
{
    if (!run->memory)
        return 0;
    struct ring_sources *sources = &run->memory->sources;
    if (is_read(run)) {
        long count =
            last ? rings_empty(sources) : ring_sources_drain(sources, clock_ns(CLOCK_MONOTONIC));
        const struct memory_loss_event loss = memory_sums(run).loss;
        int error = count < 0         ? (int)count
                    : sources->counts ? profile_add_memory_loss(run->profile, &loss)
                                      : 0;
        if (error)
            return error;
    }
    return last && sources->counts ? notes_add(run) : 0;
}
