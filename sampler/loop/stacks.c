#include "sampler/loop/stack_reader.h"

#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/thread_owner.h"
#include "sampler/target/cpu_clock.h"

#include <string.h>
#include <time.h>

/* At a list of threads that changes under the look. Whoever changes it may have lost the core just
 * then: the last tries wait before, each twice as long as the one before. */
enum { LIST_TRIES = 100, LIST_QUICK_TRIES = 95, LIST_BREATH_NS = 100000 };

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
    if (!error && reader->options.objects)
        native_symbols_share(reader->symbols, reader->options.objects);
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
    reader->core_wait_fd = core_wait_open();
    reader->runner = SIZE_MAX;
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
    free(slot->name);
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
    cleanup_close(&reader->core_wait_fd);
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

static const struct os_thread *os_thread_by_stack(const struct stack_reader *reader,
                                                  const struct py_thread *thread)
{
    struct maps maps;
    if (maps_read(reader->process->proc_fd, &maps))
        return NULL;
    const struct os_thread *found = thread_owner_by_stack(
        reader->process, &maps, thread->c_stack, reader->os_threads, reader->os_thread_count);
    maps_done(&maps);
    return found;
}

/* A number of Python's that is no thread's is older than a fork that Python did not see. */
static const struct os_thread *os_thread_of(const struct stack_reader *reader,
                                            const struct py_thread *thread)
{
    if (thread->shares_id && thread->c_stack)
        return os_thread_by_stack(reader, thread);
    const struct os_thread *found = os_thread_find(reader, thread->native_id);
    return found || thread->shares_id
               ? found
               : thread_owner_by_struct(&reader->process->memory, thread->ident, reader->os_threads,
                                        reader->os_thread_count);
}

static int slot_fill(struct stack_reader *reader, const struct py_thread *thread,
                     struct thread_slot *slot)
{
    *slot = (struct thread_slot){
        .state = thread->state,
        .ident = thread->ident,
        .native_id = thread->native_id,
    };
    const struct os_thread *os_thread = os_thread_of(reader, thread);
    if (os_thread) {
        slot->tid = os_thread->tid;
        memcpy(slot->comm, os_thread->comm, sizeof slot->comm);
    }
    if (slot->tid)
        slot->probe_open = thread_probe_open(reader->process, slot->tid, &slot->probe) == 0;
    return view_new(&slot->view);
}

/* Who is known by a number of its own keeps it. */
static bool slot_holds(const struct stack_reader *reader, const struct thread_slot *slot,
                       const struct py_thread *thread)
{
    if (!slot || !slot->tid || !thread->shares_id)
        return slot && slot->tid;
    const struct os_thread *os_thread = os_thread_of(reader, thread);
    return os_thread && os_thread->tid == slot->tid;
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
        if (slot_holds(reader, old, &reader->threads[i])) {
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
    reader->approaches = 0;
    for (unsigned i = 0; i < LIST_TRIES && count == -EAGAIN; i++) {
        if (i >= LIST_QUICK_TRIES && reader->generation) {
            struct timespec breath = { .tv_nsec = LIST_BREATH_NS << (i - LIST_QUICK_TRIES) };
            clock_nanosleep(CLOCK_MONOTONIC, 0, &breath, NULL);
        }
        count = python_list_threads(reader->python, (uint64_t)reader->process->inner_pid,
                                    &reader->threads);
    }
    if (count < 0)
        return count;
    reader->thread_count = (size_t)count;
    free(TAKE_PTR(reader->os_threads));
    reader->os_thread_count = threads_list(reader->process, &reader->os_threads);
    if (reader->os_thread_count < 0)
        return reader->os_thread_count;
    int error = slots_match(reader);
    reader->threads_outdated = error != 0;
    reader->generation++;
    return error ? error : count;
}

/* Objects that were mapped since are learnt of when an address lies in none that is known. */
static int maps_refresh(struct stack_reader *reader)
{
    struct maps fresh, old = reader->maps;
    if (maps_read(reader->process->proc_fd, &fresh))
        return 0;
    reader->maps_outdated = false;
    reader->maps = fresh; /* the borrowers keep the address, not what stands there */
    int error = unwinder_libunwind.set_maps(reader->unwind, &reader->maps);
    if (!error)
        error = native_symbols_set_maps(reader->symbols, &reader->maps);
    maps_done(&old);
    return error;
}

/* Who runs on is looked at by the read that the round begins with: a call less. */
static struct view *ahead_choose(const struct stack_reader *reader)
{
    return reader->runner < reader->slot_count ? reader->slots[reader->runner].view : NULL;
}

int stack_reader_begin(struct stack_reader *reader)
{
    arena_empty(&reader->arena);
    reader->approaches = 0;
    int changed = python_threads_changed(reader->python, ahead_choose(reader));
    if (changed < 0)
        return changed;
    reader->threads_outdated = reader->threads_outdated || changed;
    return reader->threads_outdated || reader->maps_outdated;
}

int stack_reader_renew(struct stack_reader *reader)
{
    int error = reader->maps_outdated ? maps_refresh(reader) : 0;
    if (error)
        return error;
    return reader->threads_outdated ? stack_reader_list(reader) : (int)reader->thread_count;
}

uint64_t stack_reader_generation(const struct stack_reader *reader)
{
    return reader->generation;
}

const char *stack_reader_thread_name(const struct stack_reader *reader, size_t index)
{
    const struct thread_slot *slot = &reader->slots[index];
    if (reader->threads[index].name)
        return reader->threads[index].name;
    return slot->name ? slot->name : *slot->comm ? slot->comm : NULL;
}

void stack_reader_describe(const struct stack_reader *reader, size_t index,
                           struct thread_event *ret)
{
    const struct py_thread *thread = &reader->threads[index];
    *ret = (struct thread_event){
        .tid = reader->slots[index].tid,
        .ident = thread->ident,
        .name = stack_reader_thread_name(reader, index),
        .interpreter = thread->interpreter_id,
    };
}

/* A thread that moved under the read which the round began with need not be asked what it does. A
 * kernel without the account does not even say that it is there. */
static bool is_met_running(const struct stack_reader *reader, size_t index)
{
    const struct thread_slot *slot = &reader->slots[index];
    return slot->probe.account_fd >= 0 && !reader->threads[index].shares_id &&
           python_ran_ahead(reader->python, slot->view);
}

int stack_reader_account(struct stack_reader *reader, size_t index, struct wait_state *ret)
{
    struct thread_slot *slot = &reader->slots[index];
    if (!slot->probe_open)
        return -ENOENT;
    int error = is_met_running(reader, index) ? thread_probe_running(&slot->probe, &slot->wait)
                                              : thread_probe_read(&slot->probe, &slot->wait);
    slot->accounted = error == 0;
    if (!error)
        *ret = slot->wait;
    else
        reader->threads_outdated = true;
    return error;
}

/* An interpreter that ends forgets its threads' names before they end. */
void stack_reader_name_threads(struct stack_reader *reader)
{
    python_name_threads(reader->python);
    for (size_t i = 0; i < reader->thread_count && i < reader->slot_count; i++) {
        const char *name = reader->threads[i].name, *known = reader->slots[i].name;
        if (!name || (known && strcmp(name, known) == 0))
            continue;
        free(reader->slots[i].name);
        reader->slots[i].name = strdup(name);
    }
}
