#include "sampler/target/signals.h"

#include "sampler/base/cleanup.h"

#include <string.h>
#include <sys/signalfd.h>

static const struct {
    int number;
    enum signal_kind kind;
} heard[] = {
    { SIGINT, SIGNAL_END },      { SIGTERM, SIGNAL_END },   { SIGHUP, SIGNAL_END },
    { SIGQUIT, SIGNAL_END },     { SIGCHLD, SIGNAL_CHILD }, { SIGWINCH, SIGNAL_RESIZED },
    { SIGTSTP, SIGNAL_SUSPEND },
};

enum { HEARD = sizeof heard / sizeof *heard };

/* A blocked signal is queued even where it is ignored, so what was ignored must not be blocked. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void sets_choose(sigset_t *all, sigset_t *ends)
{
    sigemptyset(all);
    sigemptyset(ends);
    for (size_t i = 0; i < HEARD; i++) {
        if (heard[i].number != SIGCHLD && is_ignored(heard[i].number))
            continue;
        sigaddset(all, heard[i].number);
        if (heard[i].kind == SIGNAL_END)
            sigaddset(ends, heard[i].number);
    }
}

int signals_open(struct signals *ret, struct failure *why)
{
    struct signals signals;
    sigset_t set, ends;
    sets_choose(&set, &ends);
    signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    signals.end_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals.fd < 0 || signals.end_fd < 0) {
        int error = -errno;
        cleanup_close(&signals.fd);
        cleanup_close(&signals.end_fd);
        return failure_set(why, error, "cannot listen to signals: %s", strerror(-error));
    }

    /* Where SIGCHLD is ignored, ends cannot be waited for; and each pause of a thread would send
     * one. */
    const struct sigaction told_of_ends = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };
    sigaction(SIGCHLD, &told_of_ends, &signals.inherited_child);
    sigprocmask(SIG_BLOCK, &set, &signals.inherited_mask);
    *ret = signals;
    return 0;
}

void signals_restore(const struct signals *signals)
{
    sigaction(SIGCHLD, &signals->inherited_child, NULL);
    sigprocmask(SIG_SETMASK, &signals->inherited_mask, NULL);
}

void signals_defer_suspension(bool deferred)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigprocmask(deferred ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* By the signal itself: a shell is told of it, and nobody is stopped whom no shell can wake. */
void signals_suspend(void)
{
    raise(SIGTSTP);
    signals_defer_suspension(false);
    signals_defer_suspension(true);
}

static enum signal_kind kind_of(int number)
{
    for (size_t i = 0; i < HEARD; i++)
        if (heard[i].number == number)
            return heard[i].kind;
    return SIGNAL_NONE;
}

int signals_next(struct signals *signals, struct signal_event *ret)
{
    struct signalfd_siginfo info;
    ssize_t got;
    do {
        got = read(signals->fd, &info, sizeof info);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof info)
        return 0;
    *ret = (struct signal_event){
        .kind = kind_of((int)info.ssi_signo),
        .number = (int)info.ssi_signo,
        .by_terminal = info.ssi_code == SI_KERNEL,
    };
    return 1;
}

void signals_close(struct signals *signals)
{
    struct signal_event ignored;
    if (signals->fd < 0)
        return;
    while (signals_next(signals, &ignored) > 0)
        ; /* one that came as all was over would end us now */
    cleanup_close(&signals->fd);
    cleanup_close(&signals->end_fd);
    signals->fd = signals->end_fd = -1;
    signals_restore(signals);
}
