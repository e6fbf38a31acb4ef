#include "output/cli/style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const codes[STYLE_COUNT] = {
    [STYLE_HEADING] = "1;34",      [STYLE_PROGRAM] = "1;35", [STYLE_LONG_OPTION] = "1;36",
    [STYLE_SHORT_OPTION] = "1;32", [STYLE_METAVAR] = "1;33", [STYLE_FUNCTION] = "36",
    [STYLE_NATIVE] = "33",         [STYLE_PLACE] = "2",      [STYLE_BUSY] = "1;31",
    [STYLE_WAITING] = "32",        [STYLE_ERROR] = "1;31",   [STYLE_TIME] = "34",
    [STYLE_MEMORY] = "32",         [STYLE_TASKS] = "36",     [STYLE_GPU] = "33",
    [STYLE_KEYWORD] = "35",        [STYLE_CONSTANT] = "36",  [STYLE_STRING] = "32",
    [STYLE_COMMENT] = "2",         [STYLE_DEFINED] = "1",    [STYLE_DECORATOR] = "33",
};

static bool variable_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

bool style_wanted(FILE *out)
{
    const char *force = getenv("CLICOLOR_FORCE");
    const char *terminal = getenv("TERM");
    if (variable_set("NO_COLOR"))
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    return isatty(fileno(out)) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void style_print(FILE *out, bool coloured, enum style style, const char *text)
{
    const char *const pieces[] = { "\033[", codes[style], "m", text, "\033[0m" };
    for (size_t i = 0; coloured && i < sizeof pieces / sizeof *pieces; i++)
        fputs(pieces[i], out);
    if (!coloured)
        fputs(text, out);
}
