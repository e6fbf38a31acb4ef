#include "sampler/target/descriptors.h"

#include <sys/resource.h>

void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

bool descriptor_is_spare(int fd)
{
    enum { SPARE = 32 };
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd + SPARE >= limit.rlim_cur;
}
