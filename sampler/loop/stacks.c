#include "sampler/loop/stacks.h"

#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/cpu_kind.h"
#include "sampler/loop/native_merge.h"
#include "sampler/target/threads.h"
#include "sampler/target/trace.h"
#include "symbols/find_python.h"

#include <string.h>
#include <time.h>

enum {
    PAUSE_TRIES = 24,            /* one paused in the middle of a call is let go and paused again */
    BREATH_NS = 20000,           /* between two tries at one that is paused; doubled each time, */
    LONGEST_BREATH_NS = 5000000, /* because on a busy machine it waits for a core first */
    LOOK_TRIES = 8,              /* without pausing */
    LIST_TRIES = 100,            /* a list of threads that changes under the look */
    STACK_COPY = 512 << 10,
    NATIVE_FRAMES = 4096,
};

/* What is kept of a thread from round to round. */
struct thread_slot {
    remote_addr state;
    uint64_t ident;
    uint64_t native_id; /* a thread that ended may leave the first two to the next, but not this */
    pid_t tid;          /* 0: not known */
    char comm[16];
    struct view *view;
    struct thread_probe probe;
    bool probe_open, seen;
    bool accounted; /* `wait` is fresh */
    struct wait_state wait;
};

struct stack_reader {
    struct process *process;
    struct stack_options options;
    struct python *python;
    struct python_location location;
    struct maps maps;
    struct native_unwind *unwind;
    struct native_symbols *symbols;
    struct arena arena; /* of the round */
    const struct py_thread *threads;
    size_t thread_count;
    struct thread_slot *slots;
    size_t slot_count;
    uint8_t *stack_copy;
    struct native_frame *native;
    struct os_thread *os_threads;
    int os_thread_count;
    uint64_t generation;
    bool maps_outdated; /* an address was in none of them */
    struct stack_counts counts;
};

/* ---- opening ---- */

static int judge_probe(void *context, remote_addr runtime, uint32_t version_hint,
                       uint32_t *ret_version)
{
    struct process *process = context;
    return python_probe(&process->memory, runtime, version_hint, ret_version);
}

static int native_open(struct stack_reader *reader, struct failure *why)
{
    struct process *process = reader->process;
    if (!reader->options.native)
        return 0;
    reader->stack_copy = malloc(STACK_COPY);
    reader->native = malloc(NATIVE_FRAMES * sizeof *reader->native);
    int error = reader->stack_copy && reader->native ? 0 : -ENOMEM;
    if (!error)
        error = maps_read(process->proc_fd, &reader->maps);
    if (!error)
        error = unwinder_libunwind.open(&process->memory, process->proc_fd, &reader->unwind);
    if (!error)
        error = native_symbols_open(&process->memory, process->proc_fd, &reader->symbols);
    if (!error)
        error = unwinder_libunwind.set_maps(reader->unwind, &reader->maps);
    if (!error)
        native_symbols_want_lines(reader->symbols, reader->options.native_lines);
    if (!error)
        error = native_symbols_set_maps(reader->symbols, &reader->maps);
    if (error)
        return failure_set(why, error, "native stacks of process %d cannot be prepared: %s",
                           process->pid, strerror(-error));
    return 0;
}

int stack_reader_open(struct process *process, const struct stack_options *options,
                      struct stack_reader **ret, struct failure *why)
{
    struct python_judge judge = {
        .context = process,
        .probe = judge_probe,
        .head_offsets = python_head_offsets(),
        .methods = options->find_methods,
    };
    struct stack_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return failure_set(why, -ENOMEM, "out of memory");
    reader->process = process;
    reader->options = *options;
    int error = python_find(&process->memory, process->proc_fd, &judge, &reader->location, why);
    if (!error)
        error = python_open(&process->memory, reader->location.runtime,
                            reader->location.version_hex, &reader->python, why);
    if (!error)
        error = native_open(reader, why);
    if (!error)
        python_want(reader->python, options->wants | (options->native ? WANT_ANCHORS : 0));
    if (error) {
        stack_reader_close(reader);
        return error;
    }
    *ret = reader;
    return 0;
}

static void slot_done(struct thread_slot *slot)
{
    view_free(slot->view);
    if (slot->probe_open)
        thread_probe_close(&slot->probe);
}

void stack_reader_close(struct stack_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->slot_count; i++)
        slot_done(&reader->slots[i]);
    free(reader->slots);
    if (reader->unwind)
        unwinder_libunwind.close(reader->unwind);
    native_symbols_close(reader->symbols);
    maps_done(&reader->maps);
    python_close(reader->python);
    arena_done(&reader->arena);
    free(reader->stack_copy);
    free(reader->native);
    free(reader->os_threads);
    free(reader);
}

