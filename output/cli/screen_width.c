#include "output/cli/screen_width.h"

#include <stdlib.h>
#include <sys/ioctl.h>

size_t screen_width(FILE *out)
{
    enum { UNKNOWN = 132 };
    const char *told = getenv("COLUMNS");
    struct winsize size;
    long columns = told ? strtol(told, NULL, 10) : 0;
    if (columns > 0)
        return (size_t)columns;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return UNKNOWN;
}
