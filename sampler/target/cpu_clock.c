#include "sampler/target/cpu_clock.h"

#include <errno.h>
#include <time.h>

int cpu_clock_read(pid_t pid, uint64_t *ret_ns)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used) < 0)
        return -ESRCH;
    *ret_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    return 0;
}
