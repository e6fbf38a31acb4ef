/*
 * One thread's whole stack: without a pause where the kernel proves that it did not move, else in a
 * pause; torn reads are tried again, and names and native frames are found after it runs on.
 */
#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/cpu_kind.h"
#include "sampler/loop/native_merge.h"
#include "sampler/loop/stack_reader.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/trace.h"

#include <string.h>
#include <time.h>

enum {
    PAUSE_TRIES = 24,  /* one paused in the middle of a call is let go and paused again */
    BREATH_NS = 20000, /* between two tries at one that is paused; doubled each time, */
    LONGEST_BREATH_NS = 20000000, /* because on a busy machine it waits for a core first */
    LOOK_TRIES = 8,               /* without pausing */
    DOUBTFUL_TRIES = 10,      /* at one that may run elsewhere: more would keep all else waiting */
    DOUBTS = 16,              /* so many looks after one that was torn are not believed at once */
    FRAME_LARGEST = 64 << 10, /* of native frames; a walk that ends further from the end of
                                 what was copied did not end because of that */
    MADE_WAY_NS = 300000,     /* between our getting a core and asking a thread to stop */
    CALL_WEIGHT = 64,         /* who is met in the kernel at more looks than one in so many gathers
                                 weight, … */
    CALLS_MANY = 128,         /* … at so much is approached with care, … */
    APPROACHES_MOST = 4,      /* in a round: each takes half a millisecond */
    CAREFUL_LOOKS = 4096,     /* … and so often, before it is asked whether it still has to be */
};

