/*
 * A probe prints what one CPython release's own headers say: one line for each field, shape and
 * debug offset that its rows name. `print_layout` prints the same of our data, and the test
 * compares the two. A probe knows nothing of pyabi: it would prove nothing otherwise.
 */
#pragma once

#define Py_BUILD_CORE 1
#include <Python.h>

#include <stddef.h>
#include <stdio.h>

/* A struct's member: offset and width. */
#define FIELD(group, field, type, member)                                                          \
    printf(#group "." #field " %zu %zu\n", offsetof(type, member), sizeof(((type *)NULL)->member))

/* Where something begins: it has no width of its own. */
#define PLACE(group, field, offset) printf(#group "." #field " %zu 0\n", (size_t)(offset))

#define SHAPE(name, value) printf("shape " #name " %lld\n", (long long)(value))

/* Where in _Py_DebugOffsets a value of ours stands: as it is, as a sum or as a difference. */
#define ENTRY(member) offsetof(struct _Py_DebugOffsets, member)
#define TOLD_FROM(group, field, at, plus, minus)                                                   \
    printf("told " #group "." #field " %zu +%zu -%zu\n", at, plus, minus)
#define TOLD(group, field, member) TOLD_FROM(group, field, ENTRY(member), (size_t)0, (size_t)0)
#define TOLD_SUM(group, field, member, plus)                                                       \
    TOLD_FROM(group, field, ENTRY(member), ENTRY(plus), (size_t)0)
#define TOLD_DIFFERENCE(group, field, member, minus)                                               \
    TOLD_FROM(group, field, ENTRY(member), (size_t)0, ENTRY(minus))

/* Where a bit-field of a string's state begins: the bit that is set when it holds 1. */
#define STATE_SHIFT(name, bit_field)                                                               \
    ({                                                                                             \
        __typeof__(((PyASCIIObject *)NULL)->state) state_ = { .bit_field = 1 };                    \
        uint32_t word_;                                                                            \
        _Static_assert(sizeof(state_) == sizeof(word_), "the state is one word");                  \
        memcpy(&word_, &state_, sizeof(word_));                                                    \
        SHAPE(name, __builtin_ctz(word_));                                                         \
    })
