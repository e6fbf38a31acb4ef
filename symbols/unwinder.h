/*
 * Native stacks from a copy: registers and stack bytes that were taken in one short pause, unwound
 * while the target runs on. A backend is a name and four functions; the caller cannot tell which it
 * got. The addresses become names in native_symbols.h.
 */
#pragma once

#include "sampler/base/registers.h"
#include "sampler/base/remote.h"
#include "symbols/maps.h"

struct stack_image {
    struct registers registers;
    remote_addr stack_start; /* address of bytes[0]; at or below registers.sp */
    const void *bytes;
    size_t size;
};

struct native_frame {
    remote_addr ip; /* of the instruction that runs or calls (return address - 1 for callers) */
    remote_addr sp;
    remote_addr cfa; /* the caller's sp: [sp, cfa) is this frame's part of the stack. The last one,
                        whose caller is not known, has none: what lies further out is not its own */
};

struct native_unwind;

struct unwinder {
    const char *name;
    int (*open)(struct remote *memory, int proc_fd, struct native_unwind **ret);
    /* Mappings changed: forget what was learnt from the old ones. `maps` is borrowed until the next
     * call. */
    int (*set_maps)(struct native_unwind *unwind, const struct maps *maps);
    /* Innermost first; returns the count, which ends where nothing sound is left to unwind (never
     * an error for a stack that ends in code without unwind tables). */
    int (*walk)(struct native_unwind *unwind, const struct stack_image *image,
                struct native_frame *ret_frames, size_t capacity);
    void (*close)(struct native_unwind *unwind);
};

extern const struct unwinder unwinder_libunwind;