struct reading {
    struct stack_reader *reader;
    const struct py_thread *thread;
    struct thread_slot *slot;
    struct wait_state wait;
    struct py_stack stack;
    struct stack_image image; /* size 0: no native stack */
    bool native, may_pause;
    bool cut;      /* frames that lie too deep are left out */
    bool unplaced; /* others lie further out than the walk of the C stack came */
    bool refused;  /* it cannot be paused, and is still there */
    size_t native_count;
    uint64_t core_held_ns; /* since when, or 0: it is not */
    enum py_moment still;  /* what a thread that stands still is met at */
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

/*
 * Looks that agree may still have met a program that moves to and fro at their pace. One that was
 * met moving lately has to show the same stack at two such reads, which are not in step.
 */
static int running_look(struct reading *reading)
{
    int error = stack_look(reading, MOMENT_RUNNING);
    uint64_t shape = reading->stack.shape;
    if (error || (!reading->slot->doubts && !reading->thread->shares_id))
        return error;
    error = stack_look(reading, MOMENT_RUNNING);
    return error || reading->stack.shape == shape ? error : -EAGAIN;
}

/* Where it is uncertain who runs the thread state, nothing proves that it does not move. */
static int still_look(struct reading *reading)
{
    return reading->thread->shares_id ? running_look(reading) : stack_look(reading, reading->still);
}

/* A read that goes too far costs two more questions to the kernel, in the midst of a pause. */
static size_t copy_size(const struct thread_slot *slot, remote_addr start)
{
    bool near = start < slot->stack_end && slot->stack_end - start < STACK_COPY;
    return near ? slot->stack_end - start : STACK_COPY;
}

/* The top of the C stack, as much of it as is there. */
static void image_copy(struct reading *reading, remote_addr sp)
{
    struct stack_reader *reader = reading->reader;
    remote_addr start = sp - 128; /* the red zone below it */
    size_t size = copy_size(reading->slot, start);
    long got = remote_read_some(&reader->process->memory, start, reader->stack_copy, size);
    if (got <= 0)
        return;
    if ((size_t)got < size)
        reading->slot->stack_end = start + (size_t)got;
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
    int error = still_look(reading);
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
    /* a kernel without the account says 0 at any time */
    if (!after.off_cpu || !after.turns || after.turns != reading->wait.turns)
        return -EAGAIN;
    return error;
}

/* What a pause was like, on both sides. */
struct hold {
    struct wait_state before; /* the thread's account */
    uint64_t waited_ns;       /* we, for a core */
    uint64_t stop_ns;         /* until it stood still */
    uint64_t stood_ns;        /* until it went on, from when it was asked to stand still */
    uint64_t work_ns;         /* our CPU time in between */
};

/*
 * What the thread lost. It would have waited for a core without us, as it did before it could stop;
 * and as long as we wait for one, who has them are others, and it would have to share with them.
 */
static void pause_count(struct stack_counts *counts, const struct hold *hold, uint64_t queued_ns)
{
    uint64_t stood_ns = hold->stood_ns > queued_ns ? hold->stood_ns - queued_ns : 0;
    uint64_t lost_ns = stood_ns > hold->waited_ns ? stood_ns - hold->waited_ns : 0;
    counts->pauses++;
    counts->stood_ns += stood_ns;
    counts->paused_ns += lost_ns > hold->work_ns ? lost_ns : hold->work_ns;
    if (stood_ns > counts->longest_pause_ns)
        counts->longest_pause_ns = stood_ns;
}

/*
 * Who had to be put on a CPU to stand still was without one. It has made way for us when it left it
 * as we came, and where it was then is as good a moment as any; but who left it before did so where
 * the scheduler takes tasks off, which is often in a system call.
 */
static void wait_judge(struct reading *reading, const struct hold *hold)
{
    uint64_t queued_ns = reading->wait.queued_ns - hold->before.queued_ns;
    uint64_t ours_ns = hold->stop_ns + MADE_WAY_NS;
    if (!reading->wait.off_cpu && reading->wait.turns != hold->before.turns &&
        queued_ns + hold->waited_ns > ours_ns)
        reading->wait.state = THREAD_WAIT_CPU;
    pause_count(&reading->reader->counts, hold, queued_ns);
}

/* Whoever is met coming back from the kernel again and again is approached with care from now on.
 */
static void calls_count(struct thread_slot *slot, bool in_call)
{
    if (slot->careful_looks)
        return;
    slot->calls = in_call ? slot->calls + CALL_WEIGHT : slot->calls ? slot->calls - 1 : 0;
    if (slot->calls >= CALLS_MANY) {
        slot->careful_looks = CAREFUL_LOOKS;
        slot->calls = 0;
    }
}

/*
 * A thread that calls the kernel often would mostly be met where it comes back from there. It is
 * looked at a moment later, at a moment that was set before, whatever it does then.
 */
static void approach(struct reading *reading)
{
    struct thread_slot *slot = reading->slot;
    struct core_holder *holder = reading->reader->options.holder;
    bool moves = !reading->wait.off_cpu || reading->wait.turns != slot->turns;
    if (!holder || !reading->may_pause || !moves || !slot->careful_looks || !slot->probe_open ||
        reading->reader->approaches == APPROACHES_MOST)
        return;
    reading->reader->approaches++;
    slot->careful_looks--;
    reading->core_held_ns = core_holder_take(holder, thread_probe_core(&slot->probe));
    thread_probe_read(&slot->probe, &reading->wait);
    if (reading->wait.off_cpu && TAKE(reading->core_held_ns, 0))
        core_holder_release(holder);
}

/* Where both have one core, the thread takes it as soon as it may go on, and keeps us waiting for
 * as long as it likes: that is no part of the pause. `hold` has what our clocks said at its start.
 */
static void let_go(const struct stack_reader *reader, struct pause *pause, struct hold *hold)
{
    uint64_t worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), since_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t stood = thread_resume(pause);
    uint64_t spent_ns = clock_ns(CLOCK_MONOTONIC) - since_ns;
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), own_ns = cpu_ns - worked_ns;
    uint64_t late_ns = spent_ns > own_ns ? spent_ns - own_ns : 0;
    uint64_t waited_ns = core_wait_read(reader->core_wait_fd) - hold->waited_ns;
    hold->work_ns = cpu_ns - hold->work_ns;
    hold->waited_ns = waited_ns > late_ns ? waited_ns - late_ns : 0;
    hold->stood_ns = stood > (int64_t)late_ns ? (uint64_t)stood - late_ns : 0;
}

/*
 * The kernel's account of a thread that runs lags by up to a tick; it is exact once the thread has
 * left its core, which is a moment after the kernel tells of the stop.
 */
