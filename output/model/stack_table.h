/*
 * Distinct stacks as a tree of their frames, with what was seen of each. Bounded: when there are
 * too many, the half that was seen least goes, and what went is counted.
 */
#pragma once

#include "output/model/key_index.h"

#include <stdbool.h>

#define STACKS_MAX ((size_t)10000)
#define STACK_DEPTH_MAX ((size_t)256)

/* Stands for the frames that were left out of a very deep stack. */
#define STACK_FRAME_GAP (UINT32_MAX - 1)

struct stack_node {
    uint32_t parent, frame; /* the parent's number, and the caller's number for the frame */
    uint64_t hits;
    uint64_t python_ns, c_ns, base_ns;
    double live; /* of what the hits count, there now; the caller's */
    uint32_t twin,
        twin_generation; /* the caller's: a stack of another table that follows from this one */
    bool is_stack;       /* some stack ends here */
};

#define STACK_ROOT 0u
#define STACK_NONE UINT32_MAX

struct stack_table {          /* all zero is empty */
    struct stack_node *nodes; /* the root is number 0 and no stack */
    struct key_index children;
    size_t count, room, stack_count;
    uint64_t dropped_stacks, dropped_hits;
    uint32_t generation; /* numbers of an earlier generation mean nothing any more */
};

/* The stack of these frames, outermost first. The middle of a very deep one is left out. A number
 * or -ENOMEM. */
int64_t stack_table_find(struct stack_table *table, const uint32_t *frames, size_t count);

/*
 * The same, where the caller keeps the nodes on the way: `nodes[0]` to `nodes[known - 1]` are those
 * of the first frames in this generation, and the rest is filled in. At most STACK_DEPTH_MAX
 * frames.
 */
int64_t stack_table_find_on(struct stack_table *table, const uint32_t *frames, size_t count,
                            uint32_t *nodes, size_t known);

bool stack_table_is_full(const struct stack_table *table);

/* Keeps the better half. `*ret_moved[old]` is the new number, or STACK_NONE; the caller frees it. 0
 * or -ENOMEM. */
int stack_table_halve(struct stack_table *table, uint32_t **ret_moved);

/* Writes the stack's frames, outermost first; `frames` holds STACK_DEPTH_MAX. */
size_t stack_table_frames(const struct stack_table *table, uint32_t node, uint32_t *frames);

void stack_table_done(struct stack_table *table);
