/* The kernel's account of a whole process, threads that have ended among them, to the nanosecond,
 * and of our own waiting. Asks no permission. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* 0, or -ESRCH once it is gone; an ended process that nobody has waited for yet still tells. */
int cpu_clock_read(pid_t pid, uint64_t *ret_ns);

/* A descriptor for the calling thread's account, or a negative errno; close() closes it. */
int core_wait_open(void);

/* How long that thread has waited for a core in its life; 0 where the kernel does not tell. */
uint64_t core_wait_read(int fd);
