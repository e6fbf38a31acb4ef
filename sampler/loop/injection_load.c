/* How the shim is loaded: by the target's own Python where that comes by, else by a call. */
#define _GNU_SOURCE 1 /* MFD_CLOEXEC */

#include "sampler/base/cleanup.h"
#include "sampler/loop/injection_checks.h"
#include "sampler/loop/injection_parts.h"
#include "sampler/target/proc_file.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

enum { ERROR_TEXT = 256, STATUS_SIZE = 8192, SCRIPT_SIZE = 1024 };

int injection_learn_maps(struct injection *injection, struct failure *why)
{
    maps_done(&injection->maps);
    int error = maps_read(injection->process->proc_fd, &injection->maps);
    if (error)
        return injection_call_explain(injection, error, "a look at the mappings", why);
    const struct mapping *shim = NULL;
    injection->library = injection->others = 0;
    while ((shim = brought_next(&injection->maps, SHIM_FILE_NAME, shim))) {
        bool same = brought_is(injection->process, shim->start, injection->plan.library);
        injection->library = same ? shim->start : injection->library;
        injection->others += !same;
    }
    return 0;
}

/* The loader takes what it has under a name already for what is asked for: of a shim of another
 * version that had the same descriptor the name differs by slashes. */
static void library_name(const struct injection *injection, char *into, size_t size)
{
    enum { SLASHES = 32 };
    static const char slashes[] = "////////////////////////////////";
    unsigned more = injection->others < SLASHES ? injection->others : SLASHES;
    snprintf(into, size, "%.*s/proc/self/fd/%d", (int)more, slashes, injection->library_file);
}

/* ---- by its own Python ---- */

/*
 * What a filter would say to the calls that reading a script takes is not known: under one nobody
 * is asked for anything. What an earlier profiler has asked for comes back before its files are
 * closed.
 */
void injection_find_asker(struct injection *injection)
{
    char status[STATUS_SIZE];
    if (proc_read_file(injection->process->proc_fd, "status", status, sizeof status) > 0 &&
        proc_find_number(status, "Seccomp", 10) == 0 &&
        script_asker_open(injection->process, &injection->asker) == 0)
        script_withdraw(injection->asker);
}

/*
 * An extension module of which Python finds no function to begin with: it has been loaded then, and
 * nothing of it stays. All that is imported here is there in every Python. What a signal's handler
 * raises meanwhile is the program's to catch, and Python would only print it: the program gets it
 * once the script has ended, from a handler that is wanted after its last look for signals, which a
 * call takes and an assignment does not. Where none has raised, nothing of signals is touched.
 */
static const char script_text[] =
    "import _imp, posix, sys\n"
    "try:\n"
    "    try:\n"
    "        _imp.create_dynamic(type(sys.implementation)(name='scalene_shim', origin='%s'))\n"
    "    except ImportError:\n"
    "        pass\n"
    "    finally:\n"
    "        posix.close(%d)\n"
    "except BaseException as error:\n"
    "    import _signal, _thread\n"
    "    number, = [n for n in _signal.valid_signals() if callable(_signal.getsignal(n))][:1]\n"
    "    raised, handler = error, _signal.getsignal(number)\n"
    "    wakes = _signal.set_wakeup_fd(-1)\n"
    "    def late(*_):\n"
    "        _signal.signal(number, handler)\n"
    "        _signal.set_wakeup_fd(wakes)\n"
    "        raise raised.with_traceback(raised.__traceback__.tb_next)\n"
    "    _signal.signal(number, late)\n"
    "    _, = map(_thread.interrupt_main, [number])\n";

static int script_fill(const struct injection *injection, int fd)
{
    char library[LIBRARY_PATH_SIZE], text[SCRIPT_SIZE];
    library_name(injection, library, sizeof library);
    int length = snprintf(text, sizeof text, script_text, library, injection->script_file);
    return write(fd, text, (size_t)length) == length ? 0 : -EIO;
}

static int script_bring(struct injection *injection, struct failure *why)
{
    AUTO_CLOSE int fd = -1;
    int error = injection_file_make(injection, SCRIPT_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING,
                                    &injection->script_file, &fd, why);
    if (!error)
        error = script_fill(injection, fd);
    return error ? injection_call_explain(injection, error, "bringing a script", why) : 0;
}

/*
 * Whatever comes of it, the call is next, which has nothing to do where this has worked. The file
 * of a script that has been begun, or may be, is its own.
 */
int injection_ask_python(struct injection *injection, struct failure *why)
{
    if (injection->library || !injection->asker)
        return 0;
    if (script_bring(injection, why))
        return why->code;
    injection_thread_let_go(injection);
    int answer = script_run(injection->asker, injection->script_file);
    stood_add(&injection->stood, script_stood(injection->asker));
    if (answer == 0 || answer == -EINPROGRESS)
        injection->script_file = -1;
    int error = injection_thread_take(injection, why);
    if (!error)
        injection_script_close(injection);
    return error ? error : injection_learn_maps(injection, why);
}

void injection_script_close(struct injection *injection)
{
    injection_file_close(injection, &injection->script_file);
}

/* ---- by a call ---- */

/* What the loader says of it. */
static int load_explain(struct injection *injection, struct failure *why)
{
    const uint64_t nothing[INJECT_ARGUMENTS] = { 0 };
    char text[ERROR_TEXT] = "";
    uint64_t at = 0;
    remote_addr function = injection->libc.functions[C_DLERROR];
    if (function && !injection_function_call(injection, function, "dlerror", nothing, &at, why) &&
        at)
        remote_read_text(&injection->process->memory, at, text, sizeof text);
    return failure_set(why, -ENOTSUP, "the shim cannot be loaded into process %d%s%s",
                       injection->process->pid, *text ? ": " : "", text);
}

int injection_load(struct injection *injection, struct failure *why)
{
    char path[LIBRARY_PATH_SIZE];
    remote_addr at;
    uint64_t handle;
    if (injection->library)
        return 0;
    library_name(injection, path, sizeof path);
    int error = inject_give(injection->thread, path, strlen(path) + 1, &at);
    if (error)
        return injection_call_explain(injection, error, "writing to the stack", why);
    const uint64_t arguments[INJECT_ARGUMENTS] = { at, (uint64_t)(RTLD_NOW | RTLD_LOCAL |
                                                                  injection->libc.dlopen_flags) };
    error = injection_function_call(injection, injection->libc.functions[C_DLOPEN], "dlopen",
                                    arguments, &handle, why);
    if (!error && !handle)
        error = load_explain(injection, why);
    if (!error)
        error = injection_learn_maps(injection, why);
    if (!error && !injection->library)
        error = failure_set(why, -ENOTSUP, "the shim was not loaded into process %d",
                            injection->process->pid);
    return error;
}
