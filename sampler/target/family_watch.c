#include "sampler/target/family_watch.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/family_member.h"
#include "sampler/target/proc_file.h"
#include "sampler/target/process_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum {
    POLL_NS = 10000000,
    EVENTS_BEAT_NS = 100000000, /* where the kernel tells us, only CPU time is left to look at */
    SCAN_NS = 1000000000,
    COST_FACTOR = 100, /* a beat is followed by so many times its cost: 1 % of a core at most */
    FRESH = 100,       /* looks at a new program, one a beat; later */
    STALE = 10,        /* one in so many beats, where there are more than … */
    CHECKED = 16,      /* members a beat, and in addition */
    SHARE_CHECKED = 8, /* one in so many, so that the ended are forgotten as fast as others end */
    NEW_PIDS = 256,    /* more than these: a scan of all is cheaper */
    FIRED = 64,
    LAG = 4,   /* beats after which a pid that was given is sure to be seen in /proc */
    LATE = 64, /* ended members about whom somebody may still have to say that they began */
};

struct family_watch {
    bool follow;
    bool adding;   /* those that are found now ran before */
    int events_fd; /* -1: polling */
    int epoll_fd;
    struct family_members members;
    size_t alive;
    struct family_event *queue;
    size_t queue_first, queue_count;
    uint64_t beat_ns, scan_ns, glance_ns; /* the next ones */
    pid_t glanced;                        /* the newest at the last glance */
    int newest_fd;
    pid_t newest[LAG]; /* pids that the kernel gave last, at the last beats; the oldest first */
    size_t turn;
    pid_t last_ended[LATE];
    size_t ended_count;
    int error; /* -ENOMEM */
};

void family_watch_close(struct family_watch *watch)
{
    if (!watch)
        return;
    if (watch->events_fd >= 0)
        process_events_close(watch->events_fd);
    cleanup_close(&watch->epoll_fd);
    cleanup_close(&watch->newest_fd);
    family_members_done(&watch->members);
    free(watch->queue);
    free(watch);
}

DEFINE_CLEANUP(struct family_watch *, family_watch_close)

static void event_add(struct family_watch *watch, struct family_event event)
{
    size_t count = watch->queue_count;
    if (watch->queue_first == count)
        watch->queue_first = watch->queue_count = count = 0;
    if (!(count & (count - 1))) {
        struct family_event *grown = realloc(watch->queue, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown) {
            watch->error = -ENOMEM;
            return;
        }
        watch->queue = grown;
    }
    watch->queue[watch->queue_count++] = event;
}

static void epoll_add(struct family_watch *watch, int fd, pid_t pid)
{
    struct epoll_event wanted = { .events = EPOLLIN, .data.u64 = (uint64_t)pid };
    epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &wanted);
}

/* ---- members ---- */

static struct family_member *member_find_alive(struct family_watch *watch, pid_t pid)
{
    struct family_member *member = family_members_find(&watch->members, pid);
    return member && !member->ended ? member : NULL;
}

static void member_join(struct family_watch *watch, pid_t pid, pid_t ppid,
                        const struct proc_stat *stat)
{
    struct family_member one;
    family_member_init(&one, pid, ppid, stat);
    struct family_member *member = family_members_add(&watch->members, &one);
    if (!member) {
        cleanup_close(&one.pidfd);
        watch->error = -ENOMEM;
        return;
    }
    watch->alive++;
    if (member->pidfd >= 0)
        epoll_add(watch, member->pidfd, pid);
    event_add(watch, (struct family_event){ .change = FAMILY_JOINED,
                                            .pid = pid,
                                            .ppid = ppid,
                                            .forked = !watch->adding,
                                            .exit_status = -1,
                                            .cpu_ns = member->cpu_ns });
}

/* Who loses its parent is waited for by who adopts it: told by /proc, or else, by what a subreaper
 * above would do. */
static void orphans_hand_on(struct family_watch *watch, const struct family_member *parent)
{
    for (size_t i = 0; i < watch->members.count; i++) {
        struct family_member *orphan = &watch->members.list[i];
        struct proc_stat stat;
        if (orphan->ended || orphan->ppid != parent->pid)
            continue;
        bool tells =
            proc_read_pid_stat(orphan->pid, &stat) == 0 && stat.start_time == orphan->start_time;
        orphan->ppid = tells ? stat.parent : parent->ppid;
    }
}

