#include "sampler/target/threads.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/arch.h"
#include "sampler/target/descriptors.h"
#include "sampler/target/proc_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { PATH_SIZE = 64, STATUS_SIZE = 8192, LIST_TRIES = 4 };

static int thread_compare(const void *left, const void *right)
{
    pid_t a = ((const struct os_thread *)left)->tid, b = ((const struct os_thread *)right)->tid;
    return (a > b) - (a < b);
}

static int thread_read(const struct process *process, pid_t tid, struct os_thread *ret)
{
    struct os_thread thread = { .tid = tid, .inner_tid = tid };
    char path[PATH_SIZE], status[STATUS_SIZE];

    snprintf(path, sizeof path, "task/%d/comm", tid);
    int length = proc_read_file(process->proc_fd, path, thread.comm, sizeof thread.comm);
    if (length < 0)
        return length;
    thread.comm[strcspn(thread.comm, "\n")] = '\0';

    if (process->other_namespace) {
        snprintf(path, sizeof path, "task/%d/status", tid);
        length = proc_read_file(process->proc_fd, path, status, sizeof status);
        if (length < 0)
            return length;
        proc_find_inner_pid(status, &thread.inner_tid);
    }
    *ret = thread;
    return 0;
}

static int list_once(const struct process *process, struct os_thread **ret)
{
    AUTO_FREE struct os_thread *list = NULL;
    size_t count = 0, room = 0;
    int fd = openat(process->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    AUTO_CLOSEDIR DIR *task = fdopendir(fd);
    if (!task) {
        close(fd);
        return -ENOMEM;
    }

    for (struct dirent *entry; (entry = readdir(task));) {
        pid_t tid = proc_parse_id(entry->d_name);
        if (tid < 0)
            continue;
        if (count == room) {
            room = room ? 2 * room : 16;
            struct os_thread *grown = realloc(list, room * sizeof *list);
            if (!grown)
                return -ENOMEM;
            list = grown;
        }
        /* One that ended since is no thread any more. */
        if (thread_read(process, tid, &list[count]) == 0)
            count++;
    }
    if (!count)
        return -ESRCH;
    qsort(list, count, sizeof *list, thread_compare);
    *ret = TAKE_PTR(list);
    return (int)count;
}

/* The kernel passes over a thread, or stops, when the one before it ends meanwhile
 * (proc_task_readdir, fs/proc/base.c). */
int threads_list(const struct process *process, struct os_thread **ret)
{
    for (int tries = LIST_TRIES;;) {
        struct os_thread *list = NULL;
        struct proc_stat stat;
        int count = list_once(process, &list);
        if (count < 0)
            return count;
        if (--tries == 0 || proc_read_stat(process->proc_fd, "stat", &stat) < 0 ||
            (uint64_t)count >= stat.threads) {
            *ret = list;
            return count;
        }
        free(list);
    }
}

#define NO_PROBE(of_process, of_tid)                                                               \
    (struct thread_probe)                                                                          \
    {                                                                                              \
        .process = of_process, .tid = of_tid, .call_fd = -1, .account_fd = -1, .stat_fd = -1       \
    }

/* 0, or negative: the one that is opened last is spare. */
static int probe_open_file(const struct process *process, pid_t tid, const char *name, int *ret)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "task/%d/%s", tid, name);
    *ret = openat(process->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (*ret < 0)
        return errno == EACCES ? -EPERM : errno == ENOENT ? -ESRCH : -errno;
    return descriptor_is_spare(*ret) ? -EMFILE : 0;
}

void thread_probe_close(struct thread_probe *probe)
{
    cleanup_close(&probe->call_fd);
    cleanup_close(&probe->account_fd);
    cleanup_close(&probe->stat_fd);
    *probe = NO_PROBE(NULL, 0);
}

int thread_probe_open(const struct process *process, pid_t tid, struct thread_probe *ret)
{
    struct thread_probe probe = NO_PROBE(process, tid);
    int error = probe_open_file(process, tid, "stat", &probe.stat_fd);
    if (!error)
        error = probe_open_file(process, tid, "syscall", &probe.call_fd);
    if (!error)
        error = probe_open_file(process, tid, "schedstat", &probe.account_fd);
    if (error == -ESRCH && probe.call_fd >= 0) /* a kernel without the account */
        error = 0;
    if (error)
        thread_probe_close(&probe);
    else
        *ret = probe;
    return error;
}

