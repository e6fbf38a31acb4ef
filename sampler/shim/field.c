#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/field.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE_SHIFT = 12, /* where pages are larger some are asked about twice */
    MASK_SIZE = 8,   /* of a set of signals, as the kernel has it */
};

/* Asked with a call that the kernel refuses in any case: whether it could read there comes first.
 */
bool field_is_readable(const void *address)
{
    const long no_such_way = -1;
    syscall(SYS_rt_sigprocmask, no_such_way, address, NULL, (long)MASK_SIZE);
    return errno != EFAULT;
}

bool field_probe(struct field_reader *reader, const void *at, size_t size)
{
    uintptr_t start = (uintptr_t)at, end = start + size;
    reader->failed |= end < start;
    for (uintptr_t page = start >> PAGE_SHIFT; !reader->failed && page << PAGE_SHIFT < end;
         page++) {
        uintptr_t *known = &reader->pages[page % FIELD_PAGES];
        reader->failed =
            !page || (*known != page && !field_is_readable((void *)(page << PAGE_SHIFT)));
        *known = page;
    }
    return !reader->failed;
}
