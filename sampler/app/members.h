/*
 * The processes of a profiling run: each is opened when a Python shows in it, looked at every tick,
 * and told of in the profile whatever became of it.
 */
#pragma once

#include "output/model/profile.h"
#include "sampler/app/sources.h"
#include "sampler/loop/tick.h"

struct members;

/* Borrows all: `settings` decide which stacks idle time may go to, `sources` are told of each
 * member. Times are CLOCK_MONOTONIC.
 */
int members_new(const struct stack_options *options, struct sources *sources, uint64_t start_ns,
                struct members **ret);
void members_free(struct members *members);

/*
 * `cpu_ns` is the kernel's account of the process at that moment; of one that is `born` all of it
 * is ours to tell, of another what it uses from now on.
 */
int members_join(struct members *members, pid_t pid, pid_t ppid, bool born, uint64_t cpu_ns,
                 uint64_t now_ns);

/* Is it one of them, and alive as far as was heard? */
bool members_include(struct members *members, pid_t pid);

/* It became another program. 0 or -ENOMEM. */
int members_exec(struct members *members, pid_t pid, uint64_t cpu_ns, uint64_t stack_start,
                 uint64_t now_ns, struct profile *profile);
void members_end(struct members *members, pid_t pid, int exit_status, uint64_t cpu_ns,
                 uint64_t now_ns);

/* Opens what is due. Returns how many members were opened so far; `why` keeps the last one that was
 * not allowed or is not known. */
size_t members_open_due(struct members *members, uint64_t now_ns, struct failure *why);

/* When that has something to do; UINT64_MAX: nothing. */
uint64_t members_deadline_ns(const struct members *members);

/* A Python that came up without the shim and may be given it by now; 0: none. */
pid_t members_find_bare(const struct members *members, uint64_t now_ns);

/* What came of that: 0 or a negative errno. */
void members_learn_shim(struct members *members, pid_t pid, int error, uint64_t now_ns);

/* Does any that lives have the ring of that memory file? */
bool members_share_ring(const struct members *members, int fd);

/* Lets go of those that have ended, which each look does, too. 0 or -ENOMEM. */
int members_finish(struct members *members, struct profile *profile);

/* Looks at every member and adds what it saw to the profile. 0 or -ENOMEM. */
int members_tick(struct members *members, uint64_t now_ns, struct profile *profile);

/* While they are muted, as the profile is, what they use is not ours to tell. */
void members_mute(struct members *members, bool muted);

/* Somebody else is about to tell of that process: the profile hears first who it is, as far as that
 * is known. 0 or -ENOMEM. */
int members_introduce(struct members *members, pid_t pid, struct profile *profile);

/* What is still untold, and every member as it stands, goes into the profile; at the `last` time
 * also what the living used since they were looked at. 0 or -ENOMEM. */
int members_tell(struct members *members, uint64_t now_ns, bool last, struct profile *profile);

struct members_glance {
    size_t alive;        /* members that have not ended */
    size_t python;       /* that were Pythons */
    size_t without_shim; /* of those */
    uint64_t samples, rss_bytes;
    struct stack_counts counts; /* over all members, the ended too */
};
void members_look(const struct members *members, struct members_glance *ret);
