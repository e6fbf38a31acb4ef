/*
 * Facts about a running CPython, from its remote bytes alone: no ptrace, no files, no output. The
 * target's threads may be running; each function says what that means for its answer. Everything in
 * remote memory is hostile: walks are bounded, sizes checked, cycles end.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python; /* one CPython runtime in one process */
struct view;   /* what is predicted of one thread's memory: pyabi/view.h */

/*
 * Does a runtime that we know stand at that address? 0 and the version (as in PY_VERSION_HEX),
 * -ENOTSUP with the version when it is a CPython that we do not know, -EBADMSG when it is none,
 * -EFAULT, -ESRCH. `version_hint` is 0 when nothing is known of it, the first two numbers alone
 * when a file's name said them, or a whole version, which is believed where the target says nothing
 * else: the third of its numbers may be VERSION_MICRO_UNTOLD.
 */
enum { VERSION_MICRO_UNTOLD = 0xff };

int python_probe(struct remote *memory, remote_addr runtime, uint32_t version_hint,
                 uint32_t *ret_version);

/* Offsets of `interpreters.head` in the runtimes that have no cookie, for a scan: ends with 0. */
const uint32_t *python_head_offsets(void);

/* `memory` is borrowed and must outlive it. */
int python_open(struct remote *memory, remote_addr runtime, uint32_t version_hint,
                struct python **ret, struct failure *why);
void python_close(struct python *python);

/* "3.14.2", "3.14.2t" (free-threaded), or "3.9" where nothing tells more */
const char *python_version_text(const struct python *python);

/* What a stack read is to tell beyond the frames; each costs a little more. Nothing at first. */
enum py_wants {
    WANT_ANCHORS = 1, /* where each run of the evaluation loop lies on the C stack */
    WANT_OWNER = 2,   /* who holds the GIL and who collects garbage, at the same moment */
    WANT_DEPTH = 4,   /* stacks to FRAMES_MAX, however long the thread may have to stand for them */
};
void python_want(struct python *python, unsigned wants);

/* ---- threads ---- */

/* Where the kernel's id stands in glibc's struct pthread on x86-64, and on aarch64: behind the
 * thread control block and a list's head (nptl/descr.h). */
enum { USUAL_TID_OFFSETS = 2 };
extern const uint32_t usual_tid_offsets[USUAL_TID_OFFSETS];

struct py_thread {
    remote_addr state;       /* PyThreadState */
    remote_addr interpreter; /* PyInterpreterState */
    int64_t interpreter_id;
    uint64_t ident;           /* threading.get_ident() */
    uint64_t native_id;       /* as the target's innermost PID namespace numbers it; 0: not found */
    const char *name;         /* threading's; NULL: unknown. Lives until the next round */
    remote_addr gil, gil_end; /* a futex in between is a wait for the GIL; 0 without a GIL */
    bool shares_id;           /* another has the same: who runs either is somebody else to tell */
    remote_addr c_stack;      /* an address on the C stack of who runs it; 0: not known */
};

/*
 * Starts a round: all threads of all interpreters, the main interpreter's first. What earlier
 * rounds returned may be gone afterwards. `main_id` is the process's id in its own PID namespace;
 * before 3.11 it is what tells where in the C library's thread struct the kernel's id stands.
 * Threads may be running: a list that changes under the walk is -EAGAIN. Returns the count; the
 * array is borrowed until the next round.
 */
int python_list_threads(struct python *python, uint64_t main_id, const struct py_thread **ret);

/*
 * Is a round due: has a thread or an interpreter begun since the last one, or is what rounds
 * remember too much by now? One read. 1, 0, or -ESRCH, -EAGAIN, … `ahead` is the view of a thread
 * whose stack is most probably asked for next, at MOMENT_RUNNING, or NULL: that is looked at in the
 * same read, and the next python_read_stack of the kind, if there is one before the list is asked
 * for again, believes what was seen then.
 */
int python_threads_changed(struct python *python, struct view *ahead);

/* Did that read meet the thread of this view running? Nobody else writes to its data stack. Only
 * from 3.11 on, and until the stack is asked for. */
bool python_ran_ahead(const struct python *python, const struct view *view);

/* Fills in the names, which the list leaves out because they cost more reads. Missing names are no
 * error. */
void python_name_threads(struct python *python);

/* ---- scripts ---- */

/*
 * Where a thread is asked to run a script when it comes by the evaluation loop, as sys.remote_exec
 * does it: a path ending with NUL, 1 in the 32 bits of `pending`, then `bit` beside what else
 * stands in the 64 bits of `breaker`, which other threads write as well. It clears `pending` when
 * it begins.
 */
struct py_script_place {
    remote_addr path, pending, breaker;
    uint64_t bit, yields; /* the latter asks it to let others have the GIL */
    bool is_attached;     /* it may run Python just now; to others nobody speaks by bits */
    bool is_watched;      /* audit hooks or the thread's tracer would hear of a script */
};

/* 0; -ENOTSUP: a release without it, or it is disabled there; -EFAULT, -ESRCH. */
int python_script_place(struct python *python, const struct py_thread *thread,
                        struct py_script_place *ret);

/* ---- stacks ---- */

struct code_entry;

struct py_frame {
    remote_addr address;
    struct code_entry *code; /* until the next round */
    int64_t offset;          /* bytes into the code; -1: not started */
    bool is_entry;           /* the outermost frame of one run of the C evaluation loop */
    remote_addr anchor;      /* an address in that run's part of the C stack; 0: unknown */
};

struct py_stack {
    const struct py_frame *frames; /* innermost first, until the next read */
    size_t count;
    bool truncated;  /* deeper than FRAMES_BRIEF; with WANT_DEPTH, than FRAMES_MAX */
    bool holds_gil;  /* these two only with WANT_OWNER */
    bool collecting; /* the garbage collector runs, set off by the frame at `gc_index` */
    size_t gc_index;
    uint64_t shape; /* which frames, and where they stand, but for the innermost */
};

#define FRAMES_MAX ((size_t)200000)
#define FRAMES_BRIEF ((size_t)4096) /* what can be read again and again while a thread stands */

/* Is the thread still in its interpreter's list, and no other in its place? One that is ending
 * leaves it while it runs on. */
bool python_has_thread(struct python *python, const struct py_thread *thread);

/* What the caller knows about the thread while it is read. */
enum py_moment {
    MOMENT_STILL,   /* paused, or proven not to have run: one look is enough */
    MOMENT_STUCK,   /* the same, and as it is now it was at many looks before */
    MOMENT_RUNNING, /* two looks that must agree, and every frame must be alive */
};

/*
 * The Python frames of one thread. `view` carries the prediction from one read of the same thread
 * to the next. -EAGAIN: torn (also a thread paused in the middle of a call); -EBADMSG, -EFAULT:
 * likewise, where bytes made no sense; -ESRCH. Never a stack that is known to be wrong.
 */
int python_read_stack(struct python *python, const struct py_thread *thread, struct view *view,
                      enum py_moment moment, struct py_stack *ret);

/* Name, file, line, column (0: unknown) of a frame, texts until the next round. */
struct py_place {
    const char *name, *file;
    int line, column;
    int first_line; /* of the function */
};
/* Does the frame stand at an instruction that calls something? */
bool python_frame_calls(const struct py_frame *frame);

struct py_place python_frame_place(const struct python *python, const struct py_frame *frame);
