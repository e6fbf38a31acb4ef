/* Which code gets lines of its own; time spent in all other code goes to the nearest shown caller.
 * Names alone decide. */
#pragma once

#include "output/model/profile.h"

/* `path` is absolute, or a name like <string>; `function` may be NULL. */
bool scope_shows(const struct profile_settings *settings, const char *path, const char *function);

/* Does the thread whose innermost frame this is only wait until other threads of its process have
 * done their work? */
bool scope_is_join(const char *path, const char *function);
