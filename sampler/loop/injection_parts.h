/* What the parts of an injection share. Private to injection*.c. */
#pragma once

#include "sampler/loop/c_library.h"
#include "sampler/loop/injection.h"
#include "sampler/loop/loaded_list.h"
#include "sampler/loop/script.h"
#include "sampler/target/inject.h"
#include "sampler/target/stillness.h"
#include "symbols/maps.h"

#include <limits.h>

#define LIBRARY_PATH_SIZE 64

/* What the shim exports for us. */
enum shim_function { SHIM_ARM, SHIM_REARM, SHIM_DISARM, SHIM_FUNCTIONS };

struct injection {
    struct process *process;
    struct injection_plan plan;
    char library_path[PATH_MAX]; /* of the plan */
    struct maps maps;
    struct c_library libc;
    uint64_t shim[SHIM_FUNCTIONS]; /* where in its file */
    unsigned patience_ms;
    struct injection_thread *thread; /* NULL: none is held */
    struct stillness still;          /* all others, that stand while it calls; or nobody */
    struct thread_places *places;    /* where they stand; or NULL */
    struct stood stood;
    struct ring_reader *ring;
    unsigned others;      /* shims of other versions that were left there */
    remote_addr library;  /* where the shim is mapped; 0: it is not */
    remote_addr errno_at; /* of the thread that is held */
    int errno_before;
    struct script_asker *asker;               /* NULL: its Python is not to be asked */
    int library_file, ring_file, script_file; /* descriptors of the target's; -1: none */
    bool disarmed;
    struct loaded_list *objects; /* NULL: nobody knows where it is */
    uint64_t look_ns, gap_ns;    /* when it is looked at next */
    bool is_behind;              /* some that were loaded are not armed */
};

/* injection_calls.c */

int injection_call_explain(const struct injection *injection, int error, const char *what,
                           struct failure *why);
int injection_function_call(struct injection *injection, remote_addr function, const char *what,
                            const uint64_t *arguments, uint64_t *ret, struct failure *why);
/* The target makes a system call: its result, or a negative errno. */
long injection_system_call(struct injection *injection, long number, uint64_t first,
                           uint64_t second, const char *what, struct failure *why);
int injection_thread_take(struct injection *injection, struct failure *why);
/* While all others stand: for what needs the loader. One that is held is let go before. */
int injection_thread_take_quiet(struct injection *injection, struct failure *why);
void injection_others_let_go(struct injection *injection);
void injection_thread_let_go(struct injection *injection);
/* injection.c */

/* A memory file of the target's: its descriptor there, and ours. */
int injection_file_make(struct injection *injection, const char *name, unsigned flags,
                        int *ret_number, int *ret_fd, struct failure *why);
void injection_file_close(struct injection *injection, int *number);

/* injection_load.c: nothing to do where the shim is mapped already. */

int injection_learn_maps(struct injection *injection, struct failure *why);
/* Its own Python loads it, if that comes by soon; the thread is let go meanwhile. */
void injection_find_asker(struct injection *injection);
int injection_ask_python(struct injection *injection, struct failure *why);
void injection_script_close(struct injection *injection);
int injection_load(struct injection *injection, struct failure *why);