static void member_end(struct family_watch *watch, struct family_member *member)
{
    orphans_hand_on(watch, member);
    event_add(watch,
              (struct family_event){ .change = FAMILY_ENDED,
                                     .pid = member->pid,
                                     .exit_status = family_member_exit_status(member),
                                     .cpu_ns = family_member_final_cpu(&watch->members, member) });
    if (member->pidfd >= 0)
        epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, member->pidfd, NULL);
    cleanup_close(&member->pidfd);
    member->pidfd = -1;
    member->ended = true;
    watch->last_ended[watch->ended_count++ % LATE] = member->pid;
    watch->alive--;
}

static void member_forget_gone(struct family_watch *watch, pid_t pid)
{
    struct family_member *member = family_members_find(&watch->members, pid);
    if (member && member->ended && !family_member_is_there(member))
        family_members_remove(&watch->members, member);
}

static void member_exec(struct family_watch *watch, struct family_member *member)
{
    member->looks = 0;
    cpu_clock_read(member->pid, &member->cpu_ns);
    event_add(watch, (struct family_event){ .change = FAMILY_EXECED,
                                            .pid = member->pid,
                                            .exit_status = -1,
                                            .stack_start = member->stack_start,
                                            .cpu_ns = member->cpu_ns });
}

/* ---- finding them in /proc ---- */

static bool is_process(pid_t pid)
{
    char path[32], status[8192];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return proc_read_file(AT_FDCWD, path, status, sizeof status) > 0 &&
           proc_find_number(status, "Tgid", 10) == (uint64_t)pid;
}

/*
 * Began after a member, in that member's process group, below a parent of another session: its own
 * parent was a member that ended before it was seen, and it was adopted. A parent in its session
 * may be a shell with jobs of its own. Times are in ticks: only of one that is fresh we know that
 * it began later in the same tick.
 */
static bool is_orphan_of_family(const struct family_watch *watch, const struct proc_stat *stat,
                                bool fresh)
{
    struct proc_stat parent;
    if (watch->adding || proc_read_pid_stat(stat->parent, &parent) < 0 ||
        parent.session == stat->session)
        return false;
    for (size_t i = 0; i < watch->members.count; i++)
        if (watch->members.list[i].group == stat->group &&
            watch->members.list[i].start_time < stat->start_time + fresh)
            return true;
    return false;
}

/* `fresh`: its pid was given since the watch was opened. */
static bool newcomer_consider(struct family_watch *watch, pid_t pid, bool fresh)
{
    struct proc_stat stat;
    member_forget_gone(watch, pid);
    if (family_members_find(&watch->members, pid) || proc_read_pid_stat(pid, &stat) < 0)
        return false;
    if (!member_find_alive(watch, stat.parent) && !is_orphan_of_family(watch, &stat, fresh))
        return false;
    if (!is_process(pid) || pid == getpid())
        return false;
    member_join(watch, pid, stat.parent, &stat);
    return true;
}

/* Again as long as somebody is found: a child may stand before its parent. */
static void newcomers_scan(struct family_watch *watch)
{
    bool found = true;
    while (found && !watch->error) {
        found = false;
        AUTO_CLOSEDIR DIR *proc = opendir("/proc");
        for (struct dirent *entry; proc && (entry = readdir(proc));) {
            pid_t pid = proc_parse_id(entry->d_name);
            found |= pid > 0 && newcomer_consider(watch, pid, false);
        }
    }
}

