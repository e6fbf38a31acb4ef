/*
 * What the rows of options.def and verbs.def say, for people and for shells: the help, the man
 * page, and completion. Each walks all rows, so that none can be missing.
 */
#pragma once

#include "sampler/app/options.h"

#include <stdio.h>

/* Coloured where `out` wants it. VERB_NONE: of all verbs; a verb's is of its options alone. */
void help_write(FILE *out, enum verb verb, bool advanced);

/* Input of man(1); `version` is ours. */
void man_page_write(FILE *out, const char *version);

void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

/* One of the above by its name. 0, or -EINVAL with a sentence that names them. */
int document_run(const char *name, const char *version, struct failure *why);
