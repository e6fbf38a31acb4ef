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
    bool finishes;        /* ended, and now the profile is told all of it */
    bool begins;          /* opened, and not looked at yet */
    bool had_stacks;      /* under whatever program */
    bool execed;          /* until then it is its parent's copy, with what that had loaded */
    int refusal;          /* why it was not opened at the last try … */
    uint64_t stack_start; /* … and of which program that was: as in struct process */
    uint64_t looks, refused_looks; /* of the target, and those that wanted a pause and got none … */
    pid_t tracer;                  /* … because of this one, if anybody knows; else 0 */
    char tracer_name[16];
    uint64_t joined_ns, ended_ns, next_try_ns, try_ns;
    int exit_status, rank;
    uint64_t main_ident; /* of its main thread, as last seen; 0: not yet */
    uint64_t cpu_ns;     /* the kernel's account, as last learnt */
    uint64_t base_ns;    /* of that: before it was ours to tell */
    uint64_t told_ns;    /* of that: went into the profile */
    uint64_t excess_ns;  /* what was told beyond the account at its end */
    uint64_t rss_bytes, peak_rss_bytes;
    struct footprint footprint;               /* the largest */
    uint64_t first_anonymous_bytes;           /* at the first look; 0: there was none */
    uint64_t footprint_rss_bytes;             /* when it was last looked at */
    uint64_t footprint_ns, footprint_cost_ns; /* when that was, and how long it took */
    bool has_shim;                            /* or had, when it was opened */
    uint64_t shim_ns, shim_gap_ns;            /* when it may be brought next; UINT64_MAX: never */
    char arguments[ARGUMENTS_SIZE];
    const char *argv[ARGUMENTS_MAX + 1];
    bool has_more_arguments; /* than are kept */
    char executable[512], cwd[512], python[24], note[96];
};

/* Another program is in it: to be opened. What is known of that one already, because an exec may be
 * heard of late, stays known; `stack_start` is 0 where nothing can be. False: it has no words any
 * more, and keeps those that it had. */
bool member_begin(struct member *member, uint64_t stack_start, uint64_t now_ns);

/* It was forked and is gone: until it execs, a child has its parent's words. */
void member_inherit(struct member *member, const struct member *parent);

/* It has execed and is gone: words that are still its parent's are another program's. */
void member_disinherit(struct member *member, const struct member *parent);

/* "" where that cannot be told. */
void member_read_cwd(pid_t pid, char *into, size_t size);

/* The account as somebody knows it. */
void member_learn_cpu(struct member *member, uint64_t cpu_ns);
uint64_t member_untold_ns(const struct member *member);

/* Its resident memory was looked at; once in a while, more than that is. */
void member_learn_memory(struct member *member, uint64_t rss_bytes);

/* It was looked at: could its threads be paused? */
void member_learn_refusals(struct member *member);

/* Looks for a Python in it. 0: `target` is there. Else when to try again is set, and `why`. */
int member_open(struct member *member, const struct stack_options *options, struct sources *sources,
                uint64_t now_ns, struct failure *why);

/* The shim is to be brought by now: not at once, as most that are young end soon. */
bool member_wants_shim(const struct member *member, uint64_t now_ns);

/* A Python, and never had it. */
bool member_is_bare(const struct member *member);

/* What came of it: 0, -EBUSY to be tried again later, or for good. */
void member_learn_shim(struct member *member, int error, uint64_t now_ns);

/* For good: not allowed, or no CPython that is known. */
bool member_is_refused(const struct member *member);
bool member_waits_for_open(const struct member *member);

/* Of its anonymous memory, from the first look at that to the largest. */
uint64_t member_grown_bytes(const struct member *member);

/* Why nothing, or not all, is to be seen of it; NULL: all may be. */
const char *member_note(struct member *member);
