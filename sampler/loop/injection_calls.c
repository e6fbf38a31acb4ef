/* The calls of an injection, and the thread that makes them. */
#include "sampler/loop/injection_checks.h"
#include "sampler/loop/injection_parts.h"
#include "sampler/loop/quiet.h"
#include "sampler/loop/safe_thread.h"

#include "sampler/base/cleanup.h"

#include <string.h>

enum { LATE_TIMES = 6 };

/* ---- calls ---- */

int injection_call_explain(const struct injection *injection, int error, const char *what,
                           struct failure *why)
{
    pid_t pid = injection->process->pid;
    switch (error) {
    case -ESRCH:
        return failure_set(why, error, "process %d ended or became another program", pid);
    case -ETIMEDOUT:
        return failure_set(
            why, error, "%s did not come to its end in process %d for %d s, and is left to do so",
            what, pid, INJECT_PATIENCE_MS / 1000);
    case -EFAULT:
        return failure_set(why, error, "%s failed in process %d, and was abandoned", what, pid);
    default:
        return failure_set(why, error, "%s failed in process %d: %s", what, pid, strerror(-error));
    }
}

int injection_function_call(struct injection *injection, remote_addr function, const char *what,
                            const uint64_t *arguments, uint64_t *ret, struct failure *why)
{
    int error = inject_call(injection->thread, function, arguments, ret);
    return error ? injection_call_explain(injection, error, what, why) : 0;
}

long injection_system_call(struct injection *injection, long number, uint64_t first,
                           uint64_t second, const char *what, struct failure *why)
{
    const uint64_t arguments[INJECT_ARGUMENTS] = { (uint64_t)number, first, second };
    uint64_t result;
    int code = 0;
    int error = injection_function_call(injection, injection->libc.functions[C_SYSCALL], what,
                                        arguments, &result, why);
    if (error)
        return error;
    if ((int64_t)result != -1)
        return (long)result;
    remote_read(&injection->process->memory, injection->errno_at, &code, sizeof code);
    return injection_call_explain(injection, code ? -code : -EBADMSG, what, why);
}

/* ---- a thread ---- */

/* The pause is the thread's from here on, or over. */
static int thread_stage(struct injection *injection, struct pause *pause, struct failure *why)
{
    const uint64_t nothing[INJECT_ARGUMENTS] = { 0 };
    int error = injection_check_thread(injection->process, pause, why);
    if (!error)
        error =
            inject_begin(injection->process, pause, &injection->libc.code, &injection->thread, why);
    thread_resume(pause);
    if (!error)
        error = injection_function_call(injection, injection->libc.functions[C_ERRNO],
                                        "a look at errno", nothing, &injection->errno_at, why);
    if (!error)
        remote_read(&injection->process->memory, injection->errno_at, &injection->errno_before,
                    sizeof injection->errno_before);
    return error;
}

static struct safe_search search_of(const struct injection *injection)
{
    return (struct safe_search){ injection->plan.cancel_fd, injection->patience_ms };
}

int injection_thread_take(struct injection *injection, struct failure *why)
{
    const struct safe_search search = search_of(injection);
    struct pause pause = { 0 };
    int error = safe_thread_find(injection->process, &search, &pause, why);
    return error ? error : thread_stage(injection, &pause, why);
}

/* What a call waits for that is not back is a lock of the allocator's, or something that nobody
 * knows of. */
static bool others_are_waited_for(void *context, unsigned times)
{
    struct injection *injection = context;
    if (times == 0 && injection->places)
        quiet_loosen(injection->places, &injection->still);
    if (times == LATE_TIMES)
        injection_others_let_go(injection);
    return times < LATE_TIMES;
}

int injection_thread_take_quiet(struct injection *injection, struct failure *why)
{
    const struct safe_search search = search_of(injection);
    struct pause pause = { 0 };
    injection_thread_let_go(injection);
    int error = safe_thread_find_quiet(injection->process, &search, &pause, &injection->still,
                                       &injection->places, why);
    if (!error)
        error = thread_stage(injection, &pause, why);
    if (!error)
        inject_set_late(injection->thread, others_are_waited_for, injection);
    return error;
}

void injection_others_let_go(struct injection *injection)
{
    stillness_end(&injection->still);
    stood_add(&injection->stood, &injection->still.stood);
    injection->still.stood = (struct stood){ 0 };
}

void injection_thread_let_go(struct injection *injection)
{
    if (injection->thread && injection->errno_at)
        inject_write(injection->thread, injection->errno_at, &injection->errno_before,
                     sizeof injection->errno_before);
    inject_end(TAKE_PTR(injection->thread));
    injection->errno_at = 0;
    injection_others_let_go(injection);
    thread_places_close(TAKE_PTR(injection->places));
}