const char *stack_reader_python(const struct stack_reader *reader)
{
    return python_version_text(reader->python);
}

const char *stack_reader_object(const struct stack_reader *reader)
{
    return reader->location.object_path;
}

struct stack_counts stack_reader_counts(const struct stack_reader *reader)
{
    return reader->counts;
}

/* ---- a round ---- */

static const struct os_thread *os_thread_find(const struct stack_reader *reader, uint64_t inner_tid)
{
    for (int i = 0; i < reader->os_thread_count; i++)
        if ((uint64_t)reader->os_threads[i].inner_tid == inner_tid)
            return &reader->os_threads[i];
    return NULL;
}

static struct thread_slot *slot_find(struct stack_reader *reader, size_t hint,
                                     const struct py_thread *thread)
{
    for (size_t i = 0; i < reader->slot_count; i++) {
        /* threads mostly keep their order: the slot at the same place comes first */
        struct thread_slot *slot = &reader->slots[(hint + i) % reader->slot_count];
        if (slot->state == thread->state && slot->ident == thread->ident &&
            slot->native_id == thread->native_id && !slot->seen)
            return slot;
    }
    return NULL;
}

static int slot_fill(struct stack_reader *reader, const struct py_thread *thread,
                     struct thread_slot *slot)
{
    *slot = (struct thread_slot){
        .state = thread->state,
        .ident = thread->ident,
        .native_id = thread->native_id,
    };
    const struct os_thread *os_thread = os_thread_find(reader, thread->native_id);
    if (os_thread) {
        slot->tid = os_thread->tid;
        memcpy(slot->comm, os_thread->comm, sizeof slot->comm);
    }
    if (slot->tid)
        slot->probe_open = thread_probe_open(reader->process, slot->tid, &slot->probe) == 0;
    return view_new(&slot->view);
}

