/*
 * Errors are negative errno values with one meaning each in this program; set-up calls also tell
 * why in one sentence. Libraries never print: the program does, once.
 *
 *   -ESRCH     the target (or thread) is gone          -EFAULT   that address cannot be read
 *   -EAGAIN    torn: the target moved while we read    -EBADMSG  read whole, but implausible
 *   -ENOTSUP   no layout for this CPython              -EPERM    not allowed
 *   -ENOENT    looked for and not there                -ENOMEM   out of memory
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

struct failure {
    int code;       /* negative errno */
    char text[768]; /* one sentence: what was tried and what would help */
};

/* Fills `why` (which may be NULL) and returns `code`, so that it can stand in a return statement.
 */
int failure_set(struct failure *why, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts text in front of what `why` already says; returns its code. */
int failure_prefix(struct failure *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
