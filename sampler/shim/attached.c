/*
 * The shim in a process that ran already: the profiler loads it there and calls these, in a thread
 * that stands where no lock of the C library is held, while all others stand and none is in the
 * loader. None of them takes a lock: what would is the constructor's.
 */
#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/account.h"
#include "sampler/shim/blocks.h"
#include "sampler/shim/codes.h"
#include "sampler/shim/hooks.h"
#include "sampler/shim/imports.h"
#include "sampler/shim/loaded_object.h"
#include "sampler/shim/mappings.h"
#include "sampler/shim/python_hooks.h"
#include "sampler/shim/records.h"
#include "sampler/shim/shim.h"

#include <errno.h>
#include <stdatomic.h>

HOOK_EXPORTED int scalene_shim_arm(int ring_fd);
HOOK_EXPORTED int scalene_shim_rearm(void);
HOOK_EXPORTED int scalene_shim_disarm(void);

/* A call that its profiler has given up may still be running. */
static atomic_flag busy = ATOMIC_FLAG_INIT;

/* What was counted for one who does not listen any more is nothing to the next. */
static void account_forget(void)
{
    blocks_forget();
    mappings_forget();
    codes_forget();
    codes_untell();
}

/* Until something is hooked no other thread is in here. */
static void begin_once(void)
{
    if (recorder.attached)
        return;
    recorder.attached = true;
    recorder_claim();
}

static int ring_take_place(int fd)
{
    const struct ring_place place = { recorder.ring.head, recorder.ring.size };
    struct ring ring;
    int error = ring_adopt(fd, &place, &ring);
    if (error)
        return error;
    ring.size = place.at ? place.size : ring.size;
    recorder.ring = ring;
    return 0;
}

static int hooks_arm_imports(void)
{
    int error = imports_arm();
    if (error != -ENOSPC)
        return error;
    ring_tell_gap(&recorder.ring, GAP_IMPORTS);
    return 0;
}

static int hooks_arm(void)
{
    struct python python;
    if (!python_find(recorder.ring.head, &python))
        return -ENOENT;
    if (!python.is_initialized())
        return -EAGAIN;
    recorder.python = python;
    atomic_store_explicit(&recorder.has_python, true, memory_order_release);
    account_forget();
    atomic_fetch_add(&recorder.term, 1);
    if (!python_hooks_attach())
        ring_tell_gap(&recorder.ring, GAP_ALLOCATORS);
    return hooks_arm_imports();
}

static int arm(int ring_fd)
{
    if (recorder.ring.head && !recorder.attached)
        return -EEXIST;
    begin_once();
    int error = ring_take_place(ring_fd);
    if (error)
        return error;
    atomic_store(&recorder.asleep, false); /* what is hooked from here on is to be taken back */
    error = hooks_arm();
    if (error)
        return error;
    if (hooks_pass_by)
        ring_tell_gap(&recorder.ring, GAP_PROGRAM);
    record_process(false);
    return 0;
}

static int rearm(int unused)
{
    (void)unused;
    return !recorder.attached || recorder.asleep ? -ENOENT : hooks_arm_imports();
}

static int disarm(int unused)
{
    (void)unused;
    const struct ring_place place = { recorder.ring.head, recorder.ring.size };
    int error = recorder.attached ? imports_disarm() : -ENOENT;
    if (error)
        return error;
    if (recorder.has_python && !recorder.asleep && !python_hooks_detach())
        ring_tell_gap(&recorder.ring, GAP_ALLOCATORS);
    atomic_store(&recorder.asleep, true);
    if (place.at)
        ring_leave(&place, true);
    account_forget();
    return 0;
}

static int call(int (*function)(int), int argument)
{
    if (atomic_flag_test_and_set(&busy))
        return -EBUSY;
    struct stay stay = stay_begin();
    int error = loaded_objects_are_whole() ? function(argument) : -EINPROGRESS;
    stay_end(stay);
    atomic_flag_clear(&busy);
    return error;
}

/* 0, -EEXIST (the shim was there from the start), -ENOENT (no Python whose functions are to be
 * found), -EAGAIN (one that only begins or ends), -EINPROGRESS (an object does), -EBUSY (another
 * call has not come to its end), … */
int scalene_shim_arm(int ring_fd)
{
    return call(arm, ring_fd);
}

/* Objects were loaded since. */
int scalene_shim_rearm(void)
{
    return call(rearm, 0);
}

int scalene_shim_disarm(void)
{
    return call(disarm, 0);
}

void attached_begin_child(void)
{
    atomic_flag_clear(&busy);
}
