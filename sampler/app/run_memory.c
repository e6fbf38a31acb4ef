#include "sampler/app/run_memory.h"

#include "sampler/app/preload.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/ring_reader.h"

#include <limits.h>
#include <time.h>

enum {
    SLOTS = 32768, /* 8 MiB: what a storm of samples needs for a quarter of a second */
    SLOTS_LEAST = 2,
    SLOTS_MANY = SLOTS / 8, /* so many records at once: look again soon */
    SOONEST_NS = 5000000,
    LATEST_NS = 40000000,
};

struct run_memory {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct run *run;
    struct ring_reader *reader;
    struct shim_folder *folder;
    char **environment;
    uint64_t next_ns, interval_ns;
    bool counts;             /* else the shim gives the program its `profile` alone */
    struct failure obstacle; /* code 0: none */
};

bool run_memory_wanted(const struct options *options)
{
    return options->verb != VERB_ATTACH && !options->cpu_only && (options->memory || !options->gpu);
}

/* ---- before and after ---- */

static int event_take(struct ring_sink *sink, const struct memory_event *event)
{
    struct run *run = ((struct run_memory *)sink)->run;
    /* all that inherit the environment write into the ring, whoever is followed */
    bool followed = run->options->subprocesses || event->pid == launch_pid(run->launch);
    return followed ? profile_add_memory(run->profile, event) : 0;
}

static int ring_make(struct run_memory *memory, const struct run *run)
{
    const struct ring_settings settings = {
        .slot_count = memory->counts ? SLOTS : SLOTS_LEAST,
        .window = (uint64_t)run->options->allocation_window,
        .copy_window = (uint64_t)run->options->allocation_window,
        .start_ns = run->start_ns,
    };
    return ring_reader_new(&settings, &memory->reader, &memory->obstacle);
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

static int memory_prepare(struct run_memory *memory, const struct run *run, char *const *command)
{
    char library[PATH_MAX];
    int error = shim_library_find(library, sizeof library, &memory->obstacle);
    if (!error)
        error = ring_make(memory, run);
    if (!error)
        error = shim_folder_open(library, ring_reader_fd(memory->reader), &memory->folder,
                                 &memory->obstacle);
    if (!error)
        error = command_check(memory, command, shim_folder_library(memory->folder));
    if (error)
        return error;
    memory->environment = preload_environment(shim_folder_library(memory->folder));
    return memory->environment ? 0 : failure_set(&memory->obstacle, -ENOMEM, "out of memory");
}

static void memory_release(struct run_memory *memory, bool may_be_used)
{
    if (memory->reader)
        ring_reader_arm(memory->reader, false);
    shim_folder_close(memory->folder, may_be_used);
    ring_reader_free(memory->reader);
    free(memory->environment);
    memory->folder = NULL;
    memory->reader = NULL;
    memory->environment = NULL;
}

int run_memory_open(struct run *run, char *const *command)
{
    bool counts = run_memory_wanted(run->options);
    if (!counts && !program_is_marked(&run->program, (const char *const *)command))
        return 0;
    struct run_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    *memory = (struct run_memory){
        .sink = { .memory = event_take },
        .run = run,
        .interval_ns = LATEST_NS,
        .counts = counts,
    };
    run->memory = memory;
    if (memory_prepare(memory, run, command))
        memory_release(memory, false);
    else
        ring_reader_arm(memory->reader, counts && !run->is_off);
    run->settings.memory = counts && memory->reader;
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
    return run->memory && run->memory->counts && run->memory->reader && run->profile;
}

static long ring_drain(struct run_memory *memory, uint64_t now_ns)
{
    return ring_reader_drain(memory->reader, now_ns, &memory->sink);
}

int run_memory_follow(struct run *run, uint64_t now_ns)
{
    struct run_memory *memory = run->memory;
    if (now_ns < run_memory_deadline_ns(run))
        return 0;
    long count = ring_drain(memory, now_ns);
    if (count < 0)
        return (int)count;
    memory->interval_ns = count > SLOTS_MANY ? SOONEST_NS : memory->interval_ns * 2;
    if (memory->interval_ns > LATEST_NS)
        memory->interval_ns = LATEST_NS;
    memory->next_ns = clock_ns(CLOCK_MONOTONIC) + memory->interval_ns;
    return 0;
}

uint64_t run_memory_deadline_ns(const struct run *run)
{
    return is_read(run) ? run->memory->next_ns : UINT64_MAX;
}

int run_memory_switch(struct run *run, bool on)
{
    if (!is_read(run))
        return 0;
    ring_reader_arm(run->memory->reader, on);
    long count = ring_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
    return count < 0 ? (int)count : 0;
}

int run_memory_end(struct run *run, pid_t pid)
{
    if (!is_read(run))
        return 0;
    long count = ring_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
    ring_reader_forget(run->memory->reader, pid);
    return count < 0 ? (int)count : 0;
}

/* ---- the profile ---- */

static int notes_add(struct run *run)
{
    char text[sizeof run->memory->obstacle.text + 64];
    struct members_glance members;
    members_look(run->members, &members);
    if (!run->memory->obstacle.code)
        return members.without_shim
                   ? profile_add_note(run->profile, "the memory of Python processes that did not "
                                                    "load the shim is missing")
                   : 0;
    snprintf(text, sizeof text, "memory was not profiled: %s", run->memory->obstacle.text);
    return profile_add_note(run->profile, text);
}

/* At the end nobody comes back to a slot that is not whole yet. */
static long ring_empty(struct run_memory *memory)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    ring_reader_arm(memory->reader, false);
    long count = ring_drain(memory, now_ns);
    return count < 0 ? count : ring_drain(memory, now_ns + 2 * RING_PATIENCE_NS);
}

int run_memory_tell(struct run *run, bool last)
{
    struct memory_loss_event loss;
    if (!run->memory)
        return 0;
    if (is_read(run)) {
        long count =
            last ? ring_empty(run->memory) : ring_drain(run->memory, clock_ns(CLOCK_MONOTONIC));
        if (count < 0)
            return (int)count;
        ring_reader_losses(run->memory->reader, &loss);
        int error = profile_add_memory_loss(run->profile, &loss);
        if (error)
            return error;
    }
    return last && run->memory->counts ? notes_add(run) : 0;
}
