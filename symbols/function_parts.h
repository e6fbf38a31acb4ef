/*
 * The outlined parts (".cold") of one function in an object whose local symbols are stripped.
 * Debian's CPython 3.13 and later keep most instructions of the evaluation loop in such a part,
 * which no symbol names. Reads the code and the unwind table from target memory, which is not
 * written to while it runs.
 */
#pragma once

#include "symbols/unwind_tables.h"

struct code_range {
    remote_addr start, end;
};

/* How many were found; 0 where nothing is known of the architecture's jumps. */
size_t function_parts_find(struct remote *memory, const struct unwind_table *table,
                           struct code_range function, struct code_range *ret, size_t capacity);
