#include "sampler/loop/unseen.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/threads.h"

#include <string.h>

struct unseen {
    const struct process *process;
    bool began, looked;
    uint64_t base_ns, told_ns;
    struct unseen_thread *threads;
    size_t count, room;
};

int unseen_new(const struct process *process, struct unseen **ret)
{
    struct unseen *unseen = calloc(1, sizeof *unseen);
    if (!unseen)
        return -ENOMEM;
    unseen->process = process;
    *ret = unseen;
    return 0;
}

void unseen_free(struct unseen *unseen)
{
    if (!unseen)
        return;
    free(unseen->threads);
    free(unseen);
}

void unseen_account(struct unseen *unseen, uint64_t ran_ns)
{
    unseen->told_ns += ran_ns;
}

/* What the process used beyond what was told of, in its time with us; 0 when it is gone. */
static int64_t balance_read(struct unseen *unseen)
{
    uint64_t cpu_ns;
    if (cpu_clock_read(unseen->process->pid, &cpu_ns) < 0)
        return 0;
    if (!unseen->began)
        unseen->base_ns = cpu_ns - unseen->told_ns;
    unseen->began = true;
    return (int64_t)(cpu_ns - unseen->base_ns - unseen->told_ns);
}

uint64_t unseen_rest(struct unseen *unseen)
{
    int64_t balance_ns = balance_read(unseen);
    return balance_ns > 0 ? (uint64_t)balance_ns : 0;
}

uint64_t unseen_excess(struct unseen *unseen)
{
    int64_t balance_ns = balance_read(unseen);
    return balance_ns < 0 ? (uint64_t)-balance_ns : 0;
}

static struct unseen_thread *thread_find(struct unseen *unseen, pid_t tid)
{
    for (size_t i = 0; i < unseen->count; i++)
        if (unseen->threads[i].tid == tid)
            return &unseen->threads[i];
    return NULL;
}

uint64_t unseen_take(struct unseen *unseen, pid_t tid)
{
    struct unseen_thread *thread = thread_find(unseen, tid);
    if (!thread)
        return 0;
    uint64_t told_ns = thread->run_ns;
    *thread = unseen->threads[--unseen->count];
    return told_ns;
}

static struct unseen_thread *thread_add(struct unseen *unseen, const struct os_thread *os_thread)
{
    if (unseen->count == unseen->room) {
        size_t room = unseen->room ? 2 * unseen->room : 16;
        struct unseen_thread *threads = realloc(unseen->threads, room * sizeof *threads);
        if (!threads)
            return NULL;
        unseen->threads = threads;
        unseen->room = room;
    }
    struct unseen_thread *thread = &unseen->threads[unseen->count++];
    *thread = (struct unseen_thread){ .tid = os_thread->tid };
    memcpy(thread->name, os_thread->comm, sizeof thread->name);
    return thread;
}

static int thread_look(struct unseen *unseen, const struct os_thread *os_thread)
{
    uint64_t run_ns;
    if (thread_read_run(unseen->process, os_thread->tid, &run_ns) < 0)
        return 0;
    struct unseen_thread *thread = thread_find(unseen, os_thread->tid);
    if (!thread)
        thread = thread_add(unseen, os_thread);
    if (!thread)
        return -ENOMEM;
    thread->ran_ns = unseen->looked && run_ns > thread->run_ns ? run_ns - thread->run_ns : 0;
    thread->run_ns = run_ns;
    thread->alive = true;
    return 0;
}

static void ended_forget(struct unseen *unseen)
{
    size_t kept = 0;
    for (size_t i = 0; i < unseen->count; i++)
        if (unseen->threads[i].alive)
            unseen->threads[kept++] = unseen->threads[i];
    unseen->count = kept;
}

int unseen_look(struct unseen *unseen, bool (*is_known)(const void *context, pid_t tid),
                const void *context, const struct unseen_thread **ret)
{
    AUTO_FREE struct os_thread *list = NULL;
    int count = threads_list(unseen->process, &list), error = 0;
    if (count < 0)
        return count;
    for (size_t i = 0; i < unseen->count; i++)
        unseen->threads[i].alive = false;
    for (int i = 0; i < count && !error; i++)
        if (!is_known(context, list[i].tid))
            error = thread_look(unseen, &list[i]);
    if (error)
        return error;
    ended_forget(unseen);
    unseen->looked = true;
    *ret = unseen->threads;
    return (int)unseen->count;
}
