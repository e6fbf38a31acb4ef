/*
 * Copies that signal handlers make: at any moment of what they interrupt, and on a stack with
 * little room, below which nothing may be written. Counts those that changed errno.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { SIZE = 64 * 1024, GUARD = 64 * 1024, MARK = 4711 };

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

int handlers_on_small_stack(size_t size, int times)
{
    const struct sigaction action = { .sa_handler = copy, .sa_flags = SA_ONSTACK };
    char *memory = mmap(NULL, GUARD + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = { .ss_sp = memory + GUARD, .ss_size = size };
    if (memory == MAP_FAILED || mprotect(memory + GUARD, size, PROT_READ | PROT_WRITE) ||
        sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        return -1;
    for (int i = 0; i < times; i++)
        raise(SIGUSR1);
    return 0;
}

long handlers_copies(void)
{
    return copies;
}

long handlers_wrong(void)
{
    return wrong;
}