/* The pid that was given last: the last word of /proc/loadavg (proc(5)); -1: not told. */
static pid_t newest_pid_read(const struct family_watch *watch)
{
    char text[128];
    ssize_t length = pread(watch->newest_fd, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const char *last = strrchr(text, ' ');
    return last ? proc_parse_id(last + 1) : -1;
}

/*
 * Pids are given in ascending order, so those of the last few beats are all there is to consider:
 * again and again, because a pid is given before /proc shows it, and who is to make it show may
 * have to wait for a core in between.
 */
static void newcomers_find(struct family_watch *watch)
{
    pid_t newest = newest_pid_read(watch), from = watch->newest[0];
    if (newest < from || newest - from > NEW_PIDS)
        newcomers_scan(watch);
    for (pid_t pid = from + 1; pid <= newest && newest - from <= NEW_PIDS; pid++)
        newcomer_consider(watch, pid, true);
}

static void newcomers_beat(struct family_watch *watch)
{
    newcomers_find(watch);
    memmove(watch->newest, watch->newest + 1, (LAG - 1) * sizeof *watch->newest);
    watch->newest[LAG - 1] = newest_pid_read(watch);
}

static uint64_t next_after(uint64_t now_ns, uint64_t begin_ns, uint64_t least_ns)
{
    uint64_t gap_ns = COST_FACTOR * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
    return now_ns + (gap_ns > least_ns ? gap_ns : least_ns);
}

/*
 * Whenever somebody comes by, the pids that are new since then; what /proc does not show yet is
 * left to the beat.
 */
static void newcomers_glance(struct family_watch *watch, uint64_t now_ns)
{
    if (now_ns < watch->glance_ns)
        return;
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pid_t newest = newest_pid_read(watch), from = watch->glanced;
    watch->glanced = newest;
    for (pid_t pid = from + 1; pid <= newest && newest - from <= NEW_PIDS; pid++)
        newcomer_consider(watch, pid, true);
    watch->glance_ns = next_after(now_ns, begin_ns, 0);
}

/* ---- what the kernel tells ---- */

static void notice_take(struct family_watch *watch, const struct process_notice *notice)
{
    struct proc_stat stat;
    struct family_member *member = member_find_alive(watch, notice->pid);
    switch (notice->news) {
    case PROCESS_FORKED:
        member_forget_gone(watch, notice->pid);
        if (watch->follow && !family_members_find(&watch->members, notice->pid) &&
            member_find_alive(watch, notice->parent))
            member_join(watch, notice->pid, notice->parent,
                        proc_read_pid_stat(notice->pid, &stat) < 0 ? NULL : &stat);
        break;
    case PROCESS_EXECED:
        if (!member)
            break;
        family_member_has_execed(member);
        member_exec(watch, member);
        break;
    case PROCESS_EXITED:
        if (!member || family_member_is_alive(member))
            break; /* its main thread alone ended */
        member->wait_status = notice->wait_status;
        member_end(watch, member);
        break;
    }
}

/* What was lost cannot be told, but what came of it can be seen. */
static void losses_mend(struct family_watch *watch)
{
    if (watch->follow)
        newcomers_scan(watch);
    for (size_t i = 0; i < watch->members.count; i++)
        if (family_member_has_execed(&watch->members.list[i]))
            member_exec(watch, &watch->members.list[i]);
}

static void notices_take(struct family_watch *watch)
{
    struct process_notice notice;
    bool lost = false;
    for (int got; (got = process_events_read(watch->events_fd, &notice)) && !watch->error;) {
        if (got < 0)
            lost = true;
        else
            notice_take(watch, &notice);
    }
    if (lost)
        losses_mend(watch);
}

/* ---- the beat ---- */

static void member_check(struct family_watch *watch, struct family_member *member)
{
    if (member->ended) {
        member_forget_gone(watch, member->pid);
        return;
    }
    if (member->looks++ > FRESH && watch->members.count > CHECKED && member->looks % STALE)
        return;
    cpu_clock_read(member->pid, &member->cpu_ns);
    if (member->pidfd < 0 && !family_member_is_alive(member))
        member_end(watch, member);
    else if (watch->events_fd < 0 && family_member_has_execed(member))
        member_exec(watch, member);
}

/* For those whose pids were not given in order, or whose kernel does not tell of them. */
static void scan_when_due(struct family_watch *watch, uint64_t now_ns)
{
    if (now_ns < watch->scan_ns)
        return;
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    newcomers_scan(watch);
    watch->scan_ns = next_after(now_ns, begin_ns, SCAN_NS);
}

static void beat(struct family_watch *watch, uint64_t now_ns)
{
    bool polling = watch->events_fd < 0;
    if (polling && watch->follow)
        scan_when_due(watch, now_ns);
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (polling && watch->follow)
        newcomers_beat(watch);
    size_t checks = CHECKED + watch->members.count / SHARE_CHECKED;
    for (size_t i = 0; i < checks && i < watch->members.count; i++) {
        watch->turn = (watch->turn + 1) % watch->members.count;
        member_check(watch, &watch->members.list[watch->turn]);
    }
    watch->beat_ns = next_after(now_ns, begin_ns, polling ? POLL_NS : EVENTS_BEAT_NS);
}

/* Ends are asked for first and told last: a process that has ended did before whatever the news in
 * between say. */
static void gather(struct family_watch *watch, uint64_t now_ns)
{
    struct epoll_event fired[FIRED];
    int count = epoll_wait(watch->epoll_fd, fired, FIRED, 0);
    if (watch->events_fd >= 0)
        notices_take(watch);
    else if (watch->follow && count > 0)
        newcomers_find(watch);
    else if (watch->follow)
        newcomers_glance(watch, now_ns);
    for (int i = 0; i < count; i++) {
        struct family_member *member = member_find_alive(watch, (pid_t)fired[i].data.u64);
        if (member && !family_member_is_alive(member))
            member_end(watch, member);
    }
    if (now_ns >= watch->beat_ns)
        beat(watch, now_ns);
}

/* ---- the interface ---- */

int family_watch_open(bool follow, enum family_method method, struct family_watch **ret,
                      struct failure *why)
{
    CLEANUP(family_watch_closep) struct family_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return failure_set(why, -ENOMEM, "out of memory");
    watch->follow = follow;
    watch->newest_fd = -1;
    watch->events_fd = method == FAMILY_EVENTS ? process_events_open() : -1;
    watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (watch->epoll_fd < 0)
        return failure_set(why, -errno, "cannot watch for processes that begin and end: %s",
                           strerror(errno));
    if (watch->events_fd >= 0)
        epoll_add(watch, watch->events_fd, 0);
    watch->newest_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < LAG; i++)
        watch->newest[i] = newest_pid_read(watch);
    watch->glanced = watch->newest[LAG - 1];
    *ret = TAKE_PTR(watch);
    return 0;
}

