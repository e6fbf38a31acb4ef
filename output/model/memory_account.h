/*
 * Where the memory went: live blocks, and what follows from them for lines, processes and the run.
 * Part of a profile, as the rest of its state. Bounded: by the code that allocates, and by
 * BLOCKS_MAX blocks that are followed.
 */
#pragma once

#include "output/model/live_blocks.h"
#include "output/model/stack_table.h"
#include "output/model/timeline.h"
#include "sampler/base/event.h"

enum { BLOCKS_MAX = 1 << 20 };

/* What a line or a function has live in one process. */
struct memory_cell {
    uint32_t tally; /* 1 + its number; 0: a free slot */
    uint32_t peak;  /* the process's peak that at_peak_bytes is of; with another one since, it is
                       live_bytes */
    double live_bytes, at_peak_bytes;
};

struct process_memory {
    struct live_blocks blocks;
    struct memory_cell *cells; /* hashed by the tally's number */
    size_t cell_count, cell_slots;
    uint32_t peak; /* counts them */
    double live_bytes, python_bytes, peak_bytes;
};

struct memory_account {
    double allocated_bytes, freed_bytes, copied_bytes;
    double native_bytes;             /* allocated with no Python on the stack, */
    double hidden_bytes;             /* and with none that is shown */
    double live_bytes, python_bytes; /* of all processes now, and CPython's part */
    double left_bytes;               /* never freed, of processes that have ended */
    double peak_bytes, peak_python_bytes, peak_allocated_bytes; /* when that was highest */
    uint32_t peak_line;                                         /* number of a tally, or NOTHING */
    double unfollowed_bytes;                                    /* of blocks that found no room */
    uint64_t events, last_ns;
    size_t part_count; /* of all blocks of all processes */
    struct timeline footprints;
    struct stack_table stacks; /* of shown lines; hits are bytes */
    /* Of the last event: numbers of places, outermost first; those that are shown. */
    uint32_t *stack, *shown;
    size_t depth, stack_room, shown_room;
    uint32_t node, generation; /* its stack, if it is of this generation */
    struct memory_loss_event loss;
};

struct profile;

void memory_init(struct memory_account *account);
void memory_done(struct memory_account *account);
void process_memory_free(struct process_memory *memory);

/* A part more of that block of the process. 0 or -ENOMEM, as below. */
int memory_follow(struct profile *profile, struct process_memory *memory, uint64_t block,
                  const struct block_part *part);

/* `left` bytes of the block are still there. */
int memory_shrink(struct profile *profile, struct process_memory *memory, uint64_t time_ns,
                  uint64_t block, uint64_t left);

/* What the process had is gone, and nobody freed it. */
int memory_empty(struct profile *profile, struct process_memory *memory, uint64_t time_ns);

/* The process of that number has ended. */
int memory_end(struct profile *profile, uint32_t process);

/* Fills in the tallies' at_peak_bytes. */
void memory_settle(struct profile *profile);
