/*
 * Runs a command as a profiler would that traces its whole tree for good to hear of forks and
 * execs: traced_launch COMMAND ARGS…; signals are handed on at once, and the command's status is
 * its own. traced_launch.py compares what the command may do then with what it may do under us.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN_FAILURE = 125, NO_COMMAND = 127 };

static const long events =
    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

/* One that begins stops first, and so does one that shares its group's stop. */
static void go_on(pid_t tid, int status)
{
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
        ptrace(PTRACE_LISTEN, tid, NULL, NULL);
    else
        ptrace(PTRACE_CONT, tid, NULL, (void *)(long)(event ? 0 : signal));
}

static int tree_follow(pid_t root)
{
    int status, end = OWN_FAILURE;
    for (pid_t tid; (tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (tid > 0 && WIFSTOPPED(status))
            go_on(tid, status);
        else if (tid == root)
            end = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return end;
}

int main(int argc, char **argv)
{
    int go[2];
    char byte;
    if (argc < 2 || pipe(go))
        return OWN_FAILURE;
    pid_t root = fork();
    if (root == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execvp(argv[1], argv + 1);
        _exit(NO_COMMAND);
    }
    if (root < 0 || ptrace(PTRACE_SEIZE, root, NULL, (void *)events) || write(go[1], "", 1) != 1) {
        perror("traced_launch");
        return OWN_FAILURE;
    }
    return tree_follow(root);
}
