/*
 * The signals that a profiling run listens to, as a descriptor for its loop. They are blocked from
 * signals_open to signals_close, so that none is lost before the loop stands; those that our parent
 * had ignored (nohup) stay so.
 */
#pragma once

#include "sampler/base/error.h"

#include <signal.h>
#include <sys/types.h>

enum signal_kind {
    SIGNAL_NONE,
    SIGNAL_END,     /* SIGINT, SIGTERM, SIGHUP, SIGQUIT: finish */
    SIGNAL_CHILD,   /* a child of ours may have ended: launch_reap */
    SIGNAL_RESIZED, /* the terminal has another size */
    SIGNAL_SUSPEND, /* SIGTSTP: signals_suspend, once no thread is paused, who would stand as long
                     */
};

struct signal_event {
    enum signal_kind kind;
    int number;
    bool by_terminal; /* the kernel sent it, to our whole process group: Ctrl-C, a hang-up */
};

struct signals {
    int fd;     /* readable when signals_next has something */
    int end_fd; /* readable while what it has is a SIGNAL_END */
    sigset_t inherited_mask;
    struct sigaction inherited_child; /* disposition of SIGCHLD */
};

int signals_open(struct signals *ret, struct failure *why);
void signals_close(struct signals *signals);

/* In a child just forked: mask and dispositions as our own parent left them. */
void signals_restore(const struct signals *signals);

/* Stops this process until somebody has it go on. */
void signals_suspend(void);

/* For who has no loop: SIGTSTP waits while it is told so. */
void signals_defer_suspension(bool deferred);

/* 1 and the oldest, or 0: none is waiting. */
int signals_next(struct signals *signals, struct signal_event *ret);
