/*
 * The shim's beginning, in each process that it is loaded into, and after each fork. When there is
 * no ring beside the library, or one that is none of ours, nothing is recorded, ever.
 */
#define _GNU_SOURCE 1 /* dladdr */

#include "sampler/shim/shim.h"
#include "sampler/shim/account.h"
#include "sampler/shim/codes.h"
#include "sampler/shim/hooks.h"
#include "sampler/shim/mappings.h"
#include "sampler/shim/profile_builtin.h"
#include "sampler/shim/python_hooks.h"
#include "sampler/shim/records.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define RING_NAME "ring"

/* Beside the library, under the name that it was loaded by. */
static bool ring_path(char *into, size_t size)
{
    Dl_info self;
    if (!dladdr(&recorder, &self) || !self.dli_fname)
        return false;
    const char *slash = strrchr(self.dli_fname, '/');
    size_t folder = slash ? (size_t)(slash + 1 - self.dli_fname) : 0;
    if (!slash || folder + sizeof RING_NAME > size)
        return false;
    memcpy(into, self.dli_fname, folder);
    memcpy(into + folder, RING_NAME, sizeof RING_NAME);
    return true;
}

/* The one thread of the child: what the parent had allocated is not followed here. */
static void child_begin(void)
{
    if (!recorder.ring.head)
        return;
    struct stay stay = stay_begin();
    recorder_claim();
    shim_thread.tid = 0;
    shim_thread.term = 0;
    shim_thread.countdown = stay.copy_countdown = 0;
    blocks_forget();
    mappings_forget();
    codes_untell();
    attached_begin_child();
    if (!recorder.asleep)
        record_process(true);
    stay_end(stay);
}

static void recording_begin(void)
{
    recorder_claim();
    python_hooks_begin();
    if (recorder.has_python)
        profile_builtin_add(&recorder.python);
    if (hooks_pass_by)
        ring_tell_gap(&recorder.ring, GAP_PROGRAM);
    record_process(false);
}

__attribute__((constructor)) static void shim_begin(void)
{
    char path[PATH_MAX];
    hooks_resolve();
    struct stay stay = stay_begin();
    if (ring_path(path, sizeof path) && ring_open(path, &recorder.ring) == 0)
        recording_begin();
    else
        hooks_resolve_attached();
    pthread_atfork(NULL, NULL, child_begin);
    atomic_store_explicit(&recorder.began, true, memory_order_release);
    stay_end(stay);
}
