#include "sampler/loop/script.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/quiet.h"
#include "sampler/loop/stack_reader.h"
#include "sampler/target/threads.h"

#include <string.h>
#include <time.h>

/* Spelled so that nobody else's is like it. */
#define SCRIPT_FOLDER "/proc/self/./fd/"

enum {
    PATH_SIZE = 64,
    ALONE_NS = 10000000, /* who comes by does so in that time, while all others stand */
    ASKED_TIMES = 5,
    BEGUN_MS = 30,
    END_MS = 5000,
    LOOK_NS = 100000,
    WATCH_NS = 20000000,
    IDLE_NS = 500000, /* who ran for less meanwhile sleeps */
    THREADS_MOST = 256,
    TRIES = 100, /* at a process of which a thread cannot stand still just now */
    GAP_NS = 10000000,
    PENDING = 1,
};

struct script_asker {
    struct process *process;
    struct stack_reader *reader;
    struct thread_places *places;
    struct py_thread asked;
    struct stood stood;
};

enum answer { ANSWER_NONE, ANSWER_BEGUN, ANSWER_ENDED };

/* ---- whom to ask ---- */

static int threads_learn(struct script_asker *asker, const struct py_thread **ret)
{
    return python_list_threads(asker->reader->python, (uint64_t)asker->process->inner_pid, ret);
}

int script_asker_open(struct process *process, struct script_asker **ret)
{
    const struct stack_options options = { .nonblocking = true };
    const struct py_thread *threads;
    struct py_script_place place;
    struct failure ignored;
    struct script_asker *asker = calloc(1, sizeof *asker);
    if (!asker)
        return -ENOMEM;
    asker->process = process;
    int error = stack_reader_open(process, &options, &asker->reader, &ignored);
    if (!error)
        error = thread_places_open(process, &asker->places);
    int count = error ? error : threads_learn(asker, &threads);
    if (!error)
        error = count > 0 ? python_script_place(asker->reader->python, threads, &place) : -ENOENT;
    if (error) {
        script_asker_close(asker);
        return error;
    }
    *ret = asker;
    return 0;
}

void script_asker_close(struct script_asker *asker)
{
    if (!asker)
        return;
    stack_reader_close(asker->reader);
    thread_places_close(asker->places);
    free(asker);
}

static void runs_read(const struct process *process, const struct os_thread *threads, int count,
                      uint64_t *run_ns)
{
    for (int i = 0; i < count; i++)
        if (thread_read_run(process, threads[i].tid, &run_ns[i]))
            run_ns[i] = 0;
}

/* Who runs more than others for a while, that is longer than a tick of the kernel's; 0: nobody. One
 * that we have just let go of runs, too, but goes back to its sleep. */
static uint64_t runner_find(const struct process *process)
{
    const struct timespec watch = { .tv_nsec = WATCH_NS };
    AUTO_FREE struct os_thread *threads = NULL;
    int count = threads_list(process, &threads);
    AUTO_FREE uint64_t *run_ns = count > 0 ? calloc((size_t)count * 2, sizeof *run_ns) : NULL;
    uint64_t most_ns = IDLE_NS, runner = 0;
    if (!run_ns)
        return 0;
    runs_read(process, threads, count, run_ns);
    nanosleep(&watch, NULL);
    runs_read(process, threads, count, run_ns + count);
    for (int i = 0; i < count; i++)
        if (run_ns[count + i] > run_ns[i] + most_ns) {
            most_ns = run_ns[count + i] - run_ns[i];
            runner = (uint64_t)threads[i].inner_tid;
        }
    return runner;
}

/* One that sleeps does not come by, or because a signal wakes it up: what the handler raises then
 * would be the script's. */
static int place_choose(struct script_asker *asker, uint64_t runner, struct py_script_place *ret)
{
    const struct py_thread *threads;
    int count = threads_learn(asker, &threads), chosen = -1;
    for (int i = 0; i < count; i++) {
        if (threads[i].interpreter_id != 0)
            continue;
        if (threads[i].native_id == runner)
            chosen = i;
    }
    if (chosen < 0)
        return count < 0 ? count : -ENOENT;
    asker->asked = threads[chosen];
    int error = python_script_place(asker->reader->python, &asker->asked, ret);
    return !error && ret->is_watched ? -ENOTSUP : error;
}