/* Slots in the order of this round's threads; what is gone is let go. */
static int slots_match(struct stack_reader *reader)
{
    struct thread_slot *slots = calloc(reader->thread_count + 1, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    int error = 0;
    for (size_t i = 0; i < reader->slot_count; i++)
        reader->slots[i].seen = false;
    for (size_t i = 0; i < reader->thread_count && !error; i++) {
        struct thread_slot *old = slot_find(reader, i, &reader->threads[i]);
        if (old) {
            slots[i] = *old;
            old->seen = true;
        } else {
            error = slot_fill(reader, &reader->threads[i], &slots[i]);
        }
    }
    for (size_t i = 0; i < reader->slot_count; i++)
        if (!reader->slots[i].seen)
            slot_done(&reader->slots[i]);
    free(reader->slots);
    reader->slots = slots;
    reader->slot_count = reader->thread_count;
    return error;
}

int stack_reader_list(struct stack_reader *reader)
{
    int count = -EAGAIN;
    arena_empty(&reader->arena);
    for (unsigned i = 0; i < LIST_TRIES && count == -EAGAIN; i++)
        count = python_list_threads(reader->python, (uint64_t)reader->process->inner_pid,
                                    &reader->threads);
    if (count < 0)
        return count;
    reader->thread_count = (size_t)count;
    free(TAKE_PTR(reader->os_threads));
    reader->os_thread_count = threads_list(reader->process, &reader->os_threads);
    if (reader->os_thread_count < 0)
        return reader->os_thread_count;
    int error = slots_match(reader);
    reader->generation++;
    return error ? error : count;
}

/* Objects that were mapped since are learnt of when an address lies in none that is known. */
static int maps_refresh(struct stack_reader *reader)
{
    struct maps fresh, old = reader->maps;
    if (!reader->maps_outdated || maps_read(reader->process->proc_fd, &fresh))
        return 0;
    reader->maps_outdated = false;
    reader->maps = fresh; /* the borrowers keep the address, not what stands there */
    int error = unwinder_libunwind.set_maps(reader->unwind, &reader->maps);
    if (!error)
        error = native_symbols_set_maps(reader->symbols, &reader->maps);
    maps_done(&old);
    return error;
}

int stack_reader_begin(struct stack_reader *reader)
{
    arena_empty(&reader->arena);
    int error = reader->options.native ? maps_refresh(reader) : 0;
    if (error)
        return error;
    int changed = python_threads_changed(reader->python);
    if (changed < 0)
        return changed;
    return changed ? stack_reader_list(reader) : (int)reader->thread_count;
}

uint64_t stack_reader_generation(const struct stack_reader *reader)
{
    return reader->generation;
}

/* What threading calls the thread, else what the kernel does. */
static const char *thread_name(const struct stack_reader *reader, size_t index)
{
    const struct thread_slot *slot = &reader->slots[index];
    if (reader->threads[index].name)
        return reader->threads[index].name;
    return *slot->comm ? slot->comm : NULL;
}

void stack_reader_describe(const struct stack_reader *reader, size_t index,
                           struct thread_event *ret)
{
    const struct py_thread *thread = &reader->threads[index];
    *ret = (struct thread_event){
        .tid = reader->slots[index].tid,
        .ident = thread->ident,
        .name = thread_name(reader, index),
        .interpreter = thread->interpreter_id,
    };
}

int stack_reader_account(struct stack_reader *reader, size_t index, struct wait_state *ret)
{
    struct thread_slot *slot = &reader->slots[index];
    if (!slot->probe_open)
        return -ENOENT;
    int error = thread_probe_read(&slot->probe, &slot->wait);
    slot->accounted = error == 0;
    if (!error)
        *ret = slot->wait;
    return error;
}

void stack_reader_name_threads(struct stack_reader *reader)
{
    python_name_threads(reader->python);
}

/* ---- one thread ---- */

struct reading {
    struct stack_reader *reader;
    const struct py_thread *thread;
    struct thread_slot *slot;
    struct wait_state wait;
    struct py_stack stack;
    struct stack_image image; /* size 0: no native stack */
    bool native, may_pause;
};

static bool is_torn(int error)
{
    return error == -EAGAIN || error == -EBADMSG || error == -EFAULT;
}

static int stack_look(struct reading *reading, enum py_moment moment)
{
    return python_read_stack(reading->reader->python, reading->thread, reading->slot->view, moment,
                             &reading->stack);
}

/* The top of the C stack, as much of it as is there. */
static void image_copy(struct reading *reading, remote_addr sp)
{
    struct stack_reader *reader = reading->reader;
    remote_addr start = sp - 128; /* the red zone below it */
    long got = remote_read_some(&reader->process->memory, start, reader->stack_copy, STACK_COPY);
    if (got <= 0)
        return;
    reading->image.stack_start = start;
    reading->image.bytes = reader->stack_copy;
    reading->image.size = (size_t)got;
}

/* A thread that the kernel has not put on a CPU since the first look has not moved under the
 * second. */
static int read_blocked(struct reading *reading)
{
    struct wait_state after;
    if (!reading->slot->probe_open || !reading->wait.off_cpu)
        return -EAGAIN;
    int error = stack_look(reading, MOMENT_STILL);
    if (!error && reading->native && reading->wait.sp) {
        /* the kernel tells these two without a pause; what lies deeper is mostly found on the stack
         */
        reading->image.registers =
            (struct registers){ .ip = reading->wait.ip, .sp = reading->wait.sp };
        image_copy(reading, reading->wait.sp);
    }
    if (error && !is_torn(error))
        return error;
    if (thread_probe_read(&reading->slot->probe, &after))
        return -ESRCH;
    if (!after.off_cpu || after.turns != reading->wait.turns)
        return -EAGAIN;
    return error;
}

static int read_paused(struct reading *reading)
{
    struct stack_counts *counts = &reading->reader->counts;
    struct pause pause = { 0 };
    int error = thread_pause(reading->slot->tid, &pause);
    if (error)
        return error;
    /* who had to be put on a CPU to stand still was waiting for one */
    if (!reading->wait.off_cpu && reading->slot->probe_open &&
        thread_probe_turns(&reading->slot->probe) != reading->wait.turns)
        reading->wait.state = THREAD_WAIT_CPU;
    error = stack_look(reading, MOMENT_STILL);
    if (!error && reading->native && thread_read_registers(&pause, &reading->image.registers) == 0)
        image_copy(reading, reading->image.registers.sp);
    int64_t stood = thread_resume(&pause);
    if (stood > 0) {
        counts->pauses++;
        counts->paused_ns += (uint64_t)stood;
        if ((uint64_t)stood > counts->longest_pause_ns)
            counts->longest_pause_ns = (uint64_t)stood;
    }
    return error;
}

static enum thread_state state_of(const struct reading *reading)
{
    const struct py_thread *thread = reading->thread;
    const struct wait_state *wait = &reading->wait;
    if (wait->state == THREAD_WAIT_LOCK && wait->futex >= thread->gil &&
        wait->futex < thread->gil_end)
        return THREAD_WAIT_GIL;
    return wait->state;
}

static const char *error_text(int error)
{
    switch (error) {
    case -ESRCH:
        return "the thread ended while it was read";
    case -EPERM:
        return "the kernel refused to pause the thread";
    case -ENOMEM:
        return "out of memory";
    default:
        return "the thread changed its stack at every look";
    }
}

/* `*ret_placed`: every Python frame found its place among the native ones, so none of those is
 * missing. */
static int frames_fill(struct reading *reading, struct thread_event *event, bool *ret_placed)
{
    struct stack_reader *reader = reading->reader;
    struct merge_input input = {
        .python = reader->python,
        .stack = &reading->stack,
        .image = &reading->image,
        .symbols = reader->symbols,
    };
    if (reading->image.size) {
        int count =
            unwinder_libunwind.walk(reader->unwind, &reading->image, reader->native, NATIVE_FRAMES);
        input.native = reader->native;
        input.native_count = count > 0 ? (size_t)count : 0;
        if (count > 0 && !maps_find(&reader->maps, reader->native[0].ip))
            reader->maps_outdated = true;
    }
    int count = frames_merge(&input, &reader->arena, &event->frames, ret_placed);
    if (count < 0)
        return count;
    event->frame_count = (size_t)count;
    event->holds_gil = reading->stack.holds_gil;
    event->state = state_of(reading);
    event->cpu = cpu_kind_find(&(struct cpu_look){
        .stack = &reading->stack,
        .native = input.native,
        .native_count = input.native_count,
        .in_call = reading->image.registers.in_call,
        .symbols = reader->symbols,
        .interpreter_path = reader->location.object_path,
    });
    event->error = reading->stack.truncated ? "the stack is deeper than what is shown" : NULL;
    return 0;
}

/* Without a pause: what a blocked thread shows, or what looks at a running one agree on. */
static int look_unpaused(struct reading *reading, struct thread_event *event, bool *ret_placed)
{
    int error = read_blocked(reading);
    if (is_torn(error) && !reading->may_pause)
        error = stack_look(reading, MOMENT_RUNNING);
    return error ? error : frames_fill(reading, event, ret_placed);
}

/* A blocked thread is paused only when its native frames cannot be told without all of its
 * registers. */
static int look_once(struct reading *reading, struct thread_event *event)
{
    bool placed = false;
    int error = look_unpaused(reading, event, &placed);
    bool enough = !error && (placed || !reading->native);
    if (enough || !reading->may_pause || (error && !is_torn(error)))
        return error;
    int paused = read_paused(reading);
    if (!paused)
        return frames_fill(reading, event, &placed);
    return error ? paused : 0;
}

/* What was torn is looked at again, after the thread has had time to get on. */
static int look(struct reading *reading, struct thread_event *event)
{
    struct stack_counts *counts = &reading->reader->counts;
    unsigned tries = reading->may_pause ? PAUSE_TRIES : LOOK_TRIES, failed = 0;
    struct timespec breath = { .tv_nsec = BREATH_NS };
    int error = look_once(reading, event);
    while (is_torn(error) && ++failed < tries) {
        if (reading->may_pause)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &breath, NULL);
        if (breath.tv_nsec < LONGEST_BREATH_NS)
            breath.tv_nsec *= 2;
        if (reading->slot->probe_open)
            thread_probe_read(&reading->slot->probe, &reading->wait);
        error = look_once(reading, event);
    }
    if (error != -ESRCH) /* a thread that ended is no loss */
        *(error ? &counts->dropped : failed ? &counts->retried : &counts->clean) += 1;
    return error;
}

