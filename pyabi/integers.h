/* Python ints of the target. */
#pragma once

#include "pyabi/layout.h"

#include <stdint.h>

/*
 * 0, or -ERANGE for an int that 64 bits cannot hold, -EBADMSG, -EFAULT, -ESRCH. What fits uint64_t
 * alone (an identity of a thread is an unsigned long) comes as its bit pattern.
 */
int integer_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                 int64_t *ret_value);
