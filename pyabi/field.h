/* A field of a CPython struct, out of bytes that were copied from the target. The caller has
 * checked that the copy reaches to the field's end. */
#pragma once

#include "pyabi/layout.h"

#include <string.h>

#define DEFINE_FIELD(name, type)                                                                   \
    static inline type name(const void *copy, struct py_offset offset)                             \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, (const char *)copy + offset_of(offset), sizeof(value));                     \
        return value;                                                                              \
    }

DEFINE_FIELD(field_u8, uint8_t)
DEFINE_FIELD(field_u32, uint32_t)
DEFINE_FIELD(field_u64, uint64_t)
DEFINE_FIELD(field_address, remote_addr)

#undef DEFINE_FIELD

/* Objects stand at multiples of 8; anything else is no object. */
static inline bool object_plausible(remote_addr object)
{
    return object != 0 && object % 8 == 0;
}
