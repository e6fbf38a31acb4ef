#include "sampler/app/session.h"

#include "pyabi/layout.h"
#include "sampler/base/cleanup.h"

#include <string.h>

DEFINE_CLEANUP(struct process *, process_close)

enum { NAMED_DESCENDANTS = 3 };

static bool is_python(pid_t pid)
{
    const struct stack_options options = { .nonblocking = true };
    CLEANUP(process_closep) struct process *process = NULL;
    struct stack_reader *reader = NULL;
    struct failure ignored;
    if (process_open(pid, &process, &ignored) ||
        stack_reader_open(process, &options, &reader, &ignored))
        return false;
    stack_reader_close(reader);
    return true;
}

/* "; its descendants 12 (python a.py) and 13 (python b.py) are" behind what `why` says. */
static void descendants_name(pid_t pid, struct failure *why)
{
    AUTO_FREE pid_t *list = NULL;
    unsigned named = 0;
    int count = process_list_descendants(pid, &list);
    for (int i = 0; i < count && named < NAMED_DESCENDANTS; i++) {
        char command[80];
        size_t used = strlen(why->text);
        if (!is_python(list[i]))
            continue;
        process_read_command(list[i], command, sizeof command);
        snprintf(why->text + used, sizeof why->text - used, "%s %d (%s)",
                 named ? "," : "; Python runs below it, look there: --pid", list[i], command);
        named++;
    }
}

/* What was found says "it"; here it gets its name, and what would help. */
static int finding_explain(pid_t pid, struct failure *why)
{
    size_t used = strlen(why->text);
    if (why->code == -ENOTSUP)
        snprintf(why->text + used, sizeof why->text - used, "; known are %s", layout_known_names());
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
        error = process_explain_denied(ret->process, "read the memory of", why);
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

int session_probe(pid_t pid, bool follow, struct failure *why)
{
    const struct stack_options options = { .nonblocking = true };
    struct session session;
    AUTO_FREE pid_t *list = NULL;
    int error = session_open(pid, &options, &session, why);
    if (!error)
        session_close(&session);
    bool expected = error == -EAGAIN;
    int count = error == -ENOENT && follow ? process_list_descendants(pid, &list) : 0;
    for (int i = 0; i < count && !expected; i++)
        expected = is_python(list[i]);
    return expected ? 0 : error;
}
