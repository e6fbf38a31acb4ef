/*
 * Copies that signal handlers make: at any moment of what they interrupt, and on a stack with
 * little room, below which nothing may be written. Counts those that changed errno.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

enum { SIZE = 64 * 1024, MARK = 4711 };

static char from[SIZE], into[SIZE];
static volatile size_t size_asked = SIZE; /* which the compiler does not know: it calls memcpy */
static volatile long copies, wrong;

static void copy(int number)
{
    (void)number;
    int before = errno;
    errno = MARK;
    memcpy(into, from, size_asked);
    wrong += errno != MARK;
    errno = before;
    copies++;
}

/* From now on, until it is asked to with 0. */
void handlers_interrupt(int interval_us)
{
    const struct sigaction action = { .sa_handler = copy, .sa_flags = SA_RESTART };
    const struct itimerval timer = { { 0, interval_us }, { 0, interval_us } };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

long handlers_copies(void)
{
    return copies;
}

long handlers_wrong(void)
{
    return wrong;
}
