/*
 * What the shim keeps of each thread. A hook that finds nothing to do touches this one cache line
 * only; all zero is a thread that has not allocated yet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happened below an allocator of CPython while it resized a block whose size is unknown. */
struct resize_watch {
    size_t usable_before, usable_after; /* malloc resized it; 0: it did not */
    size_t copied;                      /* at most, in one go */
};

struct shim_thread {
    int64_t countdown;      /* bytes to the next sample; below zero: now */
    int64_t copy_countdown; /* the same of copied bytes */
    bool inside;            /* of the shim or an allocator: what is asked for now is not counted */
    bool has_gil;           /* what is told of now was asked of CPython, by who has its GIL */
    uint32_t tid;
    uint32_t term; /* of the recorder when the distances were drawn; 0: they were not */
    int64_t beyond, copy_beyond; /* what is left once the countdown is over */
    uint64_t random;
    struct resize_watch *watch;
};

/* Initial-exec: to reach it costs one load, and never calls anything that allocates. */
extern __thread struct shim_thread shim_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
