/* One walk over a thread's frames, and what is read and checked on the way. Private to pyabi. */
#pragma once

#include "pyabi/python.h"

struct walk {
    struct python *python;
    const struct py_layout *layout;
    const struct py_thread *thread;
    struct view *view;
    struct remote *source;
    remote_addr head;   /* the innermost frame */
    remote_addr cframe; /* 3.10-3.12: the innermost C frame's record; else 0 */
    size_t lead;        /* bytes before a frame that tell of its generator */
    uint64_t generation;
    enum py_moment moment;
    unsigned looks; /* at its bytes */
    size_t frames_max;
    bool truncated, holds_gil, collecting;
    remote_addr gc_frame; /* 0: the release does not tell; the innermost, then */
};

/* frames.c: how often a running thread is looked at before its stack is believed. */
unsigned python_running_looks(const struct python *python, const struct view *view);

/* data_stack.c: the chunks of the data stack that were not predicted. Only a help. */
void walk_fetch_chunks(struct walk *walk);

/* data_stack.c: frames that a thread owns lie in order. 0 or -EAGAIN. */
int walk_check_data_stack(const struct walk *walk);

/* anchors.c: where the frames' runs of the evaluation loop lie on the C stack, if that is wanted.
 */
void walk_find_anchors(struct walk *walk);

/* owner.c: who holds the GIL and who collects garbage, at the moment of the walk. */
void walk_read_owner(struct walk *walk);
