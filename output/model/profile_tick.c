/* A tick is charged: each sample to the innermost shown line and to its callers, idle time to who
 * waits. */
#include "output/model/array.h"
#include "output/model/profile_state.h"

#include <string.h>

/* ---- the stack of a sample ---- */

/* The innermost shown place, and whether the thread joins below it. */
static void thread_settle(const struct profile *profile, struct thread_tally *thread)
{
    thread->self = thread->innermost = NOTHING;
    thread->joins = false;
    for (size_t i = thread->depth; i-- > 0 && thread->self == NOTHING;) {
        const struct place *place = place_at(profile, thread->stack[i]);
        if (place->kind != FRAME_PYTHON)
            continue;
        if (thread->innermost == NOTHING)
            thread->innermost = thread->stack[i];
        thread->joins |= place->is_join;
        if (place->line_tally != NOTHING)
            thread->self = thread->stack[i];
    }
}

/* Since the first @profile less is shown, also of threads that have not moved. */
static void threads_settle(struct profile *profile)
{
    if (profile->settled_restricted == profile->places.is_restricted)
        return;
    profile->settled_restricted = profile->places.is_restricted;
    profile->shown.generation++;
    for (size_t i = 0; i < profile->thread_index.count; i++)
        thread_settle(profile, &profile->threads[i]);
}

/* What `python -m` runs stands in these two, whatever they have imported before. */
static const char *module_find(const struct profile *profile, const struct thread_tally *thread)
{
    static const char *const callers[] = { "_run_module_as_main", "_run_code" };
    size_t depth = 0;
    for (size_t i = 0; i < thread->depth; i++) {
        const struct place *place = place_at(profile, thread->stack[i]);
        if (place->kind != FRAME_PYTHON)
            continue;
        const char *wanted = depth < 2 ? callers[depth] : "<module>";
        if (!place->name || strcmp(place->name, wanted) != 0)
            return NULL;
        if (depth++ == 2)
            return profile->places.files[place->path].path;
    }
    return NULL;
}

/* Frames come innermost first and are kept outermost first: what did not change stands at the
 * beginning. */
static int stack_set(struct profile *profile, struct thread_tally *thread,
                     const struct sample_event *sample)
{
    struct naming naming = profile->processes[thread->process].naming;
    size_t same = sample->frame_count < thread->depth ? sample->frame_count : thread->depth;
    for (size_t i = 0; i < sample->frame_count; i++) {
        const struct frame_event *frame = &sample->frames[sample->frame_count - 1 - i];
        if (i >= thread->depth || !place_is(place_at(profile, thread->stack[i]), frame, &naming)) {
            same = i < same ? i : same;
            int64_t place = places_find(&profile->places, frame, &naming);
            if (place < 0 || ARRAY_GROW(thread->stack, i, thread->room))
                return -ENOMEM;
            thread->stack[i] = (uint32_t)place;
        }
        naming_enter(&naming, place_at(profile, thread->stack[i]));
    }
    bool differs = same < thread->depth || same < sample->frame_count;
    if (differs)
        thread->combined = STACK_NONE;
    thread->known = same < thread->known ? same : thread->known;
    thread->depth = sample->frame_count;
    if (differs && sample->is_main && thread->process == 0 && !profile->module)
        profile->module = module_find(profile, thread);
    thread_settle(profile, thread);
    threads_settle(profile);
    return 0;
}

/* Runs of stacks that go are no longer of any stack. */
static int combined_halve(struct profile *profile)
{
    uint32_t *moved;
    int error = stack_table_halve(&profile->combined, &moved);
    if (error)
        return error;
    for (size_t i = 0; i < profile->run_count; i++)
        if (profile->runs[i].stack != STACK_NONE)
            profile->runs[i].stack = moved[profile->runs[i].stack];
    error = stack_times_move(&profile->times, moved);
    free(moved);
    return error;
}

static int shown_halve(struct profile *profile)
{
    uint32_t *moved;
    int error = stack_table_halve(&profile->shown, &moved);
    if (!error)
        free(moved);
    return error;
}

/* Only what changed since the thread's last stack is looked up. */
static int64_t combined_look(struct stack_table *table, struct thread_tally *thread)
{
    if (thread->depth > STACK_DEPTH_MAX) {
        thread->known = 0;
        return stack_table_find(table, thread->stack, thread->depth);
    }
    while (thread->node_room < thread->depth)
        if (ARRAY_GROW(thread->nodes, thread->node_room, thread->node_room))
            return -ENOMEM;
    int64_t stack =
        stack_table_find_on(table, thread->stack, thread->depth, thread->nodes, thread->known);
    thread->known = stack < 0 ? 0 : thread->depth;
    return stack;
}