static int probe_read_file(int fd, char *into, size_t size)
{
    ssize_t got = pread(fd, into, size - 1, 0);
    if (got < 0)
        return errno == EACCES ? -EPERM : -errno;
    into[got] = '\0';
    return (int)got;
}

/* A kernel built without the account leaves its zeros: no file, or a file of zeros. */
static int probe_read_account(const struct thread_probe *probe, struct wait_state *wait)
{
    char text[128];
    if (probe->account_fd < 0)
        return 0;
    int length = probe_read_file(probe->account_fd, text, sizeof text);
    if (length < 0)
        return length;
    char *rest = text; /* sscanf takes as long as the kernel does */
    wait->run_ns = strtoull(rest, &rest, 10);
    wait->queued_ns = strtoull(rest, &rest, 10);
    wait->turns = strtoull(rest, &rest, 10);
    return 0;
}

static bool probe_read_stat(const struct thread_probe *probe, struct proc_stat *ret)
{
    char text[1024];
    return probe->stat_fd >= 0 && probe_read_file(probe->stat_fd, text, sizeof text) > 0 &&
           proc_parse_stat(text, ret) == 0;
}

/* A group stop or another's ptrace stop can catch a thread in any call, which goes on later. */
static bool probe_ask_stopped(const struct thread_probe *probe)
{
    struct proc_stat stat;
    return probe_read_stat(probe, &stat) && (stat.state == 'T' || stat.state == 't');
}

/* It takes a turn on a CPU to stop, and asking takes as long as all else that is asked. */
static bool probe_is_stopped(struct thread_probe *probe, uint64_t turns)
{
    if (!turns || turns != probe->stop_turns)
        probe->stopped = probe_ask_stopped(probe);
    probe->stop_turns = turns;
    return probe->stopped;
}

struct blocked_call {
    long number; /* -1: in no call, say in a page fault */
    uint64_t arguments[6];
    remote_addr sp, ip;
};

/* Text of proc(5), /proc/PID/syscall: "running", "-1 sp pc", or number, six arguments, sp, pc. */
static int call_parse(const char *text, struct blocked_call *ret)
{
    struct blocked_call call = { .number = -1 };
    uint64_t *a = call.arguments;
    char *rest;
    call.number = strtol(text, &rest, 10);
    if (rest == text)
        return -EBADMSG;
    int got = call.number < 0
                  ? sscanf(rest, "%" SCNx64 " %" SCNx64, &call.sp, &call.ip)
                  : sscanf(rest,
                           "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                           " %" SCNx64 " %" SCNx64,
                           &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &call.sp, &call.ip);
    *ret = call;
    return got == (call.number < 0 ? 2 : 8) ? 0 : -EBADMSG;
}

static bool text_begins_with_any(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(text, *prefixes, strlen(*prefixes)))
            return true;
    return false;
}

static enum thread_state device_state(const struct thread_probe *probe, uint64_t fd)
{
    static const char *const gpus[] = { "/dev/nvidia", "/dev/neuron", "/dev/kfd", "/dev/dri/",
                                        NULL };
    char path[PATH_SIZE], target[PATH_MAX];
    snprintf(path, sizeof path, "fd/%d", (int)fd);
    ssize_t length = readlinkat(probe->process->proc_fd, path, target, sizeof target - 1);
    if (length < 0)
        return THREAD_WAIT_IO;
    target[length] = '\0';
    return text_begins_with_any(target, gpus) ? THREAD_WAIT_GPU : THREAD_WAIT_IO;
}

/*
 * Three families of calls alone are resumed so, with their arguments in place: timed futexes, timed
 * polls and sleeps (users of set_restart_fn, Linux 5.10 to 6.18). The kernel function the thread
 * sleeps in tells the first two by name; a resumed sleep has no function of its own left to be
 * named. Some kernels name none.
 */