int stack_reader_read(struct stack_reader *reader, size_t index, struct thread_event *ret)
{
    struct reading reading = {
        .reader = reader,
        .thread = &reader->threads[index],
        .slot = &reader->slots[index],
        .native = reader->options.native,
    };
    reading.may_pause = !reader->options.nonblocking && reading.slot->tid;
    const struct py_thread *thread = reading.thread;
    if (reading.slot->accounted)
        reading.wait = reading.slot->wait;
    else if (reading.slot->probe_open)
        thread_probe_read(&reading.slot->probe, &reading.wait);
    reading.slot->accounted = false;
    *ret = (struct thread_event){
        .tid = reading.slot->tid,
        .ident = thread->ident,
        .name = thread_name(reader, index),
        .interpreter = thread->interpreter_id,
        .state = state_of(&reading),
    };
    int error = look(&reading, ret);
    if (error)
        ret->error = error_text(error);
    return error;
}

int stack_reader_look(struct stack_reader *reader, size_t index)
{
    struct py_stack stack = { .count = 0 };
    int error = python_read_stack(reader->python, &reader->threads[index],
                                  reader->slots[index].view, MOMENT_RUNNING, &stack);
    for (size_t i = 0; i < stack.count && !error; i++)
        python_frame_place(reader->python, &stack.frames[i]);
    return error;
}
