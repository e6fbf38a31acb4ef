/*
 * What the profiler takes for a CPython that it does not know, and refuses: the other files here
 * are what such a one shows of itself, each linked with this one to a program of its own. As every
 * target it says "ready", waits to be let go, and reports its right result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    int ready, go;
    char byte;
    const char *pipes = getenv("TARGET_PIPES");
    if (!pipes || sscanf(pipes, "%d,%d", &ready, &go) != 2)
        return 2;
    dprintf(ready, "{\"pid\": %d}\n", (int)getpid());
    while (read(go, &byte, 1) == 1)
        ;
    dprintf(ready, "{\"result\": 42}\n");
    return 0;
}
