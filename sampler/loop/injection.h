/*
 * The shim in a process that runs already: brought as a memory file of the target's own, so that no
 * file system, user or namespace stands between, loaded, and armed; disarmed at the end. In stages,
 * each with its undo. The library stays mapped, and the next injection uses it again.
 */
#pragma once

#include "sampler/loop/ring_reader.h"
#include "sampler/target/process.h"
#include "sampler/target/stillness.h"

#define SHIM_FILE_NAME "libscalene_shim.so"

struct injection_plan {
    const char *library; /* our copy of the shim */
    struct ring_settings ring;
    int cancel_fd;        /* readable: somebody wants us to stop; -1: nobody can */
    unsigned patience_ms; /* with threads that are in the allocator or the loader */
};

struct injection;

/*
 * The process is borrowed. Nothing of the target is changed when it fails, save that the library
 * may stay mapped, or its memory file where no thread could be had to close it: the next one does.
 * -ENOTSUP: nothing can be injected there; -EBUSY: not now; -ESRCH, -EPERM, -ECANCELED, …; `why`
 * says it in a sentence.
 */
int injection_open(struct process *process, const struct injection_plan *plan,
                   struct injection **ret, struct failure *why);

/* Every few milliseconds, or less often: what the target has loaded meanwhile is armed, too, by a
 * call for which all its threads stand; where none is to be had soon, later. */
void injection_follow(struct injection *injection, uint64_t now_ns);

/* Is anything that was loaded still to be armed? */
bool injection_is_behind(const struct injection *injection);

/* Adds what its threads stood for us until now. */
void injection_tell_stood(const struct injection *injection, struct stood *sum);

/* Not armed yet. */
struct ring_reader *injection_ring(const struct injection *injection);

/* 0 when nothing of the shim is armed there any more, or the process is gone. Once is enough. What
 * was recorded can be read on. */
int injection_disarm(struct injection *injection, struct failure *why);

/* Disarms it, too. */
void injection_close(struct injection *injection);
