/*
 * What is remembered of a process between ticks: for tick.c, which looks at its threads,
 * tick_twins.c, which tells whose time it is where a thread has several stacks, tick_unseen.c,
 * which adds what no look has shown or will show, and tick_stacks.c, which keeps stacks. Private to
 * those.
 */
#pragma once

#include "sampler/loop/tick.h"
#include "sampler/loop/unseen.h"

/* What is remembered of a thread between ticks. */
struct account {
    pid_t tid;
    uint64_t ident;
    int64_t interpreter;
    uint64_t run_ns, queued_ns, turns; /* the kernel's, at the last look */
    uint64_t seen_ns;                  /* when that was */
    uint64_t next_ns, nap_ns;          /* an idle thread is left alone until then, … */
    uint64_t left_ns;                  /* … and was last at this moment, … */
    bool doubtful;                     /* … and of its process something has run meanwhile */
    uint64_t pending_ns;               /* CPU time that no look has met yet, … */
    bool lost;                         /* … or of which looks have failed, … */
    uint64_t pending_queued_ns;        /* … and time without a core, … */
    int64_t pending_off_ns; /* … and other waits; looks are not quite simultaneous: signed */
    uint64_t stood_ns;      /* because of us, at the last look, … */
    uint64_t paused_turns;  /* … and the turns that a sleeper took for that */
    enum thread_state state;
    enum cpu_kind cpu;
    struct frame_event *frames;
    size_t frame_count, frame_capacity;
    struct frame_event *told_frames; /* of the place before, told of in a tick in which it moved */
    size_t told_capacity;
    bool told; /* that is about to be so */
    const char *name;
    bool keeps_texts; /* `name` and those of `frames` are the target's own */
    bool known, has_stack, gone;
    bool born;     /* began under our eyes: all of its time is ours to tell */
    bool end_told; /* all that it did is told of */
    bool worked;   /* a look has met it with work to do */
};

struct target {
    struct process *process;
    struct stack_reader *reader;
    struct account *accounts; /* in the order of the reader's threads */
    size_t count;
    uint64_t generation;
    struct account *ended; /* no thread any more; told of in this tick, forgotten in the next */
    size_t ended_count;
    unsigned busy_count;   /* threads that a look of this tick met busy */
    bool has_ended;        /* a thread, since the last tick */
    struct account *young; /* of this tick: a look met it working for the first time */
    struct intern *texts;  /* of stacks that are older than the reader's round */
    struct unseen *unseen;
    uint64_t unseen_ns; /* when threads without Python were asked last */
    struct sample_event *samples;
    size_t sample_count, sample_room;
    uint64_t excess_ns; /* told of too much: what one that ended was thought to have done was
                           another's, who has yet to tell of it */
    uint64_t last_ns, rss_ns;
    uint64_t gap_ns;                 /* on average between two ticks, lately */
    bool accounts_lag;               /* threads that run are not stopped for theirs */
    uint64_t names_ns, names_gap_ns; /* when threads are asked for their names again */
    uint64_t cpu_ns;                 /* of the whole process, when the last tick began */
    bool still;                      /* no thread has run since then */
    bool has_twins;                  /* a thread is in several interpreters */
    int64_t pending_idle_ns;         /* idle time that no look has met; below 0: more was told of */
    uint64_t told_idle_ns;           /* since threads without Python were asked */
};

/* Room for that many samples in this tick. */
int target_reserve_samples(struct target *target, size_t count);
struct sample_event *target_add_sample(struct target *target, const struct account *account);

bool account_is_running(const struct account *account);
bool account_is_busy(const struct account *account); /* so, or it would be if there were a CPU */
void account_share_out(const struct account *account, uint64_t cpu_ns, struct sample_event *sample);

/* When threads came or went: one that has entered one more interpreter has been accounted for. */
void target_match_twins(struct target *target);

/* Of a thread's stacks the one of the innermost interpreter that runs code has its time. */
bool account_yields(const struct target *target, const struct account *account);

/* The stack of this round, until the next one that is kept: 0 or -ENOMEM. */
int account_keep_stack(struct account *account, const struct thread_event *event);

/* What the reader knows of the threads' names now. */
void target_keep_names(struct target *target);

/* Before the reader lets texts go: stacks that are kept get their own. 0 or -ENOMEM. */
int target_keep_texts(struct target *target);

/* Who waits has done so up to then; the next look will know whether it was so. */
void target_tell_wait(struct target *target, struct account *account, uint64_t until_ns);

/* The waiting of a thread that was left alone, at the place where it was; one sample at most. */
void target_tell_place(struct target *target, struct account *account);

/* Adds what no look of this tick has shown, after all of them: 0, or -ENOMEM, -ESRCH. */
int target_tell_unseen(struct target *target, uint64_t now_ns);
