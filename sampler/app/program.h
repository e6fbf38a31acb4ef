/* Which script a command runs, as far as its words tell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct program {
    char path[4096];   /* of the script, absolute; "" when there is none (-m, -c, a shell, …) */
    char folder[4096]; /* whose code is the program's own; "" when it cannot be told: what a shell
                          or a server starts may stand anywhere */
    bool is_python;    /* the command is an interpreter, */
    bool is_module;    /* with -m: where that lies, only the process knows */
};

/* `argv` ends with NULL; `cwd` is where it runs. */
void program_find(const char *const *argv, const char *cwd, struct program *ret);

/* What the program sees as its argv: the first word, "" where that is a module's path, and the
 * others, which are the last of `argv`. */
const char *const *program_arguments(const char *const *argv, const char **ret_first);

/* Does the script, what stands behind -c, or any file of the program mark functions with @profile?
 * Also true where that is more than can be looked through, or nobody knows where it stands. */
bool program_may_be_marked(const struct program *program, const char *const *argv);
