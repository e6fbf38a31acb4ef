/*
 * The C library that a process has mapped, as far as an injection needs it: where the functions
 * stand that are called, and the text that calls return through. Reads files and memory only.
 */
#pragma once

#include "sampler/target/inject.h"
#include "symbols/maps.h"

enum c_function { C_SYSCALL, C_ERRNO, C_DLOPEN, C_DLERROR, C_FUNCTIONS };

struct c_library {
    remote_addr functions[C_FUNCTIONS];
    int dlopen_flags; /* that this library's dlopen wants in addition */
    struct inject_code code;
};

/* -ENOTSUP: there is none that we know how to use, and why. */
int c_library_find(struct process *process, const struct maps *maps, struct c_library *ret,
                   struct failure *why);

/* By the names under which they are mapped. */
bool is_c_library(const struct mapping *mapping);
bool is_loader(const struct mapping *mapping);
bool is_dl_library(const struct mapping *mapping);
bool is_thread_library(const struct mapping *mapping);