/* ---- what is asked ---- */

static int pending_read(struct script_asker *asker, const struct py_script_place *place,
                        int32_t *ret)
{
    return remote_read(&asker->process->memory, place->pending, ret, sizeof *ret);
}

/* Who is asked to let others have the GIL would wait in the middle of the script until one of them
 * has it, and they stand. They ask again when they run. */
static int place_fill(struct script_asker *asker, const struct stillness *still,
                      const struct py_script_place *place, const char *path)
{
    const int32_t pending = PENDING;
    int32_t before;
    uint64_t breaker;
    int error = pending_read(asker, place, &before);
    if (!error && before)
        error = -EBUSY;
    if (!error)
        error = remote_read(&asker->process->memory, place->breaker, &breaker, sizeof breaker);
    if (!error)
        error = stillness_write(still, place->path, path, PATH_SIZE);
    if (!error)
        error = stillness_write(still, place->pending, &pending, sizeof pending);
    if (error)
        return error;
    breaker = (breaker & ~place->yields) | place->bit;
    return stillness_write(still, place->breaker, &breaker, sizeof breaker);
}

static bool is_ours(struct script_asker *asker, const struct py_script_place *place)
{
    char path[PATH_SIZE] = "";
    int32_t pending;
    return pending_read(asker, place, &pending) == 0 && pending == PENDING &&
           remote_read(&asker->process->memory, place->path, path, sizeof path) == 0 &&
           strncmp(path, SCRIPT_FOLDER, strlen(SCRIPT_FOLDER)) == 0;
}

/* The bit, too, where no other can have asked for the same: one that is attached goes on with it as
 * if nothing had been. */
static int place_clear(struct script_asker *asker, const struct stillness *still,
                       const struct py_script_place *place)
{
    const int32_t none = 0;
    const char empty[PATH_SIZE] = "";
    uint64_t breaker;
    int error = stillness_write(still, place->pending, &none, sizeof none);
    if (!error)
        error = stillness_write(still, place->path, empty, sizeof empty);
    if (error || place->is_attached)
        return error;
    error = remote_read(&asker->process->memory, place->breaker, &breaker, sizeof breaker);
    breaker &= ~place->bit;
    return error ? error : stillness_write(still, place->breaker, &breaker, sizeof breaker);
}

/* How many of ours there are, taken back where the process stands still (else NULL). */
static int places_clear(struct script_asker *asker, const struct stillness *still)
{
    const struct py_thread *threads;
    struct py_script_place place;
    int count = threads_learn(asker, &threads), found = 0, error = 0;
    for (int i = 0; i < count && !error; i++) {
        if (python_script_place(asker->reader->python, &threads[i], &place) ||
            !is_ours(asker, &place))
            continue;
        found++;
        error = still ? place_clear(asker, still, &place) : 0;
    }
    return count < 0 ? count : error ? error : found;
}

int script_withdraw(struct script_asker *asker)
{
    struct stillness still;
    int found = places_clear(asker, NULL);
    for (int i = 0; i < TRIES && found; i++) {
        const struct timespec gap = { .tv_nsec = GAP_NS };
        found = stillness_begin(asker->process, THREADS_MOST, &still);
        if (!found) {
            found = places_clear(asker, &still);
            stillness_end(&still);
        }
        if (found >= 0 || found == -ESRCH)
            break;
        nanosleep(&gap, NULL);
    }
    return found;
}

/* ---- how it goes ---- */

/* It closes its file, last of all. */
static bool is_ended(const struct script_asker *asker, int number)
{
    static const char name[] = "/memfd:" SCRIPT_FILE_NAME " ";
    char path[PATH_SIZE], target[PATH_SIZE];
    snprintf(path, sizeof path, "fd/%d", number);
    ssize_t length = readlinkat(asker->process->proc_fd, path, target, sizeof target - 1);
    return length < (ssize_t)sizeof name || strncmp(target, name, sizeof name - 1) != 0;
}

