/*
 * Who belongs to the processes under study: those named, and, where wanted, all that descends from
 * them, also after their parents have ended. Told by the kernel's process events where we may
 * listen to them, found by polling otherwise; ends come from pidfds. Touches no process. Threads
 * are not told of.
 */
#pragma once

#include "sampler/base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct family_watch;

enum family_method {
    FAMILY_EVENTS,  /* process events (netlink), or polling where they are refused */
    FAMILY_POLLING, /* at each family_watch_next(), and every 10 ms at least; less often where that
                       costs too much */
};

enum family_change { FAMILY_JOINED, FAMILY_EXECED, FAMILY_ENDED };

struct family_event {
    enum family_change change;
    pid_t pid;
    pid_t ppid;      /* when it joined; 0: unknown */
    bool forked;     /* joined at its birth; else it was found, maybe after it had run a while */
    int exit_status; /* FAMILY_ENDED: 128 + n when signal n ended it; -1: unknown */
    uint64_t stack_start; /* FAMILY_EXECED: as in struct process; 0: not known */
    uint64_t cpu_ns; /* of the whole process since it began; FAMILY_ENDED: as good as it could be
                        learnt */
};

/* `follow`: descendants too. */
int family_watch_open(bool follow, enum family_method method, struct family_watch **ret,
                      struct failure *why);
void family_watch_close(struct family_watch *watch);

/* One more root; it and its present descendants join (a root that is a member already: 0). -ESRCH:
 * not there. */
int family_watch_add(struct family_watch *watch, pid_t root);

/* Readable when family_watch_next has something; also call that at the deadline (CLOCK_MONOTONIC,
 * UINT64_MAX: none). */
int family_watch_fd(const struct family_watch *watch);
uint64_t family_watch_deadline_ns(const struct family_watch *watch);

/* 1 and the next event, in the order in which things happened; 0: none for now. */
int family_watch_next(struct family_watch *watch, uint64_t now_ns, struct family_event *ret);

/* A member's child is said to have begun; by itself, so that what the kernel tells comes first. Who
 * has ended since is believed to have been there. */
void family_watch_hear(struct family_watch *watch, pid_t pid, pid_t parent);

/* Members alive. */
size_t family_watch_count(const struct family_watch *watch);

/* What is in force. */
enum family_method family_watch_method(const struct family_watch *watch);
