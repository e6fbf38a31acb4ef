#define _GNU_SOURCE 1 /* pipe2, environ */

#include "sampler/target/launch.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/cpu_clock.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct launch {
    pid_t pid;
    bool ended;
    struct launch_end end;
};

void launch_close(struct launch *launch)
{
    free(launch);
}

pid_t launch_pid(const struct launch *launch)
{
    return launch->pid;
}

int launch_failed_status(int error)
{
    switch (error) {
    case -ENOENT:
        return 127;
    case -EACCES:
    case -ENOEXEC:
        return 126;
    default:
        return 125;
    }
}

/* 0, -ENOENT, or -EACCES for what is there and cannot be run. */
static int program_check(const char *path)
{
    struct stat stat_buffer;
    if (stat(path, &stat_buffer) < 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    return S_ISREG(stat_buffer.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int launch_find(const char *command, char *into, size_t size)
{
    if (strchr(command, '/')) {
        snprintf(into, size, "%s", command);
        return program_check(into);
    }
    const char *path = getenv("PATH");
    int result = -ENOENT;
    for (const char *at = path ? path : "/bin:/usr/bin"; at && *command; at = strchr(at, ':')) {
        at += *at == ':';
        int length = (int)strcspn(at, ":");
        snprintf(into, size, "%.*s%s%s", length, at, length ? "/" : "./", command);
        int found = program_check(into);
        if (found == 0)
            return 0;
        if (found == -EACCES)
            result = found;
    }
    return result;
}

/* A text that does not name its interpreter is a shell script, by long custom. */
static bool is_text(const char *path)
{
    char bytes[128];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    return count >= 0 && !memchr(bytes, 0, (size_t)count);
}

/* Returns the errno of what failed. Between fork and exec: no allocation. */
static int program_run(const char *path, char *const *argv, char **shell_argv)
{
    execv(path, argv);
    int error = errno;
    if (error == ENOEXEC && is_text(path)) {
        execv(shell_argv[0], shell_argv);
        error = errno;
    }
    return error;
}

static char **shell_argv_new(const char *path, char *const *argv)
{
    size_t count = 0;
    while (argv[count])
        count++;
    char **list = calloc(count + 2, sizeof *list);
    if (!list)
        return NULL;
    list[0] = (char *)"/bin/sh";
    list[1] = (char *)path;
    for (size_t i = 1; i < count; i++)
        list[i + 1] = argv[i];
    return list;
}

static int failed(int error, const char *command, const char *path, struct failure *why)
{
    struct stat stat_buffer;
    if (error == -ENOENT && program_check(path) == 0)
        return failure_set(why, error,
                           "cannot run %s: the interpreter that its first line, or its "
                           "ELF header, names is not there",
                           path);
    if (error == -ENOENT && !strchr(command, '/'))
        return failure_set(why, error, "there is no command %s in the folders of PATH", command);
    if (error == -ENOENT)
        return failure_set(why, error, "there is no file %s to run", command);
    if (error == -EACCES && stat(path, &stat_buffer) == 0 && S_ISDIR(stat_buffer.st_mode))
        return failure_set(why, error, "%s is not executable: it is a folder", path);
    if (error == -EACCES)
        return failure_set(why, error,
                           "%s is not executable: a script can be given to its "
                           "interpreter, as in: python3 %s",
                           path, path);
    if (error == -ENOEXEC)
        return failure_set(why, error, "%s is no program that this machine can run", path);
    return failure_set(why, error, "cannot run %s: %s", path, strerror(-error));
}

/* Nothing comes through the pipe when exec closes it; an errno when exec failed. */
static int exec_await(int pipe_fd)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(pipe_fd, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == sizeof error ? -error : 0;
}

static int child_start(const char *path, char *const *argv, char **environment,
                       const struct signals *signals, pid_t *ret)
{
    AUTO_FREE char **shell_argv = shell_argv_new(path, argv);
    int ends[2];
    if (!shell_argv)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    AUTO_CLOSE int reading = ends[0];
    AUTO_CLOSE int writing = ends[1];

    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        if (signals)
            signals_restore(signals);
        if (environment)
            environ = environment;
        int error = program_run(path, argv, shell_argv);
        ssize_t ignored = write(writing, &error, sizeof error);
        _exit(ignored == sizeof error ? launch_failed_status(-error) : 125);
    }
    close(TAKE_FD(writing));
    int result = exec_await(reading);
    if (result < 0)
        waitpid(pid, NULL, 0);
    else
        *ret = pid;
    return result;
}

int launch_start(char *const *argv, char **environment, const struct signals *signals,
                 struct launch **ret, struct failure *why)
{
    char path[PATH_MAX];
    AUTO_FREE struct launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return failure_set(why, -ENOMEM, "out of memory");
    int result = launch_find(argv[0], path, sizeof path);
    if (result == 0)
        result = child_start(path, argv, environment, signals, &launch->pid);
    if (result < 0)
        return failed(result, argv[0], path, why);
    *ret = TAKE_PTR(launch);
    return 0;
}

static uint64_t timeval_ns(struct timeval time)
{
    return ((uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec) * 1000u;
}

/*
 * Looked at before it is taken: wait tells a tracer of its tracees' stops whatever it asks for
 * (wait_task_stopped in Linux's kernel/exit.c), and those belong to whoever paused the thread. An
 * ended child keeps its clock until then.
 */
bool launch_has_ended(const struct launch *launch)
{
    siginfo_t info = { 0 };
    return launch->ended ||
           (waitid(P_PID, (id_t)launch->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
             info.si_code == CLD_DUMPED));
}

int launch_reap(struct launch *launch, struct launch_end *ret)
{
    siginfo_t info = { 0 };
    struct rusage usage;
    if (!launch_has_ended(launch))
        return 0;
    if (!launch->ended) {
        cpu_clock_read(launch->pid, &launch->end.cpu_ns);
        if (syscall(SYS_waitid, P_PID, launch->pid, &info, WEXITED | WNOHANG, &usage) == 0)
            launch->end.tree_cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
        launch->end.exit_status = info.si_status + (info.si_code == CLD_EXITED ? 0 : 128);
        launch->ended = true;
    }
    *ret = launch->end;
    return 1;
}

/* The terminal signals a process group; a hang-up it tells to the session's leader alone. */
static bool reaches_child(const struct launch *launch, const struct signal_event *event)
{
    return event->by_terminal && getpgid(launch->pid) == getpgrp() &&
           !(event->number == SIGHUP && getsid(0) == getpid());
}

void launch_forward(struct launch *launch, const struct signal_event *event)
{
    if (event->kind == SIGNAL_END && !launch->ended && !reaches_child(launch, event))
        kill(launch->pid, event->number);
}
