#include "sampler/target/signals.h"

#include "sampler/base/cleanup.h"

#include <string.h>
#include <sys/signalfd.h>

static const struct {
    int number;
    enum signal_kind kind;
} heard[] = {
    { SIGINT, SIGNAL_END },  { SIGTERM, SIGNAL_END },   { SIGHUP, SIGNAL_END },
    { SIGQUIT, SIGNAL_END }, { SIGCHLD, SIGNAL_CHILD }, { SIGWINCH, SIGNAL_RESIZED },
};

enum { HEARD = sizeof heard / sizeof *heard };

/* A blocked signal is queued even where it is ignored, so what was ignored must not be blocked. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void set_choose(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < HEARD; i++)
        if (heard[i].kind != SIGNAL_END || !is_ignored(heard[i].number))
            sigaddset(set, heard[i].number);
}

int signals_open(struct signals *ret, struct failure *why)
{
    struct signals signals;
    sigset_t set;
    set_choose(&set);
    signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals.fd < 0)
        return failure_set(why, -errno, "cannot listen to signals: %s", strerror(errno));

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
    signals->fd = -1;
    signals_restore(signals);
}
