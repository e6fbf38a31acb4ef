/*
 * The code objects that samples met: each has an id, and is told of before a record names it. A
 * code object that takes the address of one that died is another one: where its texts and its table
 * lie tells, and as they may have taken their predecessors' places, too, their lengths and ends.
 * While somebody listens nothing is forgotten; when there are too many, the rest has no id.
 * Lock-free; holds no references.
 */
#pragma once

#include "sampler/shim/field.h"
#include "sampler/shim/ring_layout.h"

/* A code object's own text, borrowed while it runs: name and file in UTF-8. */
struct code_text {
    int32_t first_line;
    const char *name, *file;
    size_t name_size, file_size;
    const uint8_t *table;
    size_t table_size;
};

/* Of no code of the program: a trampoline that CPython makes for itself. */
#define CODE_INTERNAL UINT32_MAX

/* The id of the code object at `code`, whose layout this is; 0 where there is none left, or the
 * reader has failed. */
uint32_t code_identify(const struct ring_python *layout, struct field_reader *reader,
                       const void *code);

/* Has this process told of it? */
bool code_is_told(uint32_t id);
void code_set_told(uint32_t id);

/* As it stands there now. What is not ASCII is converted into `buffer`, and cut to it. */
void code_text_read(const struct ring_python *layout, struct field_reader *reader, const void *code,
                    char *buffer, size_t size, struct code_text *ret);

/* Has any been met that got none? */
bool codes_are_full(void);

/* For the next who listens. Threads that are in the middle of it give ids that are nobody's. */
void codes_forget(void);

/* In a child after fork: it has told of nothing. */
void codes_untell(void);
