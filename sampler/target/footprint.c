#include "sampler/target/footprint.h"

#include "sampler/target/proc_file.h"

#include <fcntl.h>

enum { TEXT_SIZE = 2048, STATUS_SIZE = 8192 };

/* "Name:   12 kB" */
static uint64_t bytes_of(const char *text, const char *name)
{
    return proc_find_number(text, name, 10) * 1024;
}

int footprint_read(const struct process *process, struct footprint *ret)
{
    char text[TEXT_SIZE];
    int length = proc_read_file(process->proc_fd, "smaps_rollup", text, sizeof text);
    if (length < 0)
        return length;
    *ret = (struct footprint){
        .rss_bytes = bytes_of(text, "Rss"),
        .pss_bytes = bytes_of(text, "Pss"),
        .shared_bytes = bytes_of(text, "Shared_Clean") + bytes_of(text, "Shared_Dirty"),
        .private_bytes = bytes_of(text, "Private_Clean") + bytes_of(text, "Private_Dirty"),
        .anonymous_bytes = bytes_of(text, "Anonymous"),
    };
    return 0;
}

uint64_t footprint_own_peak(void)
{
    char status[STATUS_SIZE];
    if (proc_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status) < 0)
        return 0;
    return bytes_of(status, "VmHWM");
}