static int combined_find(struct profile *profile, struct thread_tally *thread)
{
    struct stack_table *table = &profile->combined;
    if (thread->combined != STACK_NONE && thread->generation == table->generation)
        return 0;
    int error = stack_table_is_full(table) ? combined_halve(profile) : 0;
    if (thread->generation != table->generation)
        thread->known = 0;
    int64_t stack = error ? error : combined_look(table, thread);
    if (stack < 0)
        return (int)stack;
    thread->combined = (uint32_t)stack;
    thread->generation = table->generation;
    return 0;
}

/* The same stack with shown lines alone. Deeper than a stack may be, only its outer part. */
static int64_t shown_look(struct profile *profile, const struct thread_tally *thread)
{
    uint32_t places[STACK_DEPTH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < thread->depth && count < STACK_DEPTH_MAX; i++)
        if (place_at(profile, thread->stack[i])->line_tally != NOTHING)
            places[count++] = thread->stack[i];
    int error = stack_table_is_full(&profile->shown) ? shown_halve(profile) : 0;
    return error ? error : stack_table_find(&profile->shown, places, count);
}

/* Each stitched stack remembers which one it is without what is hidden. */
static int64_t shown_find(struct profile *profile, const struct thread_tally *thread)
{
    struct stack_node *stitched = &profile->combined.nodes[thread->combined];
    if (stitched->twin != STACK_NONE && stitched->twin_generation == profile->shown.generation)
        return stitched->twin;
    int64_t shown = shown_look(profile, thread);
    if (shown >= 0 && thread->depth <= STACK_DEPTH_MAX) {
        stitched->twin = (uint32_t)shown;
        stitched->twin_generation = profile->shown.generation;
    }
    return shown;
}

/* ---- charging ---- */

static void cumulative_add(struct profile *profile, uint32_t number, uint64_t ns)
{
    if (number == NOTHING)
        return;
    struct tally *tally = &profile->places.tallies[number];
    if (tally->stamp == profile->stamp)
        return;
    tally->stamp = profile->stamp;
    tally->cumulative_ns += ns;
}

static void callers_charge(struct profile *profile, const struct thread_tally *thread, uint64_t ns)
{
    profile->stamp++;
    for (size_t i = 0; i < thread->depth; i++) {
        const struct place *place = place_at(profile, thread->stack[i]);
        cumulative_add(profile, place->line_tally, ns);
        cumulative_add(profile, place->function_tally, ns);
    }
}

static void node_charge(struct stack_table *table, uint32_t number, const struct charge *charge,
                        uint64_t hits)
{
    if (number == STACK_ROOT) /* no frame at all, or none that is shown */
        return;
    struct stack_node *node = &table->nodes[number];
    node->hits += hits;
    node->python_ns += charge->python_ns;
    node->c_ns += charge->native_ns + charge->kernel_ns;
    node->base_ns += charge_base_ns(charge);
}

static int stacks_charge(struct profile *profile, const struct thread_tally *thread,
                         const struct charge *charge, uint64_t hits)
{
    int64_t shown = shown_find(profile, thread);
    if (shown < 0)
        return (int)shown;
    node_charge(&profile->combined, thread->combined, charge, hits);
    node_charge(&profile->shown, (uint32_t)shown, charge, hits);
    return 0;
}

static void hidden_charge(struct profile *profile, const struct thread_tally *thread, uint64_t ns)
{
    if (thread->innermost != NOTHING)
        profile->places.files[place_at(profile, thread->innermost)->path].hidden_ns += ns;
}

/* To the innermost shown line and its function; to all callers the time that is part of the base.
 */
static int thread_charge(struct profile *profile, struct thread_tally *thread,
                         const struct charge *charge, uint64_t hits)
{
    uint64_t base_ns = charge_base_ns(charge);
    if (thread->self == NOTHING) {
        hidden_charge(profile, thread, base_ns);
    } else {
        const struct place *self = place_at(profile, thread->self);
        struct tally *tallies = profile->places.tallies;
        if (tally_add(&tallies[self->line_tally], charge) ||
            (self->function_tally != NOTHING && tally_add(&tallies[self->function_tally], charge)))
            return -ENOMEM;
    }
    uint32_t number = (uint32_t)(thread - profile->threads);
    if (stack_times_add(&profile->times, thread->combined, number, charge, hits))
        return -ENOMEM;
    if (!hits && !base_ns)
        return 0;
    callers_charge(profile, thread, base_ns);
    return stacks_charge(profile, thread, charge, hits);
}

