/* From a place in the bytecode to a place in the source. Pure: works on a copy of a code object's
 * line table. */
#pragma once

#include "pyabi/layout.h"

#include <stddef.h>
#include <stdint.h>

struct code_position {
    int line;       /* 0: unknown; CPython itself numbers the prologue of a module so (3.11+) */
    int column;     /* 1-based, in UTF-8 bytes; 0: unknown */
    int end_line;   /* the expression's last line; `line` where the table does not tell */
    int end_column; /* the column behind its last byte; 0: unknown */
};

/*
 * `byte_offset` of the running instruction; negative: not started, at `first_line`. An instruction
 * to which the compiler gave no line (cleanup that it invented; a traceback would say None) counts
 * to the line before it in the table, without columns. 0, -ENOENT when the table ends before that
 * offset (a program may have replaced it by an empty one), -EBADMSG when it is broken.
 */
int lines_find(enum line_table_shape shape, const uint8_t *table, size_t size, int first_line,
               int64_t byte_offset, struct code_position *ret);
