/* What inject.c needs to know about the machine. One table; a NULL `stage` is a machine where
 * nobody has written it yet. */
#pragma once

#include "sampler/target/inject.h"

#include <sys/user.h>

enum { INJECT_STATE_MOST = 16 << 10 }; /* of the vector registers */

/* All that a thread is to its user. */
struct inject_state {
    struct user_regs_struct registers;
    uint64_t signal_mask;
    size_t vector_size;
    _Alignas(64) uint8_t vectors[INJECT_STATE_MOST];
};

/* Where everything lies below the stack pointer, from above to below. */
struct inject_plan {
    remote_addr data; /* INJECT_DATA bytes, then the result's word */
    remote_addr result;
    remote_addr frame; /* the signal frame; its first word is the restorer's address */
    remote_addr stack; /* where the function finds its return address */
    size_t image_size; /* of the frame and what belongs to it */
};

struct inject_arch {
    /* Lays the frame out in `image`, which belongs at plan->frame. -EFAULT: too large. */
    int (*stage)(const struct inject_state *state, const struct inject_code *code, uint8_t *image,
                 size_t capacity, struct inject_plan *ret);
    /* The registers of a call, and vector registers as a function may expect them. */
    void (*call)(struct inject_state *state, const struct inject_plan *plan,
                 const struct inject_code *code, remote_addr function, const uint64_t *arguments);
    /* Does it stand where it asks for the frame's state? Then it is set to ask once more. */
    bool (*rewind)(struct user_regs_struct *registers, const struct inject_plan *plan,
                   const struct inject_code *code);
    bool (*find)(const uint8_t *text, size_t size, remote_addr address, struct inject_code *code);
    int vector_set; /* of PTRACE_GETREGSET */
};

extern const struct inject_arch native_inject;
