/* The kernel's account of a whole process, threads that have ended among them, to the nanosecond.
 * Asks no permission. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* 0, or -ESRCH once it is gone; an ended process that nobody has waited for yet still tells. */
int cpu_clock_read(pid_t pid, uint64_t *ret_ns);
