/* The last words of a profiling run, on standard error: where the profile is, or why there is none.
 */
#pragma once

#include "output/model/profile.h"

#include <stdio.h>

/* With the commands that show it. `usual` is the name that `view` looks for when it is given none.
 */
void closing_words_saved(FILE *out, const char *file, const char *usual);

/* The first line alone, for what `view` does not read: a "page", a "comparison", a "profile" of
 * another format. */
void closing_words_written(FILE *out, const char *what, const char *file);

/* A run that has nothing to show: the cause, what is known of it, and what to type instead of what
 * the settings were made of. */
void closing_words_nothing(FILE *out, const struct report *report,
                           const struct profile_settings *settings);
