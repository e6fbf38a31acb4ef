/*
 * What the seccomp filters of a thread would say to system calls, asked without making them: their
 * programs are read from the kernel, which root alone may do, and run here.
 */
#pragma once

#include "sampler/target/trace.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { SECCOMP_ARGUMENTS = 6 };

struct seccomp_call {
    const char *name;
    int number;
    uint64_t arguments[SECCOMP_ARGUMENTS];
};

/*
 * Do all of them pass? 0; -EACCES and the first that does not; -EPERM: the filters cannot be read;
 * -EBADMSG: one makes no sense.
 */
int seccomp_check(const struct pause *pause, const struct seccomp_call *calls, size_t count,
                  const struct seccomp_call **ret_refused);

/* One program's answer to one call (linux/seccomp.h, SECCOMP_RET_…): 0, or -EBADMSG. */
int seccomp_run(const struct sock_filter *program, size_t length, const struct seccomp_data *data,
                uint32_t *ret);
