/*
 * A whole process that stands, for as long as it takes to write some bytes that several of its
 * threads write as well, or to have one of them make a call that must not meet the others: each is
 * paused, so that what was read there is still true. Whoever is killed meanwhile leaves it to the
 * kernel to let them go.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/trace.h"

/* How long threads stood, and how many times. */
struct stood {
    uint64_t count, sum_ns, longest_ns;
};

void stood_add(struct stood *sum, const struct stood *more);

struct stillness {
    struct pause *pauses;
    size_t count, capacity;
    int memory_fd;
    struct stood stood; /* of those that have been let go */
};

/*
 * All its threads, or none: 0; -EAGAIN (one is in a sleep that nothing interrupts), -E2BIG (more
 * than `most` would stand for too long), -EPERM, -ESRCH, -ENOMEM. To be ended by the thread that
 * began it.
 */
int stillness_begin(const struct process *process, size_t most, struct stillness *ret);

/* Those that have been begun since by threads that were let on. As above. */
int stillness_extend(const struct process *process, struct stillness *still, size_t most);

/* One of its pauses: lets that thread on; or hands it over to the caller. */
void stillness_resume(struct stillness *still, struct pause *pause);
struct pause stillness_take(struct pause *pause);

/* All others. What they stood is left. */
void stillness_end(struct stillness *still);

/* 0, -EFAULT, -ESRCH. */
int stillness_write(const struct stillness *still, remote_addr address, const void *bytes,
                    size_t size);