/* The innermost frame is the native function that ran. */
static int natives_charge(struct profile *profile, const struct thread_tally *thread, uint64_t ns)
{
    if (!ns || thread->self == NOTHING)
        return 0;
    const struct place *self = place_at(profile, thread->self);
    const struct place *leaf = place_at(profile, thread->stack[thread->depth - 1]);
    if (leaf->kind != FRAME_NATIVE)
        return 0;
    struct tally *tallies = profile->places.tallies;
    const char *symbol = leaf->name ?: "", *module = leaf->file ?: "";
    if (tally_add_native(&tallies[self->line_tally], symbol, module, ns))
        return -ENOMEM;
    return self->function_tally == NOTHING
               ? 0
               : tally_add_native(&tallies[self->function_tally], symbol, module, ns);
}

static int run_add(struct profile *profile, uint32_t number, uint64_t time_ns, uint64_t samples)
{
    struct thread_tally *thread = &profile->threads[number];
    if (!samples) /* told of without a look */
        return 0;
    struct stack_run *last = thread->run == NOTHING ? NULL : &profile->runs[thread->run];
    if (last && last->stack == thread->combined && samples <= UINT32_MAX - last->count) {
        last->count += (uint32_t)samples;
        return 0;
    }
    if (profile->run_count == RUNS_MAX) {
        profile->dropped_runs++;
        return 0;
    }
    if (ARRAY_GROW(profile->runs, profile->run_count, profile->run_room))
        return -ENOMEM;
    thread->run = (uint32_t)profile->run_count++;
    profile->runs[thread->run] = (struct stack_run){
        .thread = number,
        .time = (time_ns - profile->first_ns) / RUN_TIME_NS,
        .stack = thread->combined,
        .count = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX,
    };
    return 0;
}

static bool is_wait(enum thread_state state)
{
    return state >= THREAD_WAIT_GIL;
}

static void totals_add(struct profile *profile, struct thread_tally *thread,
                       const struct charge *charge)
{
    double seconds = (double)charge_base_ns(charge) / 1e9;
    profile->squares += seconds * seconds;
    profile->python_ns += charge->python_ns;
    profile->native_ns += charge->native_ns;
    profile->kernel_ns += charge->kernel_ns;
    profile->wait_ns[charge->wait_kind] += charge->wait_ns;
    thread->python_ns += charge->python_ns;
    thread->native_ns += charge->native_ns;
    thread->kernel_ns += charge->kernel_ns;
    thread->wait_ns[charge->wait_kind] += charge->wait_ns;
    profile->processes[thread->process].cpu_ns += charge_base_ns(charge);
}

/* Who is held on purpose, by a signal or a debugger, would not run if there were a core for it. */
static enum thread_state wait_of(enum thread_state state)
{
    if (state == THREAD_STOPPED)
        return THREAD_WAIT_OTHER;
    return is_wait(state) ? state : THREAD_WAIT_CPU;
}

static struct charge charge_of(const struct profile *profile, uint32_t process,
                               const struct sample_event *sample, double utilization)
{
    return (struct charge){
        .python_ns = sample->python_ns,
        .native_ns = sample->native_ns,
        .kernel_ns = sample->kernel_ns,
        .wait_ns = profile->settings.virtual_time ? 0 : sample->wait_ns,
        .wait_kind = wait_of(sample->state) - THREAD_WAIT_GIL,
        .samples = sample->samples,
        .utilization = utilization,
        .process = process,
    };
}

static int sample_add(struct profile *profile, const struct tick_event *tick, uint32_t process,
                      const struct sample_event *sample, double utilization)
{
    int64_t number = profile_thread_find(profile, process, sample);
    if (number < 0)
        return (int)number;
    struct thread_tally *thread = &profile->threads[number];
    thread->last_ns = tick->time_ns;
    int error = stack_set(profile, thread, sample);
    if (!error && thread->depth)
        error = combined_find(profile, thread);
    if (error)
        return error;
    struct charge charge = charge_of(profile, process, sample, utilization);
    totals_add(profile, thread, &charge);
    bool counts = charge_base_ns(&charge) || sample->state == THREAD_RUNNING;
    if (!thread->depth)
        return 0;
    error = thread_charge(profile, thread, &charge, counts ? sample->samples : 0);
    if (!error)
        error = natives_charge(profile, thread, sample->native_ns + sample->kernel_ns);
    bool met = sample->samples || !sample->wait_ns; /* not only what is told of before it moved */
    if (!error && sample->is_main && met && thread->self != NOTHING)
        error =
            tally_add_moment(&profile->places.tallies[place_at(profile, thread->self)->line_tally],
                             (double)tick->time_ns / 1e9);
    return error ? error : run_add(profile, (uint32_t)number, tick->time_ns, sample->samples);
}

/* ---- idle time ---- */

