/*
 * What each thread did on each stitched stack. Bounded: beyond the most there may be, a stack's
 * further threads are one, so that only who it was is lost.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/tally.h"

#define STACK_TIMES_MAX ((size_t)16384)

struct stack_time {
    uint32_t stack, thread; /* numbers; the thread NOTHING: of several */
    uint64_t samples, hits; /* looks; what counts of CPU and idle time */
    uint64_t python_ns, native_ns, kernel_ns, idle_ns, wait_ns[WAIT_KINDS];
};

struct stack_times { /* all zero is empty; as many items as the index has keys */
    struct stack_time *items;
    struct key_index index;
    size_t room;
};

/* 0 or -ENOMEM, as below. */
int stack_times_add(struct stack_times *times, uint32_t stack, uint32_t thread,
                    const struct charge *charge, uint64_t hits);

/* Stacks got new numbers, `moved[old]`, or are gone: STACK_NONE. */
int stack_times_move(struct stack_times *times, const uint32_t *moved);

/* The same for threads: those that are gone are NOTHING, one for each stack. */
int stack_times_move_threads(struct stack_times *times, const uint32_t *moved);

void stack_times_done(struct stack_times *times);
