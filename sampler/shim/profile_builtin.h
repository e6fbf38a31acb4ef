/*
 * `@profile` without an import, as Scalene's users write it: once an interpreter is about to run
 * its program, its builtins get a `profile` that returns what it is given, unless they have one.
 */
#pragma once

#include "sampler/shim/python.h"

/* Before the interpreter begins. */
void profile_builtin_add(const struct python *python);
