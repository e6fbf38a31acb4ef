/*
 * The part of a process's CPU time that no look at its Python threads shows: that of threads that
 * ended between two looks, and of threads without Python. Knows the kernel's account of the whole
 * process, and of each thread that runs no Python; pauses nothing.
 */
#pragma once

#include "sampler/target/process.h"

struct unseen;

int unseen_new(const struct process *process, struct unseen **ret);
void unseen_free(struct unseen *unseen);

/* CPU time that was told of, of a Python thread or by unseen_tell's caller. */
void unseen_account(struct unseen *unseen, uint64_t ran_ns);

/* A thread that was taken for one without Python is a Python thread: what was told of it so far. */
uint64_t unseen_take(struct unseen *unseen, pid_t tid);

/* What nobody has been told of yet, since the first call. 0 when the process is gone. */
uint64_t unseen_rest(struct unseen *unseen);

/* What was told of beyond that: a guess was too high. */
uint64_t unseen_excess(struct unseen *unseen);

struct unseen_thread {
    pid_t tid;
    uint64_t run_ns; /* the kernel's, at the last look */
    uint64_t ran_ns; /* since the one before, or since it began */
    char name[16];
    bool alive;
};

/*
 * Looks at all threads but those that are known; the first time only for what to count from. Their
 * number, or -ENOMEM, -ESRCH; the list lives until the next call.
 */
int unseen_look(struct unseen *unseen, bool (*is_known)(const void *context, pid_t tid),
                const void *context, const struct unseen_thread **ret);
