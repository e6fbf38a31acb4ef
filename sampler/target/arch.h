/*
 * What differs between CPU architectures, as one const table each: where a register set keeps the
 * registers that DWARF numbers, and what its system calls wait for. An arch_*.c of another machine
 * than ours is empty.
 */
#pragma once

#include <stdint.h>

enum wait_class {
    WAIT_OTHER, /* and every call that is not in the table */
    WAIT_LOCK,
    WAIT_FUTEX, /* a lock whose address is the first argument */
    WAIT_IO,
    WAIT_POLL,   /* io, or a sleep when the count of descriptors, its second argument, is 0 */
    WAIT_SELECT, /* the same, with the first argument */
    WAIT_SLEEP,
    WAIT_CHILD,
    WAIT_DEVICE,  /* io on the descriptor that is the first argument, which may be a GPU */
    WAIT_RESTART, /* the kernel resumes an interrupted call, whose number is lost */
};

enum { ARCH_REGISTERS = 33, ARCH_SYSCALLS = 512 };

struct arch {
    const char *name;
    uint32_t audit;                         /* as seccomp filters know it: AUDIT_ARCH_… */
    unsigned set_words;                     /* 64-bit words of NT_PRSTATUS */
    unsigned register_count;                /* as DWARF counts them */
    uint8_t register_words[ARCH_REGISTERS]; /* DWARF number -> word */
    uint8_t ip_word, sp_word, fp_word;
    uint8_t
        call_word; /* the system call it is in, negative when it is in none; 0xff: not told here */
    uint8_t wait_classes[ARCH_SYSCALLS]; /* system call -> enum wait_class */
};

extern const struct arch native_arch;
