/*
 * How much memory a process holds, and how much of that is its own: what the kernel tells when it
 * walks all of the page tables. That takes a millisecond for each GB, during which mappings stand
 * still: ask rarely.
 */
#pragma once

#include "sampler/base/event.h"
#include "sampler/target/process.h"

/* 0, -ESRCH (gone, or Linux before 4.14), -EPERM. */
int footprint_read(const struct process *process, struct footprint *ret);

/* The most that we ourselves ever held; 0 where /proc is missing. getrusage() would tell what held
 * the process that started us, too. */
uint64_t footprint_own_peak(void);