static int read_paused(struct reading *reading)
{
    const struct stack_reader *reader = reading->reader;
    struct core_holder *holder = reading->core_held_ns ? reader->options.holder : NULL;
    struct hold hold = { .before = reading->wait,
                         .waited_ns = core_wait_read(reader->core_wait_fd) };
    struct pause pause = { 0 };
    uint64_t since_ns = clock_ns(CLOCK_MONOTONIC);
    bool runs = reading->slot->probe_open && !reading->wait.off_cpu;
    int error = runs ? thread_pause_running(reading->slot->tid, holder, &pause)
                     : thread_pause(reading->slot->tid, &pause);
    reading->refused = error && error != -ESRCH;
    if (error)
        return error;
    hold.stop_ns = clock_ns(CLOCK_MONOTONIC) - since_ns;
    uint64_t held_ns = TAKE(reading->core_held_ns, 0);
    if (held_ns && pause.since_ns - held_ns < CORE_HOLD_NS)
        pause.since_ns = held_ns;
    hold.work_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    error = still_look(reading);
    /* without native stacks they tell the kernel's work at least */
    if (!error && thread_read_registers(&pause, &reading->image.registers) == 0 && reading->native)
        image_copy(reading, reading->image.registers.sp);
    calls_count(reading->slot, reading->image.registers.in_call);
    if (reading->slot->probe_open)
        thread_probe_account(&reading->slot->probe, &reading->wait);
    let_go(reader, &pause, &hold);
    wait_judge(reading, &hold);
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
    case -EBADMSG:
        return "its stack, or a name there, is none that CPython makes";
    default:
        return "the thread changed its stack at every look";
    }
}

static bool in_c_library(const struct native_symbol *symbol)
{
    const char *slash = symbol->module ? strrchr(symbol->module, '/') : NULL;
    const char *module = slash ? slash + 1 : "";
    return strncmp(module, "libc", 4) == 0 || strncmp(module, "libpthread", 10) == 0 ||
           strncmp(module, "ld-", 3) == 0;
}

/*
 * Did the walk get to where the thread began? That is at the program's start, or in the C library,
 * to which it came back from elsewhere; a walk that lacked a register ends before.
 */
static bool native_is_whole(const struct stack_reader *reader, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        struct native_symbol symbol = { 0 };
        bool known = native_symbols_find(reader->symbols, reader->native[i].ip, &symbol) == 0;
        if (i + 1 == count && known && symbol.name && strcmp(symbol.name, "_start") == 0)
            return true;
        if (!known || !in_c_library(&symbol))
            return i + 1 < count;
    }
    return false;
}

/* The walk left what was copied of the stack, or had no room for more: no pause would show more. */
static bool native_is_cut(const struct reading *reading, size_t count)
{
    const struct stack_image *image = &reading->image;
    if (!count || count == NATIVE_FRAMES)
        return count;
    remote_addr end = image->stack_start + image->size;
    return image->size == STACK_COPY && end - reading->reader->native[count - 1].sp < FRAME_LARGEST;
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
    bool cut = native_is_cut(reading, input.native_count);
    reading->cut = cut || reading->stack.truncated;
    reading->unplaced = !cut && !*ret_placed;
    reading->native_count = input.native_count;
    *ret_placed = cut || (*ret_placed && native_is_whole(reader, input.native_count));
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
    event->error = reading->stack.truncated ? "the stack is deeper than what is shown"
                   : cut                    ? "the native stack is deeper than what is shown"
                                            : NULL;
    return 0;
}

/* Without a pause: what a blocked thread shows, or what looks at a running one agree on. */
static int look_unpaused(struct reading *reading, struct thread_event *event, bool *ret_placed)
{
    int error = read_blocked(reading);
    if (is_torn(error) && !reading->may_pause)
        error = running_look(reading);
    return error ? error : frames_fill(reading, event, ret_placed);
}

/*
 * Is it certain that more native frames are there than could be found? The C library has code that
 * no table describes, too, but a thread is there for a moment alone (clone3).
 */
static bool native_is_lost(const struct reading *reading, bool paused)
{
    const struct stack_reader *reader = reading->reader;
    size_t count = reading->native_count;
    struct native_symbol last = { 0 };
    if (!reading->native || !reading->unplaced)
        return false;
    if (!paused)
        return reading->refused;
    if (count)
        native_symbols_find(reader->symbols, reader->native[count - 1].ip, &last);
    return !native_is_whole(reader, count) && !in_c_library(&last);
}

/* A blocked thread is paused only when its native frames cannot be told without all of its
 * registers. */
