/*
 * The kernel's own news of processes that begin, change their program and end, of the whole machine
 * (proc connector, a netlink socket). Needs the initial namespaces, and before Linux 6.6
 * CAP_NET_ADMIN. Threads are filtered away in the kernel, and with them all that would wake us for
 * nothing.
 */
#pragma once

#include <sys/types.h>

enum process_news { PROCESS_FORKED, PROCESS_EXECED, PROCESS_EXITED };

struct process_notice {
    enum process_news news;
    pid_t pid;
    pid_t parent;    /* PROCESS_FORKED */
    int wait_status; /* PROCESS_EXITED, as waitpid has it: of the main thread, others may live on */
};

/* A descriptor that does not block, or -EPERM, -ENOTSUP. */
int process_events_open(void);
void process_events_close(int fd);

/* 1, 0 (none for now), -ENOBUFS (some were lost). */
int process_events_read(int fd, struct process_notice *ret);
