/*
 * Which of a process's threads is it, when its number does not say so: by its C stack or by the C
 * library's struct for it. glibc on x86-64, and what comes from a fork that Python did not see.
 */
#pragma once

#include "sampler/target/threads.h"
#include "symbols/maps.h"

/* By the C library's struct, whose address is pthread_self(): NULL when none of them stands there.
 */
const struct os_thread *thread_owner_by_struct(struct remote *memory, remote_addr address,
                                               const struct os_thread *threads, int count);

/* On whose stack the address lies: NULL when that cannot be told. */
const struct os_thread *thread_owner_by_stack(struct process *process, const struct maps *maps,
                                              remote_addr address, const struct os_thread *threads,
                                              int count);
