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

/* Names that only we give. */
#define MULTIPROCESSING "<multiprocessing>"
#define SITE "<site>"
#define GENERATED "<generated>"

/*
 * Code without a file that a library made up, not the user. The `<string>` of dataclasses tells by
 * its function's qualified name.
 */
static bool is_made_up(const char *path, const char *function)
{
    static const char *const names[] = {
        "<frozen ",      "<attrs generated", "<__array_function__", "<decorator-gen-",
        "<makefun-gen-", "<sqlalchemy",      MULTIPROCESSING,       SITE,
        GENERATED,
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
static bool is_library(const struct profile_settings *settings, const char *path, const char *root)
{
    for (const char *const *folder = settings->library_paths; folder && *folder; folder++)
        if (is_below(path, *folder) && !(root && is_below(root, *folder)))
            return true;
    if (root)
        path += strlen(root) - (root[strlen(root) - 1] == '/');
    return strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
           strstr(path, ".whl/") || is_standard_library(path);
}

/* The innermost of the programs' folders in which it lies, or NULL. */
static const char *root_find(const struct profile_settings *settings, const char *path)
{
    const char *root = is_below(path, settings->program_path) ? settings->program_path : NULL;
    for (const char *const *folder = settings->more_paths; folder && *folder; folder++)
        if (is_below(path, *folder) && (!root || strlen(*folder) > strlen(root)))
            root = *folder;
    return root;
}

/* A notebook's cells are files that nobody has written. */
static bool is_cell(const char *path)
{
    static const char folder[] = "/ipykernel_";
    const char *at = strstr(path, folder);
    size_t digits = at ? strspn(at + sizeof folder - 1, "0123456789") : 0;
    return digits && at[sizeof folder - 1 + digits] == '/';
}

enum scope scope_find(const struct profile_settings *settings, const char *path,
                      const char *function)
{
    if (!path || !*path || holds_any(path, settings->exclude))
        return SCOPE_HIDDEN;
    if (settings->only && *settings->only && !holds_any(path, settings->only))
        return SCOPE_HIDDEN;
    if (*path == '<')
        return settings->profile_all || !is_made_up(path, function) ? SCOPE_SHOWN : SCOPE_HIDDEN;
    if (settings->profile_all || strcmp(path, settings->program) == 0 || is_cell(path))
        return SCOPE_SHOWN;
    bool has_root = settings->program_path && *settings->program_path;
    const char *root = has_root ? root_find(settings, path) : NULL;
    if (is_library(settings, path, root))
        return settings->system_libraries ? SCOPE_SHOWN : SCOPE_HIDDEN;
    return root || !has_root ? SCOPE_SHOWN : SCOPE_ELSEWHERE;
}

/* As multiprocessing starts its helpers (3.8 to 3.15: popen_spawn_posix.py, forkserver.py and
 * resource_tracker.py). */
const char *scope_string_of(const char *const *argv)
{
    static const char *const starts[] = {
        "from multiprocessing.spawn import spawn_main",
        "from multiprocessing.forkserver import main",
        "import sys; from multiprocessing.forkserver import main", /* 3.13, with sys.argv */
        "from multiprocessing.resource_tracker import main",
    };
    size_t at = 0;
    while (argv && argv[at] && strcmp(argv[at], "-c") != 0)
        at++;
    if (!argv || !argv[at] || !argv[at + 1])
        return NULL;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts_with(argv[at + 1], starts[i]))
            return MULTIPROCESSING;
    return NULL;
}

/* Lines of .pth files, which run before the program does, and code that the standard library makes.
 */
const char *scope_string_below(const char *path, const char *function)
{
    static const struct {
        const char *file, *function, *name;
    } callers[] = {
        { "<frozen site>", "addpackage", SITE },
        { "/site.py", "addpackage", SITE },
        { "/dataclasses.py", "_create_fn", GENERATED },
        { "/dataclasses.py", "_FuncBuilder.add_fns_to_class", GENERATED }, /* 3.13 */
        { "/collections/__init__.py", "namedtuple", GENERATED },
    };
    for (size_t i = 0; function && i < sizeof callers / sizeof *callers; i++)
        if (ends_with(path, callers[i].file) && strcmp(function, callers[i].function) == 0)
            return callers[i].name;
    return NULL;
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
