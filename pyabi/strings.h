/*
 * str and bytes objects of the target, copied out. str becomes UTF-8 that is always valid and
 * always ends at its first NUL: a lone surrogate is shown as U+FFFD, a NUL as U+2400. Other control
 * characters stay: they belong to the name, and how to show them is the renderer's business.
 */
#pragma once

#include "pyabi/layout.h"

#include <stdint.h>

#define STRING_SIZE_MAX ((size_t)1 << 20) /* bytes of character data, as the target stores them */
#define BYTES_SIZE_MAX ((size_t)64 << 20)

/* Where a str keeps its characters. */
struct string_plan {
    remote_addr data;    /* 0 when only the object's pointer tells, and that lay outside the copy */
    remote_addr pointer; /* then: where that pointer stands; else 0 */
    uint32_t size;       /* bytes of data */
    uint8_t width;       /* bytes a character: 1, 2, 4 */
    bool ascii;
};

/* The head that every str has, also the shortest; a longer copy is welcome, since the data often
 * follows. */
size_t string_head_size(const struct py_layout *layout);

/* From the first `size` bytes of the str at `object`. -EBADMSG when that is no str. */
int string_plan(const struct py_layout *layout, remote_addr object, const void *head, size_t size,
                struct string_plan *ret);

/* `bytes` holds plan->size bytes of character data. Bytes for the text, its NUL included: at most
 * this. */
size_t string_text_size(const struct string_plan *plan);

/* Writes the text and its NUL; returns its length, or -EBADMSG when those are no such characters.
 */
long string_decode(const struct string_plan *plan, const void *bytes, char *into);

/* A whole str as a new text. 0, -EBADMSG (no str, or over STRING_SIZE_MAX), -EFAULT, -ESRCH,
 * -ENOMEM. */
int string_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                char **ret_text);

/* A bytes object of at most `limit` bytes (and never over BYTES_SIZE_MAX; longer is -EBADMSG) as a
 * new buffer, which is not NULL even when the object is empty. */
int bytes_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
               size_t limit, uint8_t **ret_data, size_t *ret_size);