static bool end_await(const struct script_asker *asker, int number, unsigned patience_ms)
{
    const struct timespec look = { .tv_nsec = LOOK_NS };
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + patience_ms * (uint64_t)1000000;
    while (!is_ended(asker, number)) {
        if (clock_ns(CLOCK_MONOTONIC) > until_ns)
            return false;
        nanosleep(&look, NULL);
    }
    return true;
}

/* ---- asking ---- */

static struct pause *asked_pause(const struct script_asker *asker, const struct stillness *still)
{
    AUTO_FREE struct os_thread *threads = NULL;
    int count = threads_list(asker->process, &threads);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < still->count; j++)
            if ((uint64_t)threads[i].inner_tid == asker->asked.native_id &&
                still->pauses[j].tid == threads[i].tid)
                return &still->pauses[j];
    return NULL;
}

/* It is in the middle of it, and may wait for somebody who is in the allocator. */
static enum answer begun_await(struct script_asker *asker, struct stillness *still,
                               struct pause *pause, int number)
{
    quiet_loosen(asker->places, still);
    if (pause)
        stillness_resume(still, pause);
    return end_await(asker, number, BEGUN_MS) ? ANSWER_ENDED : ANSWER_BEGUN;
}

/*
 * It alone runs on. What it is asked for takes the loader's lock while it has the GIL: somebody
 * who has the lock and waits for the GIL would wait for ever, and so would it. When it has not come
 * by in time what was asked is taken back before anybody else runs.
 */
static enum answer alone_run(struct script_asker *asker, struct stillness *still, int number)
{
    const struct timespec look = { .tv_nsec = LOOK_NS };
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ALONE_NS;
    struct pause *pause = asked_pause(asker, still);
    pid_t tid = pause ? pause->tid : 0;
    if (pause)
        stillness_resume(still, pause);
    while (pause && !is_ended(asker, number) && clock_ns(CLOCK_MONOTONIC) < until_ns)
        nanosleep(&look, NULL);
    if (is_ended(asker, number))
        return ANSWER_ENDED;
    if (pause && thread_pause(tid, pause) == -EAGAIN)
        return ANSWER_BEGUN;
    if (places_clear(asker, still) > 0)
        return ANSWER_NONE;
    return begun_await(asker, still, pause, number);
}

static int script_ask_still(struct script_asker *asker, struct stillness *still, uint64_t runner,
                            int number)
{
    struct py_script_place place;
    char path[PATH_SIZE] = "";
    snprintf(path, sizeof path, SCRIPT_FOLDER "%d", number);
    int error = place_choose(asker, runner, &place);
    if (!error)
        error = place_fill(asker, still, &place, path);
    return error ? error : (int)alone_run(asker, still, number);
}

/* An answer, or negative. */
static int script_ask(struct script_asker *asker, int number)
{
    struct stillness still;
    const char *obstacle;
    pid_t in_the_way;
    uint64_t runner = runner_find(asker->process);
    int error = runner ? thread_places_learn(asker->places) : -ENOENT;
    if (!error)
        error = quiet_begin(asker->process, asker->places, &still, &obstacle, &in_the_way);
    if (error)
        return error;
    int answer = script_ask_still(asker, &still, runner, number);
    stillness_end(&still);
    stood_add(&asker->stood, &still.stood);
    return answer;
}

int script_run(struct script_asker *asker, int number)
{
    int answer = -EAGAIN;
    for (int i = 0; i < ASKED_TIMES && (answer == -EAGAIN || answer == ANSWER_NONE); i++)
        answer = script_ask(asker, number);
    if (answer == ANSWER_ENDED)
        return 0;
    if (answer != ANSWER_BEGUN)
        return answer < 0 ? answer : -ETIMEDOUT;
    if (script_withdraw(asker) > 0)
        return -ETIMEDOUT;
    if (!python_has_thread(asker->reader->python, &asker->asked)) /* nor will it end */
        return is_ended(asker, number) ? 0 : -ETIMEDOUT;
    return end_await(asker, number, END_MS) ? 0 : -EINPROGRESS;
}

const struct stood *script_stood(const struct script_asker *asker)
{
    return &asker->stood;
}
