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

void profile_free(struct profile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->process_index.count; i++)
        process_done(&profile->processes[i]);
    for (size_t i = 0; i < profile->thread_index.count; i++) {
        free(profile->threads[i].name);
        free(profile->threads[i].stack);
        free(profile->threads[i].nodes);
    }
    key_index_done(&profile->process_index);
    key_index_done(&profile->thread_index);
    stack_table_done(&profile->combined);
    stack_table_done(&profile->shown);
    stack_times_done(&profile->times);
    places_done(&profile->places);
    memory_done(&profile->memory);
    free(profile->processes);
    free(profile->threads);
    free(profile->runs);
    free(profile->notes);
    free(profile);
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
    const struct naming naming =
        process < 0 ? (struct naming){ 0 } : profile->processes[process].naming;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].kind != FRAME_PYTHON)
            continue;
        int64_t number = places_find(&profile->places, &frames[i], &naming);
        if (number < 0 || place_at(profile, (uint32_t)number)->is_join)
            return false;
        if (place_at(profile, (uint32_t)number)->line_tally != NOTHING)
            return true;
    }
    return false;
}

/* Whose parent is none of them. A shell is told of after what it starts. */
static size_t root_find(const struct profile *profile)
{
    for (size_t i = 0; i < profile->process_index.count; i++) {
        struct key parent = { { (uint64_t)profile->processes[i].ppid } };
        if (key_index_find(&profile->process_index, parent) < 0)
            return i;
    }
    return 0;
}

bool profile_find_first(const struct profile *profile, struct profile_first *ret)
{
    static const char *const none[] = { NULL };
    if (!profile->process_index.count)
        return false;
    const struct process_tally *process = &profile->processes[root_find(profile)];
    *ret = (struct profile_first){
        .argv = process->argv.items ? (const char *const *)process->argv.items : none,
        .cwd = process->naming.cwd,
        .module = profile->module,
        .is_python = process->python,
    };
    return true;
}

void profile_set_program(struct profile *profile, const char *program, const char *entrypoint_dir,
                         const char *const *args)
{
    profile->program = places_text(&profile->places, program);
    profile->settings.entrypoint_dir = places_text(&profile->places, entrypoint_dir);
    profile->settings.args = args;
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
