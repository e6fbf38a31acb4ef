/*
 * memcpy and its family: a subtraction, then the next function. Must not be compiled into calls of
 * itself, and works before the next functions are known.
 */
#define _GNU_SOURCE 1 /* mempcpy */

#include "sampler/shim/hooks.h"

#include "sampler/shim/account.h"

#include <string.h>

/* volatile: a compiler knows what such a loop does, and would call memmove. */
void *memmove_early(void *to, const void *from, size_t size)
{
    volatile unsigned char *into = to;
    const volatile unsigned char *out = from;
    if (into < out) {
        for (size_t i = 0; i < size; i++)
            into[i] = out[i];
    } else {
        while (size--)
            into[size] = out[size];
    }
    return to;
}

/* The first and the last word, which may be partly the same; both are loaded before any is stored.
 */
#define MOVE_ENDS(bytes, type)                                                                     \
    struct word_##bytes {                                                                          \
        type value;                                                                                \
    } __attribute__((packed, may_alias));                                                          \
    static inline void move_ends_##bytes(char *to, const char *from, size_t size)                  \
    {                                                                                              \
        type first = ((const struct word_##bytes *)from)->value;                                   \
        type last = ((const struct word_##bytes *)(from + size - bytes))->value;                   \
        ((struct word_##bytes *)to)->value = first;                                                \
        ((struct word_##bytes *)(to + size - bytes))->value = last;                                \
    }

MOVE_ENDS(2, uint16_t)
MOVE_ENDS(4, uint32_t)
MOVE_ENDS(8, uint64_t)

enum { SMALL = 16 };

/* Most copies are of a few bytes: to pass these on would take as long again as to copy them. */
static inline void *move_small(void *to, const void *from, size_t size)
{
    if (size >= 8)
        move_ends_8(to, from, size);
    else if (size >= 4)
        move_ends_4(to, from, size);
    else if (size >= 2)
        move_ends_2(to, from, size);
    else if (size)
        *(unsigned char *)to = *(const unsigned char *)from;
    return to;
}

static __attribute__((noinline)) void *move_sampled(void *to, const void *from, size_t size)
{
    account_copy(size);
    return next.memmove(to, from, size);
}

/* Old programs were linked against a memcpy that may overlap: ours is memmove, as libc's is. */
static inline void *move(void *to, const void *from, size_t size)
{
    if (copy_passes(size))
        return move_sampled(to, from, size);
    return size <= SMALL ? move_small(to, from, size) : next.memmove(to, from, size);
}

HOOK_EXPORTED void *memcpy(void *to, const void *from, size_t size)
{
    return move(to, from, size);
}

HOOK_EXPORTED void *memmove(void *to, const void *from, size_t size)
{
    return move(to, from, size);
}

HOOK_EXPORTED void *mempcpy(void *to, const void *from, size_t size)
{
    return (char *)move(to, from, size) + size;
}

static size_t length_early(const char *text, size_t limit)
{
    size_t length = 0;
    while (length < limit && ((const volatile char *)text)[length])
        length++;
    return length;
}

HOOK_EXPORTED char *stpcpy(char *to, const char *from)
{
    if (UNLIKELY(!next.stpcpy)) {
        size_t length = length_early(from, SIZE_MAX);
        memmove_early(to, from, length + 1);
        return to + length;
    }
    char *end = next.stpcpy(to, from);
    account_copied((size_t)(end - to) + 1);
    return end;
}

HOOK_EXPORTED char *strcpy(char *to, const char *from)
{
    stpcpy(to, from);
    return to;
}

/* What is filled up with NULs behind the text is written, not copied. */
HOOK_EXPORTED char *stpncpy(char *to, const char *from, size_t size)
{
    if (UNLIKELY(!next.stpncpy)) {
        size_t length = length_early(from, size);
        memmove_early(to, from, length);
        for (size_t i = length; i < size; i++)
            ((volatile char *)to)[i] = 0;
        return to + length;
    }
    char *end = next.stpncpy(to, from, size);
    account_copied((size_t)(end - to));
    return end;
}

HOOK_EXPORTED char *strncpy(char *to, const char *from, size_t size)
{
    stpncpy(to, from, size);
    return to;
}

static char *end_of(char *text)
{
    return text + (UNLIKELY(!next.stpcpy) ? length_early(text, SIZE_MAX) : strlen(text));
}

/* What stands there already is looked at, not copied. */
HOOK_EXPORTED char *strcat(char *to, const char *from)
{
    stpcpy(end_of(to), from);
    return to;
}

HOOK_EXPORTED char *strncat(char *to, const char *from, size_t size)
{
    size_t length = UNLIKELY(!next.stpcpy) ? length_early(from, size) : strnlen(from, size);
    char *end = mempcpy(end_of(to), from, length);
    *end = '\0';
    return to;
}

HOOK_EXPORTED void *memccpy(void *to, const void *from, int last, size_t size)
{
    if (UNLIKELY(!next.memccpy)) {
        size_t length = 0;
        while (length < size &&
               ((const volatile unsigned char *)from)[length] != (unsigned char)last)
            length++;
        memmove_early(to, from, length + (length < size));
        return length < size ? (char *)to + length + 1 : NULL;
    }
    char *end = next.memccpy(to, from, last, size);
    account_copied(end ? (size_t)(end - (char *)to) : size);
    return end;
}

/*
 * The same where the compiler knows how much room there is (_FORTIFY_SOURCE). What does not fit
 * ends in the next function, which ends the program.
 */
#define MOVE_CHECKED(function, unchecked)                                                          \
    HOOK_EXPORTED void *function(void *to, const void *from, size_t size, size_t room)             \
    {                                                                                              \
        return UNLIKELY(size > room) ? next.function(to, from, size, room)                         \
                                     : unchecked(to, from, size);                                  \
    }

MOVE_CHECKED(__memcpy_chk, memcpy)
MOVE_CHECKED(__memmove_chk, memmove)
MOVE_CHECKED(__mempcpy_chk, mempcpy)

HOOK_EXPORTED char *__stpcpy_chk(char *to, const char *from, size_t room)
{
    if (UNLIKELY(!next.__stpcpy_chk))
        return stpcpy(to, from);
    char *end = next.__stpcpy_chk(to, from, room);
    account_copied((size_t)(end - to) + 1);
    return end;
}

HOOK_EXPORTED char *__strcpy_chk(char *to, const char *from, size_t room)
{
    __stpcpy_chk(to, from, room);
    return to;
}

HOOK_EXPORTED char *__stpncpy_chk(char *to, const char *from, size_t size, size_t room)
{
    return UNLIKELY(size > room) ? next.__stpncpy_chk(to, from, size, room)
                                 : stpncpy(to, from, size);
}

HOOK_EXPORTED char *__strncpy_chk(char *to, const char *from, size_t size, size_t room)
{
    __stpncpy_chk(to, from, size, room);
    return to;
}

/* What does not end within its room, or would not with what comes behind it, is the next one's. */
static bool has_room(const char *to, const char *from, size_t size, size_t room)
{
    size_t length = strnlen(to, room);
    return length < room && strnlen(from, size) < room - length;
}

HOOK_EXPORTED char *__strcat_chk(char *to, const char *from, size_t room)
{
    return has_room(to, from, room, room) ? strcat(to, from) : next.__strcat_chk(to, from, room);
}

HOOK_EXPORTED char *__strncat_chk(char *to, const char *from, size_t size, size_t room)
{
    return has_room(to, from, size, room) ? strncat(to, from, size)
                                          : next.__strncat_chk(to, from, size, room);
}
