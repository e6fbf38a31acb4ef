/*
 * Address space of the shim's own, by system calls: mmap is one of the functions that it hooks.
 * What was not written to takes no memory.
 */
#pragma once

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All zero; NULL where there is none. syscall() takes its arguments as longs: a plain 0 is half of
 * one. */
static inline void *space_reserve(size_t size)
{
    long at = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L, 0L);
    return at == -1 ? NULL : (void *)at;
}

static inline void space_return(void *at, size_t size)
{
    syscall(SYS_munmap, at, size);
}

/* Zero again. */
static inline void space_empty(void *at, size_t size)
{
    syscall(SYS_madvise, at, size, MADV_DONTNEED);
}
