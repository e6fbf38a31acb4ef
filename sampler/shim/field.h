/*
 * Words of CPython's structs, at offsets that are known at run time only. Who cannot be sure of a
 * pointer reads with care: the kernel is asked about each page before it is read, and what it
 * cannot read is 0.
 */
#pragma once

#include "sampler/shim/thread.h"

enum { FIELD_PAGES = 64 };

/* All zero reads without care. */
struct field_reader {
    bool careful;
    bool failed;                  /* something could not be read */
    uintptr_t pages[FIELD_PAGES]; /* that were found readable: their numbers, by the last bits */
};

/* Changes errno. */
bool field_is_readable(const void *address);

/* The same of a range, which a careful reader remembers; nothing is once it has failed. */
bool field_probe(struct field_reader *reader, const void *at, size_t size);

static inline bool field_holds(struct field_reader *reader, const void *at, size_t size)
{
    return !UNLIKELY(reader->careful) || field_probe(reader, at, size);
}

/* The builtin is a load, where memcpy would be a call of our own hook. */
#define FIELD_READ(type, name)                                                                     \
    static inline type field_##name(struct field_reader *reader, const void *at)                   \
    {                                                                                              \
        type value = 0;                                                                            \
        if (field_holds(reader, at, sizeof value))                                                 \
            __builtin_memcpy(&value, at, sizeof value);                                            \
        return value;                                                                              \
    }

FIELD_READ(uint8_t, u8)
FIELD_READ(uint16_t, u16)
FIELD_READ(uint32_t, u32)
FIELD_READ(uint64_t, u64)
FIELD_READ(const void *, pointer)
