/* What the two halves of the stack reader share: stacks.c keeps the rounds, reading.c reads one
 * thread. Private to those. */
#pragma once

#include "sampler/base/arena.h"
#include "sampler/loop/stacks.h"
#include "sampler/target/threads.h"
#include "symbols/find_python.h"
#include "symbols/native_symbols.h"
#include "symbols/unwinder.h"

enum {
    STACK_COPY = 512 << 10, /* of a C stack, at most */
    NATIVE_FRAMES = 4096,
};

/* What is kept of a thread from round to round. */
struct thread_slot {
    remote_addr state;
    uint64_t ident;
    uint64_t native_id; /* a thread that ended may leave the first two to the next, but not this */
    pid_t tid;          /* 0: not known */
    char comm[16];
    char *name; /* what Python called it last; NULL: nothing so far */
    struct view *view;
    remote_addr stack_end; /* where a copy of the C stack came to its end; 0: none did */
    struct thread_probe probe;
    bool probe_open, seen;
    bool accounted;  /* `wait` is fresh */
    unsigned doubts; /* looks of it without a pause that have to be proven twice */
    unsigned calls;  /* weighs how often it was met where it came back from the kernel, lately */
    unsigned careful_looks; /* still to be made at moments that were set before */
    uint64_t turns;         /* at its last look */
    struct wait_state wait;
};

struct stack_reader {
    struct process *process;
    struct stack_options options;
    struct python *python;
    struct python_location location;
    struct maps maps;
    struct native_unwind *unwind;
    struct native_symbols *symbols;
    struct arena arena; /* of the round */
    const struct py_thread *threads;
    size_t thread_count;
    struct thread_slot *slots;
    size_t slot_count;
    uint8_t *stack_copy;
    struct native_frame *native;
    struct os_thread *os_threads;
    int os_thread_count;
    uint64_t generation;
    unsigned approaches;   /* in this round */
    size_t runner;         /* who was met running last, where nobody is paused; SIZE_MAX: nobody */
    bool maps_outdated;    /* an address was in none of them */
    bool threads_outdated; /* one has begun, or has ended and left its place to another */
    struct stack_counts counts;
    int core_wait_fd; /* our own account, to tell our work from the machine's being full */
};

/* What threading calls the thread, else what the kernel does. */
const char *stack_reader_thread_name(const struct stack_reader *reader, size_t index);
