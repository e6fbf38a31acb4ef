/*
 * A live process's bytes, as remote.h wants them: process_vm_readv, or /proc/PID/mem where that
 * call is missing or filtered away. Threads are running; any read may be torn. Never writes.
 */
#pragma once

#include "sampler/base/remote.h"

int memory_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                       size_t *ret_tail);
