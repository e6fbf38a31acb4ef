/* What is found in each source that standard input names, each closed by an empty line. */
#include "tests/regions/regions_text.h"

#include <errno.h>
#include <string.h>

static int file_print(const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    AUTO_FREE char *text = NULL;
    size_t room = 0;
    AUTO_REGIONS struct source_regions *regions = NULL;
    if (!file)
        return -errno;
    ssize_t size = getdelim(&text, &room, EOF, file); /* all of it */
    int error = source_regions_new(size > 0 ? text : "", size > 0 ? (size_t)size : 0, &regions);
    if (error)
        return error;
    regions_write(stdout, regions);
    puts("");
    return 0;
}

int main(void)
{
    AUTO_FREE char *path = NULL;
    size_t room = 0;
    for (ssize_t size; (size = getline(&path, &room, stdin)) > 0;) {
        path[size - 1] = '\0';
        int error = file_print(path);
        if (error) {
            fprintf(stderr, "%s: %s\n", path, strerror(-error));
            return 1;
        }
    }
    return 0;
}
