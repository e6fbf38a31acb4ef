#include "sampler/app/rank.h"

#include "sampler/base/cleanup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                     "SLURM_PROCID" };
enum { NAMES = sizeof names / sizeof *names };

static int rank_parse(const char *text)
{
    char *end;
    long rank = strtol(text, &end, 10);
    return end != text && !*end && rank >= 0 && rank <= INT_MAX ? (int)rank : -1;
}

/* The earlier name is the one nearer to the program: Slurm starts MPI's launcher, too. */
int rank_read(pid_t pid)
{
    char path[32];
    AUTO_FREE char *entry = NULL;
    size_t size = 0, best = NAMES;
    int rank = -1;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    AUTO_FCLOSE FILE *from = fopen(path, "re");
    while (from && getdelim(&entry, &size, '\0', from) > 0)
        for (size_t i = 0; i < best; i++) {
            size_t length = strlen(names[i]);
            if (strncmp(entry, names[i], length) != 0 || entry[length] != '=')
                continue;
            rank = rank_parse(entry + length + 1);
            best = i;
        }
    return rank;
}

int rank_own(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return rank_parse(value);
    }
    return -1;
}
