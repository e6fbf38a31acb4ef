/*
 * Which thread did what on which stack, and when: what a report tells of time, checked and in whole
 * microseconds, as it would be after saving. A report that tells of hits alone (another profiler's)
 * has its time shared out by them, among one thread without a name.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/report.h"

enum ledger_state {
    STATE_PYTHON,
    STATE_NATIVE,
    STATE_KERNEL,
    STATE_IDLE,
    STATE_WAIT, /* the first of WAIT_KINDS */
    STATE_COUNT = STATE_WAIT + WAIT_KINDS
};

struct ledger_thread {
    int64_t pid, tid;                     /* -1: not known */
    const char *name;                     /* "": none */
    const struct report_process *process; /* NULL: not known */
    bool is_first;                        /* of its process */
    size_t first_entry, entry_count;
    size_t first_run, run_count;
    uint64_t end_us; /* of its last run */
};

/* One thread on one stack. */
struct ledger_entry {
    uint32_t thread, stack;
    uint64_t hits, samples;
    uint64_t us[STATE_COUNT];
    uint64_t run_samples; /* of all its runs; 0: when it happened is not known */
};

/* A part of an entry: samples one after the other. */
struct ledger_run {
    uint32_t entry;
    uint64_t start_us, end_us;
    uint64_t samples, before; /* before: of the entry's earlier runs */
};

struct ledger {                    /* all zero is empty */
    struct ledger_thread *threads; /* as many as the index has keys; all, also idle ones */
    struct ledger_entry *entries;  /* by thread, then by stack */
    struct ledger_run *runs;       /* by thread, then by time */
    struct key_index thread_index, entry_index;
    size_t thread_room, entry_count, run_count;
};

/* Borrows the report. 0 or -ENOMEM. */
int ledger_init(struct ledger *ledger, const struct report *report);
void ledger_done(struct ledger *ledger);

/* "python", …, "idle", "gil", … */
const char *ledger_state_name(enum ledger_state state);

/* CPU and idle time, which percentages are shares of; waiting, of all kinds; and CPU time and
 * waiting, which is all that the thread did: what is idle time is among what it waited for. */
uint64_t ledger_base_us(const struct ledger_entry *entry);
uint64_t ledger_cpu_us(const struct ledger_entry *entry);
uint64_t ledger_wait_us(const struct ledger_entry *entry);
uint64_t ledger_wall_us(const struct ledger_entry *entry);

/* The run's part of an amount of its entry: the parts' sum is the whole. */
uint64_t ledger_part(const struct ledger *ledger, const struct ledger_run *run, uint64_t amount);

/* The command line of the thread's process, and "process 1, thread 2 name": as they come, not yet
 * valid UTF-8. The caller frees them; NULL when out of memory. */
char *ledger_command(const struct ledger_thread *thread);
char *ledger_title(const struct ledger_thread *thread);

/* What JSON keeps of a number: six digits behind the point, as an integer. Not below 0. */
uint64_t ledger_millionths(double number);

/* A moment since 1970, which is longer than anything that is counted. */
uint64_t ledger_moment_us(double seconds);

/* When the footprint was that; what is no time is 0. */
uint64_t ledger_point_ns(const struct point *point);

/* Megabytes as bytes. */
uint64_t ledger_bytes(double megabytes);
