#include "sampler/target/cpu_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int cpu_clock_read(pid_t pid, uint64_t *ret_ns)
{
    /* what clock_getcpuclockid() makes of it, without asking the kernel first whether it is there
     */
    clockid_t clock = ~pid * 8 + 2;
    struct timespec used;
    if (clock_gettime(clock, &used) < 0)
        return -ESRCH;
    *ret_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    return 0;
}

int core_wait_open(void)
{
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

uint64_t core_wait_read(int fd)
{
    char text[128];
    uint64_t waited_ns = 0;
    ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return sscanf(text, "%*u %" SCNu64, &waited_ns) == 1 ? waited_ns : 0;
}
