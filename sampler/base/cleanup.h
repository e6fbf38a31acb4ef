/* Scope guards. A local that owns something carries one; TAKE_PTR hands the thing over. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

/* Defines `NAMEp`, the guard that calls `NAME` on the variable's value unless it is NULL. */
#define DEFINE_CLEANUP(type, name)                                                                 \
    static inline void name##p(type *slot)                                                         \
    {                                                                                              \
        if (*slot)                                                                                 \
            name(*slot);                                                                           \
    }

static inline void cleanup_free(void *slot)
{
    free(*(void **)slot);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

DEFINE_CLEANUP(FILE *, fclose)
DEFINE_CLEANUP(DIR *, closedir)

#define AUTO_FREE CLEANUP(cleanup_free)
#define AUTO_CLOSE CLEANUP(cleanup_close)
#define AUTO_FCLOSE CLEANUP(fclosep)
#define AUTO_CLOSEDIR CLEANUP(closedirp)

#define TAKE(variable, empty)                                                                      \
    ({                                                                                             \
        __typeof__(variable) *slot_ = &(variable);                                                 \
        __typeof__(variable) taken_ = *slot_;                                                      \
        *slot_ = (empty);                                                                          \
        taken_;                                                                                    \
    })
#define TAKE_PTR(variable) TAKE(variable, NULL)
#define TAKE_FD(variable) TAKE(variable, -1)
