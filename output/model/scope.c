#include "output/model/scope.h"

#include <string.h>

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Is it the folder, or something below it? */
static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

static bool holds_any(const char *path, const char *const *parts)
{
    for (; parts && *parts; parts++)
        if (strstr(path, *parts))
            return true;
    return false;
}

/*
 * Code without a file that a library made up, not the user. The `<string>` of dataclasses tells by
 * its function's qualified name.
 */
static bool is_made_up(const char *path, const char *function)
{
    static const char *const names[] = {
        "<frozen ",        "<attrs generated", "<__array_function__",
        "<decorator-gen-", "<makefun-gen-",    "<sqlalchemy"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts_with(path, names[i]))
            return true;
    return function && starts_with(function, "__create_fn__.<locals>.");
}

/* .../lib/python3.12/..., .../lib64/python3.12/..., .../lib/python312.zip/... */
static bool is_standard_library(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/python3")); at++) {
        const char *digits = at + strlen("/python3");
        size_t length = strspn(digits, ".0123456789t");
        bool in_lib = (at - path >= 4 && strncmp(at - 4, "/lib", 4) == 0) ||
                      (at - path >= 6 && strncmp(at - 6, "/lib64", 6) == 0);
        if (in_lib && (digits[length] == '/' || starts_with(digits + length, "zip/")))
            return true;
    }
    return false;
}

/*
 * A program may itself lie where libraries lie, and a virtual environment inside the program's
 * folder: so only what comes below that folder counts, for the files that are there.
 */
static bool is_library(const struct profile_settings *settings, const char *path,
                       bool below_program)
{
    const char *root = settings->program_path;
    for (const char *const *folder = settings->library_paths; folder && *folder; folder++)
        if (is_below(path, *folder) && !(below_program && is_below(root, *folder)))
            return true;
    if (below_program)
        path += strlen(root) - (root[strlen(root) - 1] == '/');
    return strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
           is_standard_library(path);
}

bool scope_shows(const struct profile_settings *settings, const char *path, const char *function)
{
    if (!path || !*path || holds_any(path, settings->exclude))
        return false;
    if (settings->only && *settings->only && !holds_any(path, settings->only))
        return false;
    if (*path == '<')
        return settings->profile_all || !is_made_up(path, function);
    if (settings->profile_all || strcmp(path, settings->program) == 0)
        return true;
    bool has_root = settings->program_path && *settings->program_path;
    bool below_program = has_root && is_below(path, settings->program_path);
    if (is_library(settings, path, below_program))
        return settings->system_libraries;
    return below_program || !has_root;
}

static const struct {
    const char *file, *function; /* the function's own name, unqualified */
} joins[] = {
    { "/threading.py", "join" },
    { "/threading.py", "_join_thread" },
    { "/threading.py", "_wait_for_tstate_lock" },
    { "/threading.py", "_shutdown" },
    { "/concurrent/futures/_base.py", "result" },
    { "/concurrent/futures/_base.py", "exception" },
    { "/concurrent/futures/_base.py", "wait" },
    { "/concurrent/futures/_base.py", "as_completed" },
    { "/concurrent/futures/thread.py", "shutdown" },
    { "/queue.py", "join" },
};

bool scope_is_join(const char *path, const char *function)
{
    if (!path || !function)
        return false;
    const char *dot = strrchr(function, '.');
    const char *name = dot ? dot + 1 : function;
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        if (ends_with(path, joins[i].file) && strcmp(name, joins[i].function) == 0)
            return true;
    return false;
}
