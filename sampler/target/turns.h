/* How the calling thread gets a core that others use, too. */
#pragma once

#include <stdbool.h>

/*
 * From now on whoever runs where it wakes up makes way at once, from Linux 6.12 on, instead of
 * running on until its turn ends or until it waits for something. Threads and processes that are
 * begun from here on have usual turns. Boldly: before everybody else who is not real-time, where we
 * may.
 */
void turns_want_short(bool boldly);
