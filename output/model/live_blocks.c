#include "output/model/live_blocks.h"

#include "output/model/stack_table.h"

#include "output/model/array.h"

enum { FIRST_SLOTS = 64 };

static size_t slot_home(const struct live_blocks *blocks, uint64_t block)
{
    return (block * 0x9E3779B97F4A7C15u >> 20) & (blocks->slot_count - 1);
}

/* The block's slot, or the free one where it belongs. */
static size_t slot_find(const struct live_blocks *blocks, uint64_t block)
{
    size_t slot = slot_home(blocks, block);
    while (blocks->slots[slot].part && blocks->slots[slot].block != block)
        slot = (slot + 1) & (blocks->slot_count - 1);
    return slot;
}

/* At most half of the slots are taken. */
static int slots_grow(struct live_blocks *blocks)
{
    struct live_blocks old = *blocks;
    if (2 * blocks->block_count < blocks->slot_count)
        return 0;
    size_t count = old.slot_count ? 2 * old.slot_count : FIRST_SLOTS;
    struct block_slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    blocks->slots = slots;
    blocks->slot_count = count;
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].part)
            slots[slot_find(blocks, old.slots[i].block)] = old.slots[i];
    free(old.slots);
    return 0;
}

/* Those behind a slot that becomes free move up, so that no search ends before its block. */
static void slot_free(struct live_blocks *blocks, size_t slot)
{
    size_t mask = blocks->slot_count - 1, hole = slot;
    for (size_t at = (slot + 1) & mask; blocks->slots[at].part; at = (at + 1) & mask) {
        size_t home = slot_home(blocks, blocks->slots[at].block);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        blocks->slots[hole] = blocks->slots[at];
        hole = at;
    }
    blocks->slots[hole].part = 0;
    blocks->block_count--;
}

static int64_t part_new(struct live_blocks *blocks)
{
    if (blocks->free_part) {
        uint32_t number = blocks->free_part - 1;
        blocks->free_part = blocks->parts[number].next;
        return number;
    }
    if (ARRAY_GROW(blocks->parts, blocks->used, blocks->part_room))
        return -ENOMEM;
    return (int64_t)blocks->used++;
}

int live_blocks_push(struct live_blocks *blocks, uint64_t block, const struct block_part *part)
{
    if (slots_grow(blocks))
        return -ENOMEM;
    int64_t number = part_new(blocks);
    if (number < 0)
        return (int)number;
    struct block_slot *slot = &blocks->slots[slot_find(blocks, block)];
    blocks->block_count += !slot->part;
    blocks->part_count++;
    blocks->parts[number] = *part;
    blocks->parts[number].next = slot->part;
    *slot = (struct block_slot){ block, (uint32_t)number + 1 };
    return 0;
}

struct block_part *live_blocks_top(const struct live_blocks *blocks, uint64_t block)
{
    uint32_t part = blocks->slot_count ? blocks->slots[slot_find(blocks, block)].part : 0;
    return part ? &blocks->parts[part - 1] : NULL;
}

uint64_t live_blocks_size(const struct live_blocks *blocks, uint64_t block)
{
    uint64_t size = 0;
    const struct block_part *part = live_blocks_top(blocks, block);
    for (; part; part = part->next ? &blocks->parts[part->next - 1] : NULL)
        size += part->size_bytes;
    return size;
}

bool live_blocks_pop(struct live_blocks *blocks, uint64_t block, struct block_part *ret)
{
    size_t at = blocks->slot_count ? slot_find(blocks, block) : 0;
    uint32_t number = blocks->slot_count ? blocks->slots[at].part : 0;
    if (!number)
        return false;
    struct block_part *part = &blocks->parts[number - 1];
    *ret = *part;
    blocks->slots[at].part = part->next;
    if (!part->next)
        slot_free(blocks, at);
    part->next = blocks->free_part;
    blocks->free_part = number;
    blocks->part_count--;
    return true;
}

bool live_blocks_any(const struct live_blocks *blocks, size_t *at, uint64_t *ret_block)
{
    for (; *at < blocks->slot_count; ++*at) { /* who moves up meanwhile comes to this slot */
        const struct block_slot *slot = &blocks->slots[*at];
        if (slot->part) {
            *ret_block = slot->block;
            return true;
        }
    }
    return false;
}

/* Parts that were given back may have older numbers, which nobody reads. */
void live_blocks_move_stacks(struct live_blocks *blocks, const uint32_t *moved, size_t count)
{
    for (size_t i = 0; i < blocks->used; i++) {
        uint32_t *stack = &blocks->parts[i].stack;
        bool is_kept = *stack < count && moved[*stack] != STACK_NONE;
        *stack = is_kept ? moved[*stack] : STACK_ROOT;
    }
}

void live_blocks_done(struct live_blocks *blocks)
{
    free(blocks->slots);
    free(blocks->parts);
    *blocks = (struct live_blocks){ 0 };
}
