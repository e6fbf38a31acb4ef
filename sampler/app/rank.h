/* Which of the processes of a parallel program one is: what MPI's launchers and Slurm's tell each
 * in its environment. */
#pragma once

#include <sys/types.h>

/* -1: of none. As it was told when its program began. */
int rank_read(pid_t pid);
int rank_own(void);