static int idle_charge(struct profile *profile, uint32_t number, uint64_t ns, uint64_t hits)
{
    struct thread_tally *thread = &profile->threads[number];
    struct charge charge = { .idle_ns = ns, .process = thread->process };
    double seconds = (double)ns / 1e9;
    profile->squares += seconds * seconds;
    int error = thread->depth ? combined_find(profile, thread) : 0;
    if (error || !thread->depth)
        return error;
    return thread_charge(profile, thread, &charge, hits ? hits : 1);
}

/* Of each shown line on which a thread of this tick waits, the first such thread. Their count. */
static size_t find_waiters(struct profile *profile, uint32_t process, const struct tick_event *tick,
                           uint32_t *ret_threads)
{
    size_t count = 0;
    profile->stamp++;
    for (size_t i = 0; i < tick->sample_count; i++) {
        const struct sample_event *sample = &tick->samples[i];
        int64_t number = key_index_find(&profile->thread_index,
                                        (struct key){ { process, (uint64_t)sample->tid } });
        if (sample->is_main || !is_wait(sample->state) || number < 0 ||
            profile->threads[number].self == NOTHING)
            continue;
        const struct place *self = place_at(profile, profile->threads[number].self);
        struct tally *line = &profile->places.tallies[self->line_tally];
        if (line->stamp != profile->stamp)
            ret_threads[count++] = (uint32_t)number;
        line->stamp = profile->stamp;
    }
    return count;
}

/* Of its samples those that are no looks, but tell of time, have none. */
static uint64_t main_samples(const struct tick_event *tick)
{
    uint64_t most = 0;
    bool any = false;
    for (size_t i = 0; i < tick->sample_count; i++)
        if (tick->samples[i].is_main) {
            any = true;
            most = tick->samples[i].samples > most ? tick->samples[i].samples : most;
        }
    return any ? most : 1;
}

/* Equal parts whose sum is the whole. */
static int idle_share_out(struct profile *profile, const uint32_t *threads, size_t count,
                          uint64_t idle_ns, uint64_t hits)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t part = idle_ns / count + (i < idle_ns % count);
        int error = idle_charge(profile, threads[i], part, hits);
        if (error)
            return error;
    }
    return 0;
}

/* To the line on which the main thread waits; where it only joins, or holds none, to those of the
 * others. */
static int idle_add(struct profile *profile, uint32_t process, const struct tick_event *tick)
{
    uint64_t idle_ns = tick->idle_ns, hits = main_samples(tick);
    uint32_t main_thread = profile->processes[process].main_thread;
    const struct thread_tally *main_tally =
        main_thread == NOTHING ? NULL : &profile->threads[main_thread];
    profile->idle_ns += idle_ns;
    threads_settle(profile);
    if (main_tally && main_tally->self != NOTHING && !main_tally->joins)
        return idle_charge(profile, main_thread, idle_ns, hits);
    uint32_t *waiters = calloc(tick->sample_count + 1, sizeof *waiters);
    if (!waiters)
        return -ENOMEM;
    size_t count = find_waiters(profile, process, tick, waiters);
    if (!count && main_tally)
        waiters[count++] = main_thread;
    int error = idle_share_out(profile, waiters, count, idle_ns, hits);
    free(waiters);
    return error;
}

/* How much of all cores the process kept busy in user code. */
static double find_utilization(const struct profile *profile, const struct tick_event *tick)
{
    double user_ns = 0;
    for (size_t i = 0; i < tick->sample_count; i++)
        user_ns += (double)(tick->samples[i].python_ns + tick->samples[i].native_ns);
    double most = (double)tick->wall_ns * (profile->settings.cpu_count ?: 1);
    return most <= 0 ? 0 : user_ns < most ? user_ns / most : 1;
}

int profile_add_tick(struct profile *profile, const struct tick_event *tick)
{
    struct profile_tap *tap = profile->settings.tap;
    if (profile->is_muted)
        return 0;
    int error = tap ? tap->tick(tap, tick) : 0;
    if (error)
        return error;
    int64_t number = process_find(profile, tick->pid, false);
    if (number < 0)
        return (int)number;
    uint32_t process = (uint32_t)number;
    if (!profile->has_ticks)
        profile->first_ns = tick->time_ns;
    profile->has_ticks = true;
    profile->last_ns = tick->time_ns;
    if (tick->rss_bytes > profile->processes[process].peak_rss_bytes)
        profile->processes[process].peak_rss_bytes = tick->rss_bytes;
    double utilization = find_utilization(profile, tick);
    for (size_t i = 0; i < tick->sample_count && !error; i++)
        error = sample_add(profile, tick, process, &tick->samples[i], utilization);
    if (!error && tick->idle_ns && !profile->settings.virtual_time)
        error = idle_add(profile, process, tick);
    return error;
}
