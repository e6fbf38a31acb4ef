/*
 * The arenas that pymalloc cuts small blocks out of. They are counted by what is cut out of them,
 * so asking for one is not counted by itself, whoever happens to be the one for whom it is needed.
 */
#pragma once

#include <stdbool.h>

/* False where there is no way to look after them. Once is enough. */
bool arenas_guard(void);
void arenas_leave(void);
