#include "sampler/target/process.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/access.h"
#include "sampler/target/memory.h"
#include "sampler/target/proc_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

enum {
    STATUS_SIZE = 8192,
    PATH_SIZE = 64,
    KERNEL_THREAD = 0x00200000 /* PF_KTHREAD, linux/sched.h */
};

void process_close(struct process *process)
{
    if (!process)
        return;
    cleanup_close(&process->proc_fd);
    cleanup_close(&process->memory_fd);
    free(process);
}

DEFINE_CLEANUP(struct process *, process_close)

static bool state_is_dead(char state)
{
    return state == 'Z' || state == 'X' || state == 'x';
}

static int open_failed(pid_t pid, struct failure *why)
{
    int error = errno;
    if (error != ENOENT)
        return failure_set(why, -error, "process %d could not be looked at: %s", pid,
                           strerror(error));
    if (kill(pid, 0) == 0)
        return failure_set(why, -EPERM,
                           "process %d is there, and /proc does not show it: mount /proc "
                           "(mount -t proc proc /proc), or give the number that it has there",
                           pid);
    /* mount option hidepid: the process is there for kill(2) and not for us. */
    if (errno == EPERM)
        return failure_set(
            why, -EPERM,
            "process %d is another user's and /proc hides it (mount option hidepid): "
            "run this as that user or with sudo",
            pid);
    return failure_set(why, -ESRCH,
                       "there is no process %d: `ps -e` shows those there are, and those of a "
                       "container under the numbers that they have here",
                       pid);
}

static int identity_read(struct process *process, struct proc_stat *ret_stat, struct failure *why)
{
    pid_t pid = process->pid;
    char status[STATUS_SIZE];
    int error = proc_read_stat(process->proc_fd, "stat", ret_stat);
    if (error >= 0)
        error = proc_read_file(process->proc_fd, "status", status, sizeof status);
    if (error < 0 && error != -ESRCH)
        return failure_set(why, error, "process %d could not be looked at: %s", pid,
                           strerror(-error));
    if (error < 0)
        return failure_set(why, -ESRCH, "process %d ended while it was looked at", pid);

    pid_t leader = (pid_t)proc_find_number(status, "Tgid", 10);
    if (leader != pid)
        return failure_set(why, -ESRCH, "%d is a thread of process %d: give that number instead",
                           pid, leader);
    if (state_is_dead(ret_stat->state))
        return failure_set(
            why, -ESRCH,
            ret_stat->threads > 1
                ? "the main thread of process %d has ended, by which its memory is looked at: "
                  "either all of it ends now, or others run on without that"
                : "process %d has ended and only waits for its parent to notice",
            pid);

    process->inner_pid = pid;
    process->other_namespace = proc_find_inner_pid(status, &process->inner_pid) > 1;
    process->start_time = ret_stat->start_time;
    process->stack_start = ret_stat->stack_start;
    return 0;
}

/* One byte from nowhere: a kernel that lets us read says "bad address", one that does not "not
 * permitted". */
static int memory_probe(struct process *process)
{
    char byte;
    struct remote_piece piece = { 0, &byte, 1 };
    int result = memory_read_pieces(&process->memory, &piece, 1, NULL);
    return result < 0 ? result : 0;
}

int process_open(pid_t pid, struct process **ret, struct failure *why)
{
    CLEANUP(process_closep) struct process *process = calloc(1, sizeof *process);
    if (!process)
        return failure_set(why, -ENOMEM, "out of memory");
    process->memory.read_pieces = memory_read_pieces;
    process->pid = pid;
    process->memory_fd = -1;

    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d", pid);
    process->proc_fd = pid > 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (process->proc_fd < 0)
        return pid > 0 ? open_failed(pid, why)
                       : failure_set(why, -ESRCH, "%d is not a process's number", pid);

    struct proc_stat stat;
    process->memory_fd = openat(process->proc_fd, "mem", O_RDONLY | O_CLOEXEC);
    int result = identity_read(process, &stat, why);
    if (result < 0)
        return result;
    if (stat.flags & KERNEL_THREAD)
        return failure_set(why, -EPERM, "process %d is a thread of the kernel and runs no program",
                           pid);
    result = memory_probe(process);
    if (result == -EPERM)
        return process_explain_denied(process, "read the memory of", why);
    if (result < 0)
        return failure_set(why, -ESRCH, "process %d ended while it was looked at", pid);
    *ret = TAKE_PTR(process);
    return 0;
}

/* The file outlives the memory it shows, and is empty then. */
static bool memory_is_gone(const struct process *process)
{
    char byte;
    return process->memory_fd >= 0 && pread(process->memory_fd, &byte, 1, 0) == 0;
}

int process_check(const struct process *process)
{
    struct proc_stat stat;
    int error = proc_read_stat(process->proc_fd, "stat", &stat);
    if (error)
        return error == -ESRCH ? error : 0;
    if (state_is_dead(stat.state) || memory_is_gone(process))
        return -ESRCH;
    bool other_program =
        stat.stack_start && process->stack_start && stat.stack_start != process->stack_start;
    return stat.start_time == process->start_time && !other_program ? 0 : -ESRCH;
}

