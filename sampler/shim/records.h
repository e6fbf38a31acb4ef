/*
 * Makes the records of this process and writes them into the ring; what finds no room there is
 * counted as lost. Called from within the shim only (shim_thread.inside).
 */
#pragma once

#include "sampler/shim/blocks.h"
#include "sampler/shim/python.h"
#include "sampler/shim/ring_writer.h"

struct recorder {
    _Atomic bool began; /* what follows is settled, for good */
    struct ring ring;   /* head NULL: nobody is interested in this process */
    struct python python;
    _Atomic bool has_python;
    bool attached;          /* the shim came into a process that ran already */
    _Atomic bool asleep;    /* … and nobody listens now */
    _Atomic uint32_t term;  /* counts who has listened so far, from 1 on */
    uint32_t pid;           /* in records: as the reader numbers this process, … */
    uint32_t own_pid;       /* and as it numbers itself, which differs in another PID namespace */
    uint32_t from_pid;      /* of the process that this one is a copy of */
    volatile uint8_t *mine; /* not 0; in a child that is a copy the kernel makes it 0. NULL: it
                               cannot */
};

extern struct recorder recorder __attribute__((visibility("hidden")));

/* Does the reader want to hear of this process now? A process that vfork made is not the one that
 * the memory belongs to. */
bool recorder_listens(void);

/* At the beginning, and in a child: who writes the records. */
void recorder_claim(void);

void record_process(bool forked);

/* Walks the stack. A new sample, or one by which the block has grown; false: lost. */
bool record_allocated(uint64_t number, uint64_t size, enum allocation_domain domain);
void record_copied(uint64_t weight);

/* Of a block that ends, and one that shrinks by so much of its weight. */
void record_freed(const struct block *block);
void record_resized(const struct block *block, uint64_t weight_lost);
