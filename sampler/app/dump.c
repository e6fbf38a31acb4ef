#include "sampler/app/dump.h"

#include "output/cli/dump_text.h"
#include "output/cli/style.h"
#include "output/json/dump_json.h"
#include "sampler/app/session.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/descriptors.h"
#include "sampler/target/signals.h"

#include <string.h>

static int threads_read(struct session *session, struct thread_event *threads, int count)
{
    int kept = 0;
    stack_reader_name_threads(session->reader);
    for (int i = 0; i < count; i++) {
        int error = stack_reader_read(session->reader, (size_t)i, &threads[kept]);
        if (error == -EPERM)
            return error;
        kept += error != -ESRCH; /* a thread that ended is not missing */
    }
    return kept;
}

static int dump_write(const struct options *options, const struct dump_event *dump,
                      struct failure *why)
{
    if (options->json) {
        AUTO_FREE char *text = dump_json_write(dump);
        if (!text)
            return failure_set(why, -ENOMEM, "out of memory");
        fputs(text, stdout);
    } else {
        dump_text_write(stdout, style_wanted(stdout), dump);
    }
    if (fflush(stdout) || ferror(stdout))
        return failure_set(why, -EIO, "standard output cannot be written: %s", strerror(errno));
    return 0;
}

static int session_dump(struct session *session, const struct options *options, struct failure *why)
{
    int count = stack_reader_list(session->reader);
    if (count < 0)
        return failure_set(why, count, "the threads of process %d cannot be listed: %s",
                           options->pids.items[0],
                           count == -EAGAIN ? "they change at every look" : strerror(-count));
    AUTO_FREE struct thread_event *threads = calloc((size_t)count + 1, sizeof *threads);
    if (!threads)
        return failure_set(why, -ENOMEM, "out of memory");
    signals_defer_suspension(true);
    count = threads_read(session, threads, count);
    signals_defer_suspension(false);
    if (count == -EPERM)
        return session_explain_denied(session, "pause a thread of", why);
    const struct dump_event dump = {
        .pid = options->pids.items[0],
        .command = session->command,
        .python = stack_reader_python(session->reader),
        .threads = threads,
        .thread_count = (size_t)count,
    };
    if (process_check(session->process))
        return -ESRCH;
    return dump_write(options, &dump, why);
}

int dump_run(const struct options *options, struct failure *why)
{
    const struct stack_options reading = {
        .native = options->native,
        .native_lines = true,
        .nonblocking = options->nonblocking,
        .wants = WANT_OWNER | WANT_DEPTH,
        .find_methods = options->find,
    };
    struct session session;
    descriptors_raise();
    int error = session_open(options->pids.items[0], &reading, &session, why);
    if (error)
        return error;
    error = session_dump(&session, options, why);
    if (error)
        error = session_explain(&session, error, why);
    session_close(&session);
    return error;
}
