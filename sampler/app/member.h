/*
 * One process of a profiling run: who it is, the Python in it once that shows, and how much of the
 * kernel's account of it has been told. What the profile hears is up to members.h.
 */
#pragma once

#include "sampler/app/sources.h"
#include "sampler/loop/tick.h"

enum {
    ARGUMENTS_SIZE = 4096,
    ARGUMENTS_MAX = 64,
};

struct member {
    pid_t pid, ppid;
    struct target *target; /* NULL: not (yet) a Python */
    bool was_python, born, ended, told;
    bool begins;     /* opened, and not looked at yet */
    bool had_stacks; /* under whatever program */
    int refusal;     /* why it was not opened at the last try */
    uint64_t joined_ns, ended_ns, next_try_ns, try_ns;
    int exit_status;
    uint64_t main_ident; /* of its main thread, as last seen; 0: not yet */
    uint64_t cpu_ns;     /* the kernel's account, as last learnt */
    uint64_t base_ns;    /* of that: before it was ours to tell */
    uint64_t told_ns;    /* of that: went into the profile */
    uint64_t excess_ns;  /* what was told beyond the account at its end */
    uint64_t rss_bytes, peak_rss_bytes;
    char arguments[ARGUMENTS_SIZE];
    const char *argv[ARGUMENTS_MAX + 1];
    char executable[512], cwd[512], python[24];
};

/* Another program is in it: to be opened. */
void member_begin(struct member *member, uint64_t now_ns);

/* The account as somebody knows it. */
void member_learn_cpu(struct member *member, uint64_t cpu_ns);
uint64_t member_untold_ns(const struct member *member);

/* Looks for a Python in it. 0: `target` is there. Else when to try again is set, and `why`. */
int member_open(struct member *member, const struct stack_options *options, struct sources *sources,
                uint64_t now_ns, struct failure *why);

/* For good: not allowed, or no CPython that is known. */
bool member_is_refused(const struct member *member);
bool member_waits_for_open(const struct member *member);

/* Why nothing is to be seen of it; NULL: something may be. */
const char *member_note(const struct member *member);
