/*
 * The code objects that processes told of themselves, to name their frames: each process has
 * numbers of its own for them. Equal code of many processes is kept once. Bounded whatever is told:
 * what finds no room is unknown.
 */
#pragma once

#include "sampler/base/event.h"
#include "sampler/shim/ring_layout.h"

struct code_names;

enum {
    NAMES_SIZE_MAX = 64 << 20, /* bytes of texts and line tables */
    NAMES_CODES_MAX = 1 << 20, /* that differ */
    NAMES_PER_PROCESS = 1 << 18,
    NAMES_PROCESSES_MAX = 4096,
};

int code_names_new(struct code_names **ret);
void code_names_free(struct code_names *names);

/* A process begins, without names or with those of its parent. 0 or -ENOMEM, as below. */
int code_names_begin(struct code_names *names, pid_t pid, pid_t parent, bool inherits);
void code_names_forget(struct code_names *names, pid_t pid);
bool code_names_knows(const struct code_names *names, pid_t pid);

/* `record` is followed by what its sizes say, which the caller has checked. */
int code_names_add(struct code_names *names, const struct code_record *record);

/* The frame with its texts, which live as long as the names; false: nobody told of that code. */
bool code_names_find(struct code_names *names, pid_t pid, const struct record_frame *frame,
                     struct frame_event *ret);
