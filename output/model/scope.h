/* Which code gets lines of its own; time spent in all other code goes to the nearest shown caller.
 * Names alone decide. */
#pragma once

#include "output/model/profile.h"

enum scope {
    SCOPE_HIDDEN,
    SCOPE_SHOWN,
    SCOPE_ELSEWHERE, /* neither the program's nor a library's: hidden where there is such a file,
                        but code that was compiled elsewhere bears a name from there */
};

/* `path` is absolute, or a name like <string>; `function` may be NULL. */
enum scope scope_find(const struct profile_settings *settings, const char *path,
                      const char *function);

/* What <string> is in a process of that command line, which ends with NULL, or in whatever that
 * function calls, if it is not the user's; NULL: it is. */
const char *scope_string_of(const char *const *argv);
const char *scope_string_below(const char *path, const char *function);

/* Does the thread whose innermost frame this is only wait until other threads of its process have
 * done their work? */
bool scope_is_join(const char *path, const char *function);