static enum wait_class resumed_class(const struct thread_probe *probe)
{
    char path[PATH_SIZE], function[128];
    snprintf(path, sizeof path, "task/%d/wchan", probe->tid);
    int length = proc_read_file(probe->process->proc_fd, path, function, sizeof function);
    if (length <= 0 || !strcmp(function, "0"))
        return WAIT_OTHER;
    if (strstr(function, "futex"))
        return WAIT_FUTEX;
    return strstr(function, "poll") ? WAIT_POLL : WAIT_SLEEP;
}

static void wait_classify(const struct thread_probe *probe, const struct blocked_call *call,
                          struct wait_state *wait)
{
    static const enum thread_state states[] = {
        [WAIT_OTHER] = THREAD_WAIT_OTHER, [WAIT_LOCK] = THREAD_WAIT_LOCK,
        [WAIT_FUTEX] = THREAD_WAIT_LOCK,  [WAIT_IO] = THREAD_WAIT_IO,
        [WAIT_POLL] = THREAD_WAIT_IO,     [WAIT_SELECT] = THREAD_WAIT_IO,
        [WAIT_SLEEP] = THREAD_WAIT_SLEEP, [WAIT_CHILD] = THREAD_WAIT_CHILD,
        [WAIT_DEVICE] = THREAD_WAIT_IO,   [WAIT_RESTART] = THREAD_WAIT_OTHER,
    };
    enum wait_class class = WAIT_OTHER;
    if (call->number >= 0 && call->number < ARCH_SYSCALLS)
        class = native_arch.wait_classes[call->number];
    if (class == WAIT_RESTART)
        class = resumed_class(probe);
    if ((class == WAIT_SELECT && !call->arguments[0]) ||
        (class == WAIT_POLL && !call->arguments[1]))
        class = WAIT_SLEEP;
    if (class == WAIT_FUTEX)
        wait->futex = call->arguments[0];
    wait->state = class == WAIT_DEVICE ? device_state(probe, call->arguments[0]) : states[class];
}

int thread_probe_read(struct thread_probe *probe, struct wait_state *ret)
{
    struct wait_state wait = { .state = THREAD_RUNNING };
    struct blocked_call call;
    char text[256];

    int result = probe_read_account(probe, &wait);
    if (result < 0)
        return result;
    int length = probe_read_file(probe->call_fd, text, sizeof text);
    if (length < 0)
        return length;
    if (strncmp(text, "running", strlen("running"))) {
        result = call_parse(text, &call);
        if (result < 0)
            return result;
        wait.off_cpu = true;
        wait.sp = call.sp;
        wait.ip = call.ip;
        if (probe_is_stopped(probe, wait.turns))
            wait.state = THREAD_STOPPED;
        else
            wait_classify(probe, &call, &wait);
    }
    *ret = wait;
    return 0;
}

int thread_probe_running(const struct thread_probe *probe, struct wait_state *ret)
{
    struct wait_state wait = { .state = THREAD_RUNNING };
    int result = probe_read_account(probe, &wait);
    if (result == 0)
        *ret = wait;
    return result;
}

int thread_probe_core(const struct thread_probe *probe)
{
    struct proc_stat stat;
    return probe_read_stat(probe, &stat) ? stat.core : -1;
}

int thread_probe_account(const struct thread_probe *probe, struct wait_state *wait)
{
    return probe_read_account(probe, wait);
}

int thread_read_wait(const struct process *process, pid_t tid, struct wait_state *ret)
{
    CLEANUP(thread_probe_close) struct thread_probe probe;
    int result = thread_probe_open(process, tid, &probe);
    if (result < 0) {
        probe = NO_PROBE(NULL, 0);
        return result;
    }
    return thread_probe_read(&probe, ret);
}

int thread_read_run(const struct process *process, pid_t tid, uint64_t *ret_ns)
{
    char path[PATH_SIZE], text[128];
    uint64_t run_ns = 0;
    snprintf(path, sizeof path, "task/%d/schedstat", tid);
    int result = proc_read_file(process->proc_fd, path, text, sizeof text);
    if (result < 0)
        return result;
    sscanf(text, "%" SCNu64, &run_ns);
    *ret_ns = run_ns;
    return 0;
}