int family_watch_add(struct family_watch *watch, pid_t root)
{
    struct proc_stat stat;
    if (member_find_alive(watch, root))
        return 0;
    member_forget_gone(watch, root);
    if (family_members_find(&watch->members, root) || proc_read_pid_stat(root, &stat) < 0 ||
        !is_process(root))
        return -ESRCH;
    watch->adding = true;
    member_join(watch, root, stat.parent, &stat);
    if (watch->follow)
        newcomers_scan(watch);
    watch->adding = false;
    return watch->error;
}

int family_watch_fd(const struct family_watch *watch)
{
    return watch->epoll_fd;
}

uint64_t family_watch_deadline_ns(const struct family_watch *watch)
{
    if (watch->queue_first < watch->queue_count)
        return 0;
    return watch->alive ? watch->beat_ns : UINT64_MAX;
}

int family_watch_next(struct family_watch *watch, uint64_t now_ns, struct family_event *ret)
{
    if (watch->queue_first == watch->queue_count)
        gather(watch, now_ns);
    if (watch->error)
        return watch->error;
    if (watch->queue_first == watch->queue_count)
        return 0;
    *ret = watch->queue[watch->queue_first++];
    return 1;
}

static bool has_ended_lately(const struct family_watch *watch, pid_t pid)
{
    for (size_t i = 0; i < LATE; i++)
        if (watch->last_ended[i] == pid)
            return true;
    return false;
}

void family_watch_hear(struct family_watch *watch, pid_t pid, pid_t parent)
{
    struct proc_stat stat;
    if (!watch->follow || watch->events_fd >= 0)
        return;
    struct family_member *member = member_find_alive(watch, pid);
    if (member && family_member_has_execed(member)) /* what it became says so, too */
        member_exec(watch, member);
    if (member || newcomer_consider(watch, pid, true) ||
        family_members_find(&watch->members, pid) || has_ended_lately(watch, pid))
        return;
    bool gone = proc_read_pid_stat(pid, &stat) < 0;
    if (gone && member_find_alive(watch, parent))
        member_join(watch, pid, parent, NULL);
}

size_t family_watch_count(const struct family_watch *watch)
{
    return watch->alive;
}

enum family_method family_watch_method(const struct family_watch *watch)
{
    return watch->events_fd >= 0 ? FAMILY_EVENTS : FAMILY_POLLING;
}
