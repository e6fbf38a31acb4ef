#include "output/model/stack_table.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <stdlib.h>

static int room_make(struct stack_table *table)
{
    if (table->count < table->room)
        return 0;
    size_t room = table->room ? 2 * table->room : 64;
    struct stack_node *nodes = realloc(table->nodes, room * sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    table->nodes = nodes;
    table->room = room;
    if (!table->count)
        nodes[table->count++] = (struct stack_node){ .parent = STACK_NONE, .twin = STACK_NONE };
    return 0;
}

/* Keys are numbered as the nodes are, but for the root. */
static int64_t child_find(struct stack_table *table, uint32_t parent, uint32_t frame)
{
    if (room_make(table))
        return -ENOMEM;
    int64_t number =
        key_index_add(&table->children, (struct key){ { (uint64_t)parent << 32 | frame } });
    if (number < 0)
        return number;
    if ((size_t)number + 1 == table->count)
        table->nodes[table->count++] =
            (struct stack_node){ .parent = parent, .frame = frame, .twin = STACK_NONE };
    return number + 1;
}

static void stack_mark(struct stack_table *table, int64_t node)
{
    if (node <= 0 || table->nodes[node].is_stack)
        return;
    table->nodes[node].is_stack = true;
    table->stack_count++;
}

int64_t stack_table_find(struct stack_table *table, const uint32_t *frames, size_t count)
{
    int64_t node = room_make(table);
    for (size_t i = 0; i < count && node >= 0; i++) {
        if (count > STACK_DEPTH_MAX && i == STACK_DEPTH_MAX / 2) {
            node = child_find(table, (uint32_t)node, STACK_FRAME_GAP);
            i = count - (STACK_DEPTH_MAX - STACK_DEPTH_MAX / 2 - 1);
        }
        if (node >= 0)
            node = child_find(table, (uint32_t)node, frames[i]);
    }
    stack_mark(table, node);
    return node;
}

int64_t stack_table_find_on(struct stack_table *table, const uint32_t *frames, size_t count,
                            uint32_t *nodes, size_t known)
{
    int64_t node = known ? nodes[known - 1] : STACK_ROOT;
    for (size_t i = known; i < count && node >= 0; i++) {
        node = child_find(table, (uint32_t)node, frames[i]);
        nodes[i] = (uint32_t)node;
    }
    stack_mark(table, node);
    return node;
}

bool stack_table_is_full(const struct stack_table *table)
{
    return table->stack_count >= STACKS_MAX;
}

size_t stack_table_frames(const struct stack_table *table, uint32_t node, uint32_t *frames)
{
    size_t count = 0;
    for (uint32_t at = node; at != STACK_ROOT; at = table->nodes[at].parent)
        count++;
    size_t place = count;
    for (uint32_t at = node; at != STACK_ROOT; at = table->nodes[at].parent)
        frames[--place] = table->nodes[at].frame;
    return count;
}

struct rank {
    uint64_t hits;
    uint32_t node;
};

static int rank_is_lower(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;
    if (left->hits != right->hits)
        return left->hits < right->hits ? 1 : -1;
    return (left->node > right->node) - (left->node < right->node);
}

/* The stacks, seen most often first. */
static struct rank *rank_stacks(const struct stack_table *table)
{
    struct rank *ranks = calloc(table->stack_count + 1, sizeof *ranks);
    size_t count = 0;
    for (uint32_t i = 0; ranks && i < table->count; i++)
        if (table->nodes[i].is_stack)
            ranks[count++] = (struct rank){ table->nodes[i].hits, i };
    if (ranks)
        qsort(ranks, count, sizeof *ranks, rank_is_lower);
    return ranks;
}

static int stack_move(const struct stack_table *from, uint32_t node, struct stack_table *into,
                      uint32_t *ret_moved)
{
    uint32_t frames[STACK_DEPTH_MAX];
    int64_t number = stack_table_find(into, frames, stack_table_frames(from, node, frames));
    if (number < 0)
        return (int)number;
    struct stack_node *old = &from->nodes[node], *new = &into->nodes[number];
    new->hits = old->hits;
    new->python_ns = old->python_ns;
    new->c_ns = old->c_ns;
    new->base_ns = old->base_ns;
    new->live = old->live;
    *ret_moved = (uint32_t)number;
    return 0;
}

int stack_table_halve(struct stack_table *table, uint32_t **ret_moved)
{
    AUTO_FREE struct rank *ranks = rank_stacks(table);
    AUTO_FREE uint32_t *moved = malloc(table->count * sizeof *moved);
    if (!ranks || !moved)
        return -ENOMEM;
    for (size_t i = 0; i < table->count; i++)
        moved[i] = STACK_NONE;
    struct stack_table smaller = { .dropped_stacks = table->dropped_stacks,
                                   .dropped_hits = table->dropped_hits,
                                   .generation = table->generation + 1 };
    int error = 0;
    for (size_t i = 0; i < table->stack_count && !error; i++) {
        if (i < table->stack_count / 2) {
            error = stack_move(table, ranks[i].node, &smaller, &moved[ranks[i].node]);
        } else {
            smaller.dropped_stacks++;
            smaller.dropped_hits += ranks[i].hits;
        }
    }
    if (error) {
        stack_table_done(&smaller);
        return error;
    }
    stack_table_done(table);
    *table = smaller;
    *ret_moved = TAKE_PTR(moved);
    return 0;
}

void stack_table_done(struct stack_table *table)
{
    free(table->nodes);
    key_index_done(&table->children);
    *table = (struct stack_table){ 0 };
}