int process_explain_denied(const struct process *process, const char *operation,
                           struct failure *why)
{
    struct process copy = *process;
    int result = memory_probe(&copy);
    if (result == -ESRCH)
        return failure_set(why, -ESRCH, "process %d has ended", process->pid);

    struct access_facts facts;
    access_read_facts(process, result == 0, &facts);
    return access_explain(&facts, operation, why);
}

int process_read_command(pid_t pid, char *into, size_t size)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int length = proc_read_file(AT_FDCWD, path, into, size);
    if (length < 0)
        return length;
    while (length > 0 && !into[length - 1])
        length--;
    if (length == 0) { /* a kernel thread, or one that overwrote its arguments */
        char comm[32];
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        int got = proc_read_file(AT_FDCWD, path, comm, sizeof comm);
        if (got < 0)
            return got;
        comm[strcspn(comm, "\n")] = '\0';
        snprintf(into, size, "[%s]", comm);
        length = (int)strlen(into);
    }
    for (int i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)into[i];
        if (!byte)
            into[i] = ' ';
        else if (byte < ' ' || byte == 0x7f)
            into[i] = '?';
    }
    into[length] = '\0';
    return length;
}

struct kinship {
    pid_t pid, parent;
};

/* Adds one to a heap array that doubles at each power of two. */
static int kinship_add(struct kinship **list, size_t *count, struct kinship one)
{
    if (!(*count & (*count - 1))) {
        struct kinship *grown = realloc(*list, (*count ? 2 * *count : 1) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        *list = grown;
    }
    (*list)[(*count)++] = one;
    return 0;
}

/* A thread's child has the process as its parent here, which is what we want. */
static int kinships_read(struct kinship **list, size_t *count)
{
    AUTO_CLOSEDIR DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    for (struct dirent *entry; (entry = readdir(proc));) {
        char path[32];
        struct proc_stat stat;
        pid_t pid = proc_parse_id(entry->d_name);
        snprintf(path, sizeof path, "%d/stat", pid);
        if (pid < 0 || proc_read_stat(dirfd(proc), path, &stat) < 0)
            continue;
        int result = kinship_add(list, count, (struct kinship){ pid, stat.parent });
        if (result < 0)
            return result;
    }
    return 0;
}

int process_list_descendants(pid_t pid, pid_t **ret)
{
    AUTO_FREE struct kinship *all = NULL;
    size_t count = 0;
    int result = kinships_read(&all, &count);
    if (result < 0)
        return result;

    AUTO_FREE pid_t *found = calloc(count + 1, sizeof *found);
    if (!found)
        return -ENOMEM;
    /* found[0] is the ancestor; each that was found is asked for its children in turn. A pid that
     * came back within the scan could make a circle, so nobody is adopted twice: its entry is
     * struck out. */
    size_t used = 1;
    found[0] = pid;
    for (size_t asked = 0; asked < used; asked++) {
        for (size_t i = 0; i < count; i++) {
            if (all[i].parent != found[asked] || all[i].pid == pid)
                continue;
            all[i].parent = -1;
            found[used++] = all[i].pid;
        }
    }
    memmove(found, found + 1, (used - 1) * sizeof *found);
    *ret = TAKE_PTR(found);
    return (int)used - 1;
}

bool process_descends(pid_t pid, pid_t ancestor)
{
    enum { GENERATIONS = 1000 }; /* pids can be reused while we climb */
    struct proc_stat stat;
    for (int i = 0; i < GENERATIONS && pid > 1 && !proc_read_pid_stat(pid, &stat); i++) {
        pid = stat.parent;
        if (pid == ancestor)
            return true;
    }
    return false;
}

static pid_t inner_pid_read(pid_t pid)
{
    char path[32], status[STATUS_SIZE];
    pid_t inner = 0;
    snprintf(path, sizeof path, "/proc/%d", pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && proc_read_file(fd, "status", status, sizeof status) >= 0)
        proc_find_inner_pid(status, &inner);
    return inner;
}

pid_t process_find_inner(pid_t ancestor, pid_t inner_pid)
{
    AUTO_FREE pid_t *list = NULL;
    int count = process_list_descendants(ancestor, &list);
    for (int i = 0; i < count; i++)
        if (inner_pid_read(list[i]) == inner_pid)
            return list[i];
    return 0;
}

uint64_t process_read_rss(const struct process *process)
{
    char text[128];
    unsigned long long total = 0, resident = 0;
    if (proc_read_file(process->proc_fd, "statm", text, sizeof text) < 0 ||
        sscanf(text, "%llu %llu", &total, &resident) != 2)
        return 0;
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool process_read_arguments(pid_t pid, char *text, size_t size, const char **argv, size_t most)
{
    char path[PATH_SIZE];
    size_t count = 0;
    int at = 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int length = proc_read_file(AT_FDCWD, path, text, size);
    for (; at < length && count < most; at += (int)strlen(text + at) + 1)
        argv[count++] = text + at;
    argv[count] = NULL;
    return at >= length && length < (int)size - 1;
}
