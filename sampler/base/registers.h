/* A stopped thread's registers, numbered as DWARF numbers them for its architecture. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct registers {
    uint64_t ip, sp, fp;
    uint64_t all[33]; /* x86-64: 0-16; aarch64: 0-32 */
    unsigned count;
    bool in_call; /* it was in the kernel, in a system call, when it was asked to stand */
};
