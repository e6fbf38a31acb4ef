/* Small texts of /proc: read whole, never trusted to be well formed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads up to size - 1 bytes, adds NUL: count, or -ESRCH (not there), -EPERM, another errno. */
int proc_read_file(int directory, const char *path, char *into, size_t size);

/* proc(5), /proc/PID/stat; enough of it for everyone here. */
struct proc_stat {
    char state;
    pid_t parent;
    pid_t group, session;
    uint64_t flags;
    uint64_t children_ticks; /* CPU time of children that were waited for, and of theirs */
    uint64_t threads;
    uint64_t start_time;  /* clock ticks since boot */
    uint64_t stack_start; /* 0 where we may not know */
    int core;             /* where it runs, or ran last */
};

/* 0 or -EBADMSG. The command in the text may hold spaces and brackets. */
int proc_parse_stat(const char *text, struct proc_stat *ret);
int proc_read_stat(int directory, const char *path, struct proc_stat *ret);
int proc_read_pid_stat(pid_t pid, struct proc_stat *ret); /* of a process or a thread */

/* In a text of "Name:\tvalue" lines: where the value begins, or NULL. */
const char *proc_find_field(const char *text, const char *name);

/* The name's value as a number; 0 if it is not there. */
uint64_t proc_find_number(const char *text, const char *name, int base);

/* "NSpid:" has a number per PID namespace, ours first: how many, and the last in `*ret`. */
int proc_find_inner_pid(const char *status, pid_t *ret);

/* A whole directory entry that is a number, or -1. */
pid_t proc_parse_id(const char *entry);
