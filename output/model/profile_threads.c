/* The threads of a profile. A server that makes one for each request makes any number of them: once
 * there are THREADS_KEPT, the half of which nothing was heard for longest goes, save main threads.
 * What they did stays with their lines and stacks; only who they were is lost. */
#include "output/model/array.h"
#include "output/model/profile_state.h"

#include <string.h>

/* Of a living thread something is heard more often. */
static const uint64_t SILENCE_NS = 1000000000;

struct age {
    uint64_t last_ns;
    uint32_t number;
};

static int age_is_older(const void *a, const void *b)
{
    const struct age *left = a, *right = b;
    if (left->last_ns != right->last_ns)
        return left->last_ns < right->last_ns ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

/* `moved[old]`: the new number, or NOTHING. */
static int moves_find(const struct profile *profile, uint32_t *moved)
{
    size_t count = profile->thread_index.count;
    struct age *ages = calloc(count, sizeof *ages);
    uint32_t next = 0;
    if (!ages)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        ages[i] = (struct age){ profile->threads[i].last_ns, i };
    qsort(ages, count, sizeof *ages, age_is_older);
    for (size_t i = 0; i < count; i++)
        moved[ages[i].number] = i < count / 2 ? NOTHING : 0;
    for (size_t i = 0; i < profile->process_index.count; i++)
        if (profile->processes[i].main_thread != NOTHING)
            moved[profile->processes[i].main_thread] = 0;
    for (size_t i = 0; i < count; i++)
        if (moved[i] != NOTHING)
            moved[i] = next++;
    free(ages);
    return 0;
}

static int threads_move(struct profile *profile, const uint32_t *moved)
{
    size_t count = profile->thread_index.count;
    int64_t number = 0;
    key_index_done(&profile->thread_index);
    for (size_t i = 0; i < count && number >= 0; i++) {
        struct thread_tally thread = profile->threads[i];
        if (moved[i] == NOTHING) {
            free(thread.name);
            free(thread.stack);
            free(thread.nodes);
            profile->dropped_threads++;
            continue;
        }
        thread.run = NOTHING;
        profile->threads[moved[i]] = thread;
        number = key_index_add(&profile->thread_index,
                               (struct key){ { thread.process, (uint64_t)thread.tid } });
    }
    for (size_t i = 0; i < profile->process_index.count; i++) {
        uint32_t *main_thread = &profile->processes[i].main_thread;
        *main_thread = *main_thread == NOTHING ? NOTHING : moved[*main_thread];
    }
    return number < 0 ? (int)number : 0;
}

/* A thread's last run goes on where it went to. */
static void runs_move(struct profile *profile, const uint32_t *moved)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->run_count; i++) {
        struct stack_run run = profile->runs[i];
        uint32_t thread = moved[run.thread];
        if (thread == NOTHING)
            continue;
        run.thread = thread;
        profile->threads[thread].run = (uint32_t)kept;
        profile->runs[kept++] = run;
    }
    profile->dropped_runs += profile->run_count - kept;
    profile->run_count = kept;
}

static int threads_drop(struct profile *profile, const uint32_t *moved)
{
    int error = threads_move(profile, moved);
    if (error)
        return error;
    runs_move(profile, moved);
    return stack_times_move_threads(&profile->times, moved);
}

static int threads_halve(struct profile *profile)
{
    uint32_t *moved = calloc(profile->thread_index.count, sizeof *moved);
    int error = moved ? moves_find(profile, moved) : -ENOMEM;
    if (!error)
        error = threads_drop(profile, moved);
    free(moved);
    return error;
}

int profile_threads_leave(struct profile *profile, const uint32_t *processes)
{
    size_t count = profile->thread_index.count;
    uint32_t *moved = calloc(count + 1, sizeof *moved), next = 0;
    for (size_t i = 0; moved && i < count; i++) {
        struct thread_tally *thread = &profile->threads[i];
        bool goes = processes[thread->process] == NOTHING;
        moved[i] = goes ? NOTHING : next++;
        thread->process = processes[thread->process];
    }
    int error = moved ? threads_drop(profile, moved) : -ENOMEM;
    free(moved);
    return error;
}

/* Room for one more: threads that are alive stay. */
static int room_make(struct profile *profile)
{
    size_t count = profile->thread_index.count, silent = 0;
    if (count < THREADS_KEPT || count < profile->threads_most)
        return 0;
    for (size_t i = 0; i < count; i++)
        silent += profile->threads[i].last_ns + SILENCE_NS < profile->last_ns;
    int error = silent > count / 2 ? threads_halve(profile) : 0;
    count = profile->thread_index.count;
    profile->threads_most = count < THREADS_KEPT ? THREADS_KEPT : 2 * count;
    return error;
}

int64_t profile_thread_find(struct profile *profile, uint32_t process,
                            const struct sample_event *sample)
{
    struct key key = { { process, (uint64_t)sample->tid } };
    int64_t number = key_index_find(&profile->thread_index, key);
    int error = number < 0 ? room_make(profile) : 0;
    if (error || ARRAY_GROW(profile->threads, profile->thread_index.count, profile->thread_room))
        return -ENOMEM;
    size_t count = profile->thread_index.count;
    number = key_index_add(&profile->thread_index, key);
    if (number < 0)
        return number;
    struct thread_tally *thread = &profile->threads[number];
    if (number == (int64_t)count)
        *thread = (struct thread_tally){
            .process = process,
            .tid = sample->tid,
            .self = NOTHING,
            .innermost = NOTHING,
            .combined = STACK_NONE,
            .run = NOTHING,
        };
    thread->ident = sample->ident;
    if (sample->name && (!thread->name || strcmp(thread->name, sample->name) != 0)) {
        free(thread->name);
        thread->name = strdup(sample->name);
    }
    if (sample->is_main)
        profile->processes[process].main_thread = (uint32_t)number;
    return number;
}
