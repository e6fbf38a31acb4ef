#include "sampler/target/family_member.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/descriptors.h"
#include "sampler/target/proc_file.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* linux/pidfd.h of Linux 6.15, which may be newer than the headers we are built with. */
struct end_info {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t wait_status;
};

enum { END_INFO_MASK = 1 << 3 };
#define END_INFO_GET _IOWR(0xFF, 11, struct end_info)

static size_t members_index(const struct family_members *members, pid_t pid)
{
    size_t low = 0, high = members->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (members->list[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct family_member *family_members_find(const struct family_members *members, pid_t pid)
{
    size_t index = members_index(members, pid);
    return index < members->count && members->list[index].pid == pid ? &members->list[index] : NULL;
}

struct family_member *family_members_add(struct family_members *members,
                                         const struct family_member *member)
{
    size_t count = members->count, index = members_index(members, member->pid);
    if (!(count & (count - 1))) {
        struct family_member *grown =
            realloc(members->list, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return NULL;
        members->list = grown;
    }
    struct family_member *at = &members->list[index];
    memmove(at + 1, at, (count - index) * sizeof *at);
    *at = *member;
    members->count++;
    return at;
}

void family_members_remove(struct family_members *members, struct family_member *member)
{
    cleanup_close(&member->pidfd);
    size_t after = (size_t)(members->list + members->count - (member + 1));
    memmove(member, member + 1, after * sizeof *member);
    members->count--;
}

void family_members_done(struct family_members *members)
{
    for (size_t i = 0; i < members->count; i++)
        cleanup_close(&members->list[i].pidfd);
    free(members->list);
    *members = (struct family_members){ 0 };
}

static uint64_t ticks_ns(uint64_t ticks)
{
    return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int pidfd_take(pid_t pid)
{
    AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 || descriptor_is_spare(fd) ? -1 : TAKE_FD(fd);
}

void family_member_init(struct family_member *member, pid_t pid, pid_t ppid,
                        const struct proc_stat *stat)
{
    *member = (struct family_member){ .pid = pid, .ppid = ppid, .wait_status = -1 };
    member->pidfd = pidfd_take(pid);
    cpu_clock_read(pid, &member->cpu_ns);
    if (!stat)
        return;
    member->group = stat->group;
    member->start_time = stat->start_time;
    member->stack_start = stat->stack_start;
    member->children_before_ns = ticks_ns(stat->children_ticks);
}

static bool pidfd_is_alive(int pidfd)
{
    struct pollfd end = { pidfd, POLLIN, 0 };
    return poll(&end, 1, 0) == 0;
}

/* A main thread may be dead while others live. */
bool family_member_is_alive(const struct family_member *member)
{
    if (member->pidfd >= 0)
        return pidfd_is_alive(member->pidfd);
    struct proc_stat stat;
    return proc_read_pid_stat(member->pid, &stat) == 0 && stat.start_time == member->start_time &&
           ((stat.state != 'Z' && stat.state != 'X') || stat.threads > 1);
}

bool family_member_is_there(const struct family_member *member)
{
    struct proc_stat stat;
    return proc_read_pid_stat(member->pid, &stat) == 0 && stat.start_time == member->start_time;
}

bool family_member_has_execed(struct family_member *member)
{
    struct proc_stat stat;
    if (proc_read_pid_stat(member->pid, &stat) < 0 || stat.start_time != member->start_time ||
        !stat.stack_start || stat.stack_start == member->stack_start)
        return false;
    member->stack_start = stat.stack_start;
    return true;
}

/* The kernel tells it only to those who may look into the process, and to others that it is 0. */
static bool is_ours(pid_t pid)
{
    char path[32];
    struct stat directory; /* what is in it belongs to root once the memory is gone */
    snprintf(path, sizeof path, "/proc/%d", pid);
    return geteuid() == 0 || (stat(path, &directory) == 0 && directory.st_uid == geteuid());
}

/* Of an ended process that nobody has waited for: the 52nd field of its stat. */
static int zombie_wait_status(const struct family_member *member)
{
    enum { FIELD = 52, AFTER_COMMAND = 3 };
    char path[32], text[1024];
    struct proc_stat parsed;
    snprintf(path, sizeof path, "/proc/%d/stat", member->pid);
    if (!is_ours(member->pid) || proc_read_file(AT_FDCWD, path, text, sizeof text) < 0 ||
        proc_parse_stat(text, &parsed) < 0 || parsed.state != 'Z' ||
        parsed.start_time != member->start_time)
        return -1;
    const char *at = strrchr(text, ')') + 1;
    for (int field = AFTER_COMMAND; at && field < FIELD; field++)
        at = strchr(at + 1, ' ');
    return at ? atoi(at) : -1;
}

static int wait_status_find(const struct family_member *member)
{
    int status = zombie_wait_status(member);
    struct end_info info = { .mask = END_INFO_MASK };
    if (status >= 0)
        return status;
    if (member->pidfd >= 0 && ioctl(member->pidfd, END_INFO_GET, &info) == 0 &&
        (info.mask & END_INFO_MASK))
        return info.wait_status;
    return member->wait_status;
}

int family_member_exit_status(const struct family_member *member)
{
    int status = wait_status_find(member);
    if (status < 0)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static uint64_t below_ns_of(const struct family_member *member)
{
    return member->children_before_ns + member->children_told_ns;
}

static bool descends_from(const struct family_members *members, const struct family_member *member,
                          pid_t ancestor)
{
    for (size_t i = 0; member && i < members->count; i++) {
        if (member->ppid == ancestor)
            return true;
        member = family_members_find(members, member->ppid);
    }
    return false;
}

/* Of those whose end is not told yet though they have been waited for, and whoever waited for them,
 * maybe, too: as last read. */
static uint64_t others_gone_ns(const struct family_members *members,
                               const struct family_member *member)
{
    uint64_t sum_ns = 0, ignored;
    for (size_t i = 0; i < members->count; i++) {
        const struct family_member *other = &members->list[i];
        if (other != member && !other->ended && cpu_clock_read(other->pid, &ignored) < 0 &&
            descends_from(members, other, member->ppid))
            sum_ns += other->cpu_ns + below_ns_of(other);
    }
    return sum_ns;
}

uint64_t family_member_final_cpu(const struct family_members *members, struct family_member *member)
{
    struct proc_stat stat;
    struct family_member *parent = family_members_find(members, member->ppid);
    uint64_t below_ns = below_ns_of(member);
    bool tells = member->pidfd >= 0 && cpu_clock_read(member->pid, &member->cpu_ns) == 0;
    if (!parent)
        return member->cpu_ns;
    if (!tells && proc_read_pid_stat(parent->pid, &stat) == 0 &&
        stat.start_time == parent->start_time) {
        uint64_t account_ns = ticks_ns(stat.children_ticks);
        uint64_t known_ns = parent->children_before_ns + parent->children_told_ns + below_ns;
        if (account_ns > known_ns + member->cpu_ns)
            known_ns += others_gone_ns(members, member);
        if (account_ns > known_ns + member->cpu_ns)
            member->cpu_ns = account_ns - known_ns;
    }
    parent->children_told_ns += member->cpu_ns + below_ns;
    return member->cpu_ns;
}