static int look_once(struct reading *reading, struct thread_event *event)
{
    bool placed = false;
    int error = look_unpaused(reading, event, &placed);
    /* one that is stopped would move, if only back into its stop */
    bool stopped = reading->wait.state == THREAD_STOPPED;
    bool enough = !error && (placed || !reading->native || stopped);
    if (enough || !reading->may_pause || (error && !is_torn(error)))
        return error;
    int paused = read_paused(reading);
    if (paused && error)
        return paused;
    error = paused ? 0 : frames_fill(reading, event, &placed);
    if (!error && !event->error && native_is_lost(reading, paused == 0))
        event->error = "the native stack could not be followed to its beginning";
    return error;
}

static unsigned tries_of(const struct reading *reading)
{
    if (!reading->may_pause)
        return LOOK_TRIES;
    return reading->thread->shares_id ? DOUBTFUL_TRIES : PAUSE_TRIES;
}

/* What was torn is looked at again, after the thread has had time to get on. */
static int look(struct reading *reading, struct thread_event *event)
{
    struct stack_counts *counts = &reading->reader->counts;
    unsigned tries = tries_of(reading), failed = 0;
    struct timespec breath = { .tv_nsec = BREATH_NS };
    int error = look_once(reading, event);
    while (is_torn(error) && ++failed < tries) {
        reading->slot->doubts = DOUBTS;
        if (reading->may_pause)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &breath, NULL);
        if (breath.tv_nsec < LONGEST_BREATH_NS)
            breath.tv_nsec *= 2;
        if (reading->slot->probe_open)
            thread_probe_read(&reading->slot->probe, &reading->wait);
        if (failed + 1 == tries)
            reading->still = MOMENT_STUCK;
        error = look_once(reading, event);
    }
    if (is_torn(error) && !python_has_thread(reading->reader->python, reading->thread))
        error = -ESRCH;
    if (!failed && reading->slot->doubts)
        reading->slot->doubts--;
    if (error == -ESRCH) /* a thread that ended is no loss */
        reading->reader->threads_outdated = true;
    else
        *(error ? &counts->dropped : failed ? &counts->retried : &counts->clean) += 1;
    counts->refused += error == -EPERM;
    counts->cut += !error && reading->cut;
    return error;
}

/* Only a thread that is looked at while it runs can be so before anybody asks what it does. */
static void runner_remember(struct stack_reader *reader, const struct reading *reading,
                            size_t index)
{
    if (!reading->may_pause && !reading->wait.off_cpu)
        reader->runner = index;
    else if (reader->runner == index)
        reader->runner = SIZE_MAX;
}

int stack_reader_read(struct stack_reader *reader, size_t index, struct thread_event *ret)
{
    struct reading reading = {
        .reader = reader,
        .thread = &reader->threads[index],
        .slot = &reader->slots[index],
        .native = reader->options.native,
        .still = MOMENT_STILL,
        .wait = { .state = THREAD_WAIT_OTHER }, /* what it does is not known yet */
    };
    reading.may_pause = !reader->options.nonblocking && reading.slot->tid;
    const struct py_thread *thread = reading.thread;
    if (reading.slot->accounted)
        reading.wait = reading.slot->wait;
    else if (reading.slot->probe_open)
        thread_probe_read(&reading.slot->probe, &reading.wait);
    reading.slot->accounted = false;
    approach(&reading);
    *ret = (struct thread_event){
        .tid = reading.slot->tid,
        .ident = thread->ident,
        .name = stack_reader_thread_name(reader, index),
        .interpreter = thread->interpreter_id,
        .state = state_of(&reading),
        .met = state_of(&reading),
    };
    int error = look(&reading, ret);
    if (reading.core_held_ns)
        core_holder_release(reader->options.holder);
    reading.slot->turns = reading.wait.turns;
    runner_remember(reader, &reading, index);
    ret->run_ns = reading.wait.run_ns;
    ret->queued_ns = reading.wait.queued_ns;
    if (error)
        ret->error = error_text(error);
    return error;
}

int stack_reader_look(struct stack_reader *reader, size_t index, bool stands_still)
{
    enum py_moment moment = stands_still ? MOMENT_STILL : MOMENT_RUNNING;
    struct py_stack stack = { .count = 0 };
    int error = python_read_stack(reader->python, &reader->threads[index],
                                  reader->slots[index].view, moment, &stack);
    for (size_t i = 0; i < stack.count && !error; i++)
        python_frame_place(reader->python, &stack.frames[i]);
    return error;
}
