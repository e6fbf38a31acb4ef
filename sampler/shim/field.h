/* Words of CPython's structs, at offsets that are known at run time only. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint16_t field_u16(const void *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t field_u32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t field_u64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline const void *field_pointer(const void *at)
{
    const void *value;
    memcpy(&value, at, sizeof value);
    return value;
}
