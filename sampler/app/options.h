/* The command line: parsed by one table, which also writes the help. */
#pragma once

#include "sampler/base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum verb { VERB_NONE, VERB_DUMP, VERB_COUNT };

typedef bool option_FLAG;
typedef pid_t option_PID;
typedef unsigned option_METHOD; /* bit per enum python_found_by; 0: any */

struct options {
    enum verb verb;
#define OPTION(member, type, ...) option_##type member;
#include "sampler/app/options.def"
#undef OPTION
};

/* 0, or -EINVAL with one sentence that names the nearest known word. */
int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why);

/* Coloured where `out` wants it. */
void options_write_help(FILE *out, bool advanced);
