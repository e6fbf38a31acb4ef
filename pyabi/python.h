/* What the readers of pyabi share about one opened runtime. Private to pyabi. */
#pragma once

#include "pyabi/array.h"
#include "pyabi/code.h"
#include "pyabi/pyabi.h"
#include "sampler/base/page_cache.h"

enum {
    HEADS_WATCHED = 64,
    INTERPRETER_MAX = 4096,
    VERSION_TEXT = 24,
};

/* A frame as the walk found it, shims included. */
struct walked_frame {
    remote_addr address, code, previous;
    uint64_t position; /* the raw field that says where it is */
    int64_t offset;
    uint32_t tlbc_index;
    uint8_t owner;
    bool is_shim, is_entry;
    remote_addr anchor;
    struct code_entry *entry;
};

struct python {
    struct remote *memory;
    struct page_cache *pages; /* of the present moment */
    struct py_layout layout;
    remote_addr runtime;
    char version_text[VERSION_TEXT];
    struct intern *texts;
    struct intern *names; /* of threads; until the list of them is read anew */
    struct code_cache *codes;

    struct py_thread *threads;
    size_t thread_count, thread_capacity;
    remote_addr heads[HEADS_WATCHED]; /* what the lists began with at the last round: runtime,
                                         interpreters */
    remote_addr head_values[HEADS_WATCHED];
    size_t head_count;
    bool awaits_birth; /* a thread of the list has not begun, which will not show in what it begins
                          with */
    size_t tid_witnesses;         /* threads that confirmed the next; 0: it may be wrong still */
    uint32_t tid_offset_plus_one; /* of the kernel's id in the C library's thread struct; 0: not yet
                                     known */

    unsigned wants;           /* enum py_wants */
    const struct view *ahead; /* was refilled for a thread that runs, and nobody has used it */
    struct walked_frame *walked;
    size_t walked_count, walked_capacity;
    struct py_frame *frames;
    size_t frame_capacity;
};
