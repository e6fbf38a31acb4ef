/*
 * Facts about a running CPython, from its remote bytes alone: no ptrace, no files, no output. The target's
 * threads may be running; each function says what that means for its answer. Everything in remote memory
 * is hostile: walks are bounded, sizes checked, cycles end.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python; /* one CPython runtime in one process */

/* Does a runtime that we know stand at that address? 0 and the version (as in PY_VERSION_HEX), -ENOTSUP with
 * the version when it is a CPython that we do not know, -EBADMSG when it is none, -EFAULT, -ESRCH.
 * `version_hint` is what symbols or file names said, 0 when nothing did. */
int python_probe(struct remote *memory, remote_addr runtime, uint32_t version_hint,
                 uint32_t *ret_version);

/* Offsets of `interpreters.head` in the runtimes that have no cookie, for a scan: ends with 0. */
const uint32_t *python_head_offsets(void);

int python_open(struct remote *memory, remote_addr runtime, uint32_t version_hint, struct python **ret,
                struct failure *why);
void python_close(struct python *python);

/* "3.14.2" or "3.14.2t" (free-threaded) */
const char *python_version_text(const struct python *python);
