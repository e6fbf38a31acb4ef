/* The processes of a profile. A program that makes one for each request makes any number of them:
 * once there are PROCESSES_KEPT, of those that have ended the half that did so first goes, save the
 * first of all. What they did stays with their lines and stacks, and their CPU seconds are told in
 * a sum; only who they were is lost. */
#define _GNU_SOURCE 1 /* stpcpy */
#include "output/model/array.h"
#include "output/model/profile_state.h"
#include "output/model/scope.h"

#include <string.h>

void process_done(struct process_tally *process)
{
    free(process->argv.items);
    process_memory_free(process->memory);
}

double process_cpu_s(const struct process_tally *process)
{
    return process->cpu_s > 0 ? process->cpu_s : (double)process->cpu_ns / 1e9;
}

/* ---- room ---- */

struct end {
    double end_s;
    uint32_t number;
};

static int end_is_later(const void *a, const void *b)
{
    const struct end *left = a, *right = b;
    if (left->end_s != right->end_s)
        return left->end_s < right->end_s ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

/* What ended has no live blocks. The first to be told of may be the program's. */
static size_t ends_find(const struct profile *profile, struct end *ret)
{
    size_t count = 0;
    for (uint32_t i = 1; i < profile->process_index.count; i++)
        if (profile->processes[i].end_s > 0)
            ret[count++] = (struct end){ profile->processes[i].end_s, i };
    qsort(ret, count, sizeof *ret, end_is_later);
    return count;
}

/* `moved[old]`: the new number, or NOTHING. */
static void moves_find(size_t count, const struct end *ends, size_t gone, uint32_t *moved)
{
    uint32_t next = 0;
    memset(moved, 0, count * sizeof *moved);
    for (size_t i = 0; i < gone; i++)
        moved[ends[i].number] = NOTHING;
    for (size_t i = 0; i < count; i++)
        if (moved[i] != NOTHING)
            moved[i] = next++;
}

static int processes_move(struct profile *profile, const uint32_t *moved)
{
    size_t count = profile->process_index.count;
    int64_t number = 0;
    key_index_done(&profile->process_index);
    for (size_t i = 0; i < count && number >= 0; i++) {
        struct process_tally process = profile->processes[i];
        struct key key = { { (uint64_t)process.pid } };
        if (moved[i] == NOTHING) {
            profile->dropped_processes++;
            profile->dropped_processes_s += process_cpu_s(&process);
            process_done(&process);
            continue;
        }
        profile->processes[moved[i]] = process;
        while (key_index_find(&profile->process_index, key) >= 0)
            key.part[1]++;
        number = key_index_add(&profile->process_index, key);
    }
    return number < 0 ? (int)number : 0;
}

static int processes_drop(struct profile *profile, const uint32_t *moved)
{
    size_t count = profile->process_index.count;
    int error = 0;
    for (size_t i = 0; i < profile->places.tally_index.count; i++)
        tally_move_processes(&profile->places.tallies[i], moved, count);
    error = profile_threads_leave(profile, moved);
    return error ? error : processes_move(profile, moved);
}

static int ended_drop(struct profile *profile)
{
    size_t count = profile->process_index.count;
    struct end *ends = calloc(count, sizeof *ends);
    uint32_t *moved = calloc(count, sizeof *moved);
    int error = ends && moved ? 0 : -ENOMEM;
    size_t ended = error ? 0 : ends_find(profile, ends);
    if (ended > count / 2) {
        moves_find(count, ends, ended / 2, moved);
        error = processes_drop(profile, moved);
    }
    free(ends);
    free(moved);
    return error;
}

/* For one more: who is alive stays. */
static int room_make(struct profile *profile)
{
    size_t count = profile->process_index.count;
    if (count < PROCESSES_KEPT || count < profile->processes_most)
        return 0;
    int error = ended_drop(profile);
    count = profile->process_index.count;
    profile->processes_most = count < PROCESSES_KEPT ? PROCESSES_KEPT : 2 * count;
    return error;
}

/* ---- who they are ---- */

/* The last process that had this pid; the key of the next one is left in `ret`. */
static int64_t process_last(const struct profile *profile, pid_t pid, struct key *ret)
{
    int64_t number = -ENOENT;
    *ret = (struct key){ { (uint64_t)pid } };
    for (int64_t found; (found = key_index_find(&profile->process_index, *ret)) >= 0;
         ret->part[1]++)
        number = found;
    return number;
}

bool profile_knows(const struct profile *profile, pid_t pid)
{
    struct key next;
    int64_t number = process_last(profile, pid, &next);
    return number >= 0 && profile->processes[number].end_s <= 0;
}

int64_t process_find(struct profile *profile, pid_t pid, bool begins)
{
    struct key next;
    int64_t number = process_last(profile, pid, &next);
    if (number >= 0 && !(begins && profile->processes[number].end_s > 0))
        return number;
    int error = room_make(profile);
    if (error ||
        ARRAY_GROW(profile->processes, profile->process_index.count, profile->process_room))
        return -ENOMEM;
    process_last(profile, pid, &next);
    number = key_index_add(&profile->process_index, next);
    if (number >= 0)
        profile->processes[number] = (struct process_tally){
            .pid = pid,
            .rank = -1,
            .exit_status = -1,
            .main_thread = NOTHING,
            /* children begin where the first is, until it is told where they are */
            .naming.cwd = number ? profile->processes[0].naming.cwd : NULL,
        };
    return number;
}

/* In one piece: words like numbers and names of files would add up, were they kept for good. */
static int argv_set(struct process_tally *process, const char *const *argv)
{
    size_t count = 0, size = 0;
    for (; argv && argv[count]; count++)
        size += strlen(argv[count]) + 1;
    const char **items = malloc((count + 1) * sizeof *items + size);
    if (!items)
        return -ENOMEM;
    char *text = (char *)(items + count + 1);
    for (size_t i = 0; i < count; i++) {
        items[i] = text;
        text = stpcpy(text, argv[i]) + 1;
    }
    items[count] = NULL;
    free(process->argv.items);
    process->argv = (struct text_list){ items, count };
    return 0;
}

int profile_add_process(struct profile *profile, const struct process_event *event)
{
    struct profile_tap *tap = profile->settings.tap;
    int error = tap ? tap->process(tap, event) : 0;
    if (error)
        return error;
    int64_t number = process_find(profile, event->pid, event->end_s == 0);
    if (number < 0)
        return (int)number;
    struct process_tally *process = &profile->processes[number];
    process->ppid = event->ppid;
    process->rank = event->rank;
    process->exit_status = event->exit_status;
    process->executable = places_text(&profile->places, event->executable);
    process->python = places_text(&profile->places, event->python);
    process->naming.cwd = places_text(&profile->places, event->cwd) ?: process->naming.cwd;
    process->naming.string = places_text(&profile->places, scope_string_of(event->argv));
    process->note = places_text(&profile->places, event->note);
    process->start_s = event->start_s;
    process->end_s = event->end_s;
    process->cpu_s = event->cpu_s;
    if (event->peak_rss_bytes > process->peak_rss_bytes)
        process->peak_rss_bytes = event->peak_rss_bytes;
    if (event->footprint.pss_bytes >= process->footprint.pss_bytes) {
        process->footprint = event->footprint;
        process->grown_bytes = event->grown_bytes;
    }
    error = event->end_s > 0 ? memory_end(profile, (uint32_t)number) : 0;
    return error ? error : argv_set(process, event->argv);
}
