/*
 * Whole stacks of a live process's threads: an unpaused read where the kernel's account proves that
 * the thread did not run meanwhile, a pause of that one thread otherwise. Only Python threads are
 * ever paused, one at a time, and each is resumed before anything is decoded.
 */
#pragma once

#include "pyabi/pyabi.h"
#include "sampler/base/event.h"
#include "sampler/target/core_holder.h"
#include "sampler/target/process.h"

struct object_list;
struct stack_reader;

struct stack_options {
    bool native;                 /* native frames too */
    bool native_lines;           /* with their source lines, which are slow to load */
    bool nonblocking;            /* never pause: looks at running threads must agree */
    struct core_holder *holder;  /* for threads that call the kernel often; NULL: do without */
    struct object_list *objects; /* symbols of files, shared with other readers; NULL: its own */
    unsigned wants;              /* enum py_wants */
    unsigned find_methods;       /* bit per enum python_found_by; 0: all */
};

/* How the reads went, since the reader was opened. */
struct stack_counts {
    uint64_t clean;   /* whole at the first look */
    uint64_t retried; /* whole after another look */
    uint64_t dropped; /* not whole; the thread's event carries an error */
    uint64_t refused; /* of those: the kernel does not let us pause the thread */
    uint64_t cut;     /* whole but for frames that lie too deep; so does it then */
    uint64_t pauses, paused_ns, longest_pause_ns;
    uint64_t stood_ns; /* that threads stood and had no other reason to: also while we waited for a
                          core, which costs them nothing where others have the cores */
};

/* Finds and opens the Python in the process, which is borrowed. -ENOENT: there is none; see
 * python_find. */
int stack_reader_open(struct process *process, const struct stack_options *options,
                      struct stack_reader **ret, struct failure *why);
void stack_reader_close(struct stack_reader *reader);

const char *stack_reader_python(const struct stack_reader *reader);
const char *stack_reader_object(const struct stack_reader *reader);
struct stack_counts stack_reader_counts(const struct stack_reader *reader);

/* Starts a round: all Python threads. Count, or -EAGAIN (changed under the look again and again),
 * -ESRCH, … */
int stack_reader_list(struct stack_reader *reader);

/*
 * Starts a round with the threads of the last one: they keep their index, one that ended shows it
 * when it is read, and texts of earlier rounds live on. 0; or 1: threads or mapped objects are not
 * what they were, and stack_reader_renew has to follow; or -ESRCH, …
 */
int stack_reader_begin(struct stack_reader *reader);

/* Looks for threads and objects anew, after which no text of an earlier round may be touched. Count
 * as above. */
int stack_reader_renew(struct stack_reader *reader);

/* Rounds that found other threads than the one before, so far: indices hold while it stands. */
uint64_t stack_reader_generation(const struct stack_reader *reader);

/* Who it is, without looking at its stack: ids and name. */
void stack_reader_describe(const struct stack_reader *reader, size_t index,
                           struct thread_event *ret);

struct wait_state;

/* The kernel's account of a thread of this round, which the next stack_reader_read of it then uses.
 */
int stack_reader_account(struct stack_reader *reader, size_t index, struct wait_state *ret);

/* Fills in threading's names for this round. */
void stack_reader_name_threads(struct stack_reader *reader);

/*
 * One thread of this round. Everything in the event lives until the next round, its texts until
 * the next stack_reader_list or _renew. A thread whose stack could not be read whole is an event
 * with an error text and no frames, and the call returns the reason; -ESRCH when it ended.
 */
int stack_reader_read(struct stack_reader *reader, size_t index, struct thread_event *ret);

/*
 * A read of one thread's Python frames alone, without asking the kernel or pausing. 0 when it was
 * whole: for a thread that stands still by one look, for one that runs by some that agree, which is
 * what nonblocking reads are made of.
 */
int stack_reader_look(struct stack_reader *reader, size_t index, bool stands_still);
