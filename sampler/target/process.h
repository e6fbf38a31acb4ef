/*
 * The process under study: its identity (a descriptor of /proc/PID that can never become another
 * process), its memory, and, when something is refused, which check refused it.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/remote.h"

#include <stdbool.h>
#include <sys/types.h>

struct process {
    struct remote memory; /* process_vm_readv; first, so that a struct remote * leads back here */
    pid_t pid;
    pid_t inner_pid;      /* as its own, innermost PID namespace numbers it */
    bool other_namespace; /* that namespace is not ours */
    int proc_fd;          /* /proc/PID */
    int memory_fd;        /* /proc/PID/mem of the program that it ran when it was opened; or -1 */
    bool reads_by_file;   /* from there, as process_vm_readv is denied to us */
    uint64_t start_time;  /* clock ticks since boot: tells a reused pid from the same process */
    uint64_t stack_start; /* moves at every exec where addresses are randomised; 0: not known */
    uint64_t read_calls;  /* process_vm_readv calls so far */
};

/* 0, -ESRCH (no such process, or a zombie), -EPERM with the failed check named. */
int process_open(pid_t pid, struct process **ret, struct failure *why);
void process_close(struct process *process);

/* Still the process we opened, running the same program? 0 or -ESRCH. */
int process_check(const struct process *process);

/*
 * Tries to read a byte, then says which check failed (uid, Yama, dumpable, capability, seccomp,
 * another tracer): -EPERM; -ESRCH if it ended, 0 if nothing refuses. `operation`, say "trace", is
 * what was tried.
 */
int process_explain_denied(const struct process *process, const char *operation,
                           struct failure *why);

/* Resident bytes; 0 when it cannot be told. */
uint64_t process_read_rss(const struct process *process);

/* argv[0] and friends, NUL -> space, cut to `size`; comm in brackets when there is none. */
int process_read_command(pid_t pid, char *into, size_t size);

/* The same as words, which lie in `text`; `argv` ends with NULL behind at most `most` of them.
 * False when there is more than that. */
bool process_read_arguments(pid_t pid, char *text, size_t size, const char **argv, size_t most);

/* The pids of all descendants, breadth first: count, or negative errno. Caller frees. */
int process_list_descendants(pid_t pid, pid_t **ret);

/* As far as parents can be followed upwards: whoever lost its parent is its new one's. */
bool process_descends(pid_t pid, pid_t ancestor);

/* The descendant that its own, innermost PID namespace numbers so; 0: there is none. */
pid_t process_find_inner(pid_t ancestor, pid_t inner_pid);
