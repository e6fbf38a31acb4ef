#include "sampler/app/session.h"

#include "pyabi/layout.h"
#include "sampler/base/cleanup.h"

#include <string.h>
#include <time.h>

DEFINE_CLEANUP(struct process *, process_close)

enum {
    NAMED_DESCENDANTS = 3,
    TRACER_LOOKS = 20,       /* one that is there at each of so many, … */
    TRACER_NAP_NS = 1000000, /* … so far apart, stays */
    START_LOOKS = 50,        /* at one that is just starting, … */
    START_NAP_NS = 10000000, /* … so far apart */
};

/* 0, -ENOTSUP: a CPython that we do not know, -ENOENT: none; anything else: it does not show. */
static int python_look(pid_t pid)
{
    const struct stack_options options = { .nonblocking = true };
    CLEANUP(process_closep) struct process *process = NULL;
    struct stack_reader *reader = NULL;
    struct failure ignored;
    int error = process_open(pid, &process, &ignored);
    if (!error)
        error = stack_reader_open(process, &options, &reader, &ignored);
    stack_reader_close(reader);
    return error == -ESRCH ? -ENOENT : error;
}

int session_name_below(pid_t pid, char *into, size_t size)
{
    AUTO_FREE pid_t *list = NULL;
    int found = 0, hidden = 0, count = process_list_descendants(pid, &list);
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char command[80];
        int error = python_look(list[i]);
        hidden += error && error != -ENOTSUP && error != -ENOENT;
        if ((error && error != -ENOTSUP) || found++ >= NAMED_DESCENDANTS || used >= size)
            continue;
        process_read_command(list[i], command, sizeof command);
        used += (size_t)snprintf(into + used, size - used, "%s%d (%s)", used ? ", " : "", list[i],
                                 command);
    }
    if (found > NAMED_DESCENDANTS && used < size)
        snprintf(into + used, size - used, " and %d more", found - NAMED_DESCENDANTS);
    return count < 0 ? count : !found && hidden ? -EPERM : found;
}

/* "; Python runs below it, look there: --pid 12 (python a.py), 13 (python b.py)" behind what `why`
 * says. */
static void descendants_name(pid_t pid, struct failure *why)
{
    char names[NAMED_DESCENDANTS * 100 + 32];
    int found = session_name_below(pid, names, sizeof names);
    size_t used = strlen(why->text), rest = sizeof why->text - used;
    if (found > 0)
        snprintf(why->text + used, rest, "; Python runs below it, look there: --pid %s", names);
    else if (found == -EPERM)
        snprintf(why->text + used, rest, "; what runs below it cannot all be looked into");
    else if (!found)
        snprintf(why->text + used, rest, "; none runs below it either");
}

/* What was found says "it"; here it gets its name, and what would help. */
static int finding_explain(pid_t pid, struct failure *why)
{
    size_t used = strlen(why->text);
    if (why->code == -ENOTSUP)
        snprintf(why->text + used, sizeof why->text - used,
                 "; known are %s, a newer scalene-attach may know more", layout_known_names());
    if (why->code == -ENOENT)
        descendants_name(pid, why);
    return failure_prefix(why, "cannot look into process %d: ", pid);
}

int session_explain(const struct session *session, int error, struct failure *why)
{
    if (!session->process || process_check(session->process) == 0)
        return error;
    return failure_set(why, -ESRCH,
                       "process %d ended or became another program while it was looked at",
                       session->process->pid);
}

int session_explain_denied(const struct session *session, const char *operation,
                           struct failure *why)
{
    int error = process_explain_denied(session->process, operation, why);
    if (error)
        return error;
    return failure_set(why, -EAGAIN,
                       "for a moment it was not allowed to %s process %d, and now it is: try again",
                       operation, session->process->pid);
}

int session_open(pid_t pid, const struct stack_options *options, struct session *ret,
                 struct failure *why)
{
    *ret = (struct session){ 0 };
    int error = process_open(pid, &ret->process, why);
    if (error)
        return error;
    process_read_command(pid, ret->command, sizeof ret->command);
    error = stack_reader_open(ret->process, options, &ret->reader, why);
    if (!error)
        return 0;
    if (process_check(ret->process))
        error = session_explain(ret, error, why);
    else if (error == -EPERM || error == -EACCES)
        error = session_explain_denied(ret, "read the memory of", why);
    else
        error = finding_explain(pid, why);
    session_close(ret);
    return error;
}

void session_close(struct session *session)
{
    stack_reader_close(session->reader);
    if (session->process)
        process_close(session->process);
    *session = (struct session){ 0 };
}

/* Whom somebody else samples has a tracer at one moment and none at the next. */
static int pausing_check(const struct process *process, struct failure *why)
{
    const struct timespec between = { .tv_nsec = TRACER_NAP_NS };
    int error = process_explain_denied(process, "pause a thread of", why);
    for (unsigned i = 1; i < TRACER_LOOKS && error == -EPERM; i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &between, NULL);
        error = process_explain_denied(process, "pause a thread of", why);
    }
    if (error != -EPERM) /* that it has ended is soon told of */
        return 0;
    size_t used = strlen(why->text);
    snprintf(why->text + used, sizeof why->text - used, ", or never pause it: --nonblocking");
    return error;
}

/* What is just starting soon shows whether it is a Python: only one that will be is waited for. */
static int session_open_started(pid_t pid, struct session *ret, struct failure *why)
{
    const struct stack_options options = { .nonblocking = true };
    const struct timespec between = { .tv_nsec = START_NAP_NS };
    int error = session_open(pid, &options, ret, why);
    for (unsigned i = 1; i < START_LOOKS && error == -EAGAIN; i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &between, NULL);
        error = session_open(pid, &options, ret, why);
    }
    return error;
}

int session_probe(pid_t pid, bool follow, bool pauses, struct failure *why)
{
    struct session session;
    AUTO_FREE pid_t *list = NULL;
    int error = session_open_started(pid, &session, why);
    if (!error && pauses)
        error = pausing_check(session.process, why);
    session_close(&session);
    bool expected = error == -EAGAIN;
    int count = error == -ENOENT && follow ? process_list_descendants(pid, &list) : 0;
    for (int i = 0; i < count && !expected; i++)
        expected = !python_look(list[i]);
    return expected ? 0 : error;
}
