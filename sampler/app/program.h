/* Which script a command runs, as far as its words tell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct program {
    char path[4096];   /* of the script, absolute; "" when there is none (-m, -c, a shell, …) */
    char folder[4096]; /* whose code is the program's own; "" when it cannot be told: what a shell
                          or a server starts may stand anywhere */
};

/* `argv` ends with NULL; `cwd` is where it runs. */
void program_find(const char *const *argv, const char *cwd, struct program *ret);

/* Does the script, or what stands behind -c, mark functions with @profile? */
bool program_is_marked(const struct program *program, const char *const *argv);
