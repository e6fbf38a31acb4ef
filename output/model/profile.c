#include "output/model/profile.h"

#include "output/model/array.h"
#include "output/model/profile_state.h"

#include <string.h>

int profile_new(const struct profile_settings *settings, struct profile **ret)
{
    struct profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return -ENOMEM;
    profile->settings = *settings;
    memory_init(&profile->memory);
    if (places_init(&profile->places, &profile->settings)) {
        free(profile);
        return -ENOMEM;
    }
    *ret = profile;
    return 0;
}

static void process_done(struct process_tally *process)
{
    free(process->argv.items);
    process_memory_free(process->memory);
}

void profile_free(struct profile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->process_index.count; i++)
        process_done(&profile->processes[i]);
    for (size_t i = 0; i < profile->thread_index.count; i++) {
        free(profile->threads[i].stack);
        free(profile->threads[i].nodes);
    }
    key_index_done(&profile->process_index);
    key_index_done(&profile->thread_index);
    stack_table_done(&profile->combined);
    stack_table_done(&profile->shown);
    places_done(&profile->places);
    memory_done(&profile->memory);
    free(profile->processes);
    free(profile->threads);
    free(profile->runs);
    free(profile->notes);
    free(profile);
}

/* ---- processes and threads ---- */

int64_t process_find(struct profile *profile, pid_t pid, bool begins)
{
    struct key key = { { (uint64_t)pid } };
    int64_t number = -ENOENT;
    for (int64_t found; (found = key_index_find(&profile->process_index, key)) >= 0; key.part[1]++)
        number = found;
    if (number >= 0 && !(begins && profile->processes[number].end_s > 0))
        return number;
    if (ARRAY_GROW(profile->processes, profile->process_index.count, profile->process_room))
        return -ENOMEM;
    number = key_index_add(&profile->process_index, key);
    if (number >= 0)
        profile->processes[number] = (struct process_tally){
            .pid = pid,
            .rank = -1,
            .exit_status = -1,
            .main_thread = NOTHING,
        };
    return number;
}

static int argv_set(struct profile *profile, struct process_tally *process, const char *const *argv)
{
    size_t count = 0;
    while (argv && argv[count])
        count++;
    const char **items = calloc(count + 1, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i] = places_text(&profile->places, argv[i]);
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
    process->cwd = places_text(&profile->places, event->cwd);
    process->note = places_text(&profile->places, event->note);
    process->start_s = event->start_s;
    process->end_s = event->end_s;
    process->cpu_s = event->cpu_s;
    if (event->peak_rss_bytes > process->peak_rss_bytes)
        process->peak_rss_bytes = event->peak_rss_bytes;
    error = event->end_s > 0 ? memory_end(profile, (uint32_t)number) : 0;
    return error ? error : argv_set(profile, process, event->argv);
}

int profile_set_sampling(struct profile *profile, const struct sampling_event *sampling)
{
    struct profile_tap *tap = profile->settings.tap;
    profile->sampling = *sampling;
    profile->has_sampling = true;
    return tap ? tap->sampling(tap, sampling) : 0;
}

void profile_mute(struct profile *profile, bool muted)
{
    profile->is_muted = muted;
}

int profile_add_note(struct profile *profile, const char *note)
{
    const char *text = places_text(&profile->places, note);
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i] == text)
            return 0;
    if (ARRAY_GROW(profile->notes, profile->note_count, profile->note_room))
        return -ENOMEM;
    profile->notes[profile->note_count++] = text;
    return 0;
}

bool profile_takes_idle(struct profile *profile, pid_t pid, const struct frame_event *frames,
                        size_t count)
{
    int64_t process = process_find(profile, pid, false);
    const char *cwd = process < 0 ? NULL : profile->processes[process].cwd;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].kind != FRAME_PYTHON)
            continue;
        int64_t number = places_find(&profile->places, &frames[i], cwd);
        if (number < 0 || place_at(profile, (uint32_t)number)->is_join)
            return false;
        if (place_at(profile, (uint32_t)number)->line_tally != NOTHING)
            return true;
    }
    return false;
}

void profile_look(const struct profile *profile, struct profile_glance *ret)
{
    const struct tally *hottest = NULL;
    for (size_t i = 0; i < profile->places.tally_index.count; i++) {
        const struct tally *tally = &profile->places.tallies[i];
        if (!tally->name && places_show(&profile->places, tally) &&
            tally_base_ns(tally) > (hottest ? tally_base_ns(hottest) : 0))
            hottest = tally;
    }
    double base_ns =
        (double)(profile->python_ns + profile->native_ns + profile->kernel_ns + profile->idle_ns);
    *ret = (struct profile_glance){ .base_s = base_ns / 1e9 };
    if (!hottest)
        return;
    ret->hottest_file = profile->places.files[hottest->file].path;
    ret->hottest_line = hottest->line;
    ret->hottest_percent = 100 * (double)tally_base_ns(hottest) / base_ns;
}
