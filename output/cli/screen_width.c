#include "output/cli/screen_width.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t screen_width(FILE *out)
{
    enum { UNKNOWN = 132 };
    const char *told = getenv("COLUMNS");
    struct winsize size;
    long columns = told ? strtol(told, NULL, 10) : 0;
    if (columns > 0)
        return (size_t)columns;
    const int terminals[] = { fileno(out), STDERR_FILENO, STDIN_FILENO };
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++)
        if (ioctl(terminals[i], TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
            return size.ws_col;
    return UNKNOWN;
}
