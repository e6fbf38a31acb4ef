/* What a thread that is on a CPU does there: Python, native code, or the kernel's work. */
#pragma once

#include "pyabi/pyabi.h"
#include "sampler/base/event.h"
#include "symbols/native_symbols.h"
#include "symbols/unwinder.h"

struct cpu_look {
    const struct py_stack *stack;
    const struct native_frame *native; /* innermost first */
    size_t native_count;               /* 0: only the Python frames are known */
    bool in_call;                      /* in a system call */
    struct native_symbols *symbols;
    const char *interpreter_path; /* of the object that holds the evaluation loop */
};

enum cpu_kind cpu_kind_find(const struct cpu_look *look);
