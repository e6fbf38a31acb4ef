/*
 * The writing end of the ring. Any thread of any process writes at any time; nobody waits, nobody
 * holds anything that another would need, so that who is killed in the middle takes one record
 * along and no more. Allocates nothing and prints nothing.
 */
#pragma once

#include "sampler/shim/ring_layout.h"

#include <stdbool.h>

struct ring {
    struct ring_head *head;
    struct ring_slot *slots;
    uint64_t slot_count; /* as it was checked: what stands in the ring may change */
    uint64_t window, copy_window;
    size_t size; /* of all that is mapped */
};

struct ring_part {
    const void *data;
    size_t size;
};

/* Maps the memory file and checks its head. -EBADMSG: that is no ring of ours. */
int ring_open(const char *path, struct ring *ret);

/* Where one ring follows another, for threads that may still be writing into the first. */
struct ring_place {
    void *at; /* NULL: anywhere */
    size_t size;
};

/* The same from a descriptor, which stays open. -E2BIG: it does not fit into the place. */
int ring_adopt(int fd, const struct ring_place *place, struct ring *ret);

/* Lets the file go; what is written there then is nobody's. */
void ring_leave(const struct ring_place *place, bool keep);

static inline bool ring_is_armed(const struct ring *ring)
{
    return ring->head && atomic_load_explicit(&ring->head->armed, memory_order_relaxed);
}

/*
 * Tickets for `count` slots, one after the other; false where there is no room. `spare` slots are
 * left to others: what a process forgets must not find the ring full of what it remembers.
 */
bool ring_take(struct ring *ring, uint64_t count, uint64_t spare, uint64_t *ret_ticket);

/* Writes a record of as many slots as it needs from `ticket` on. False when the reader has not
 * waited for it. */
bool ring_commit(struct ring *ring, uint64_t ticket, uint32_t pid, const struct ring_part *parts,
                 size_t part_count);

/* The slots that a record of this size lies in; 0: it is too long. */
uint64_t ring_slots_needed(size_t size);

/* Both of the above. What was not written is for the caller to count: ring_lose(). */
bool ring_write(struct ring *ring, uint32_t pid, uint64_t spare, const struct ring_part *parts,
                size_t part_count);

void ring_lose(struct ring *ring, enum record_kind kind, uint64_t bytes);
void ring_tell_gap(struct ring *ring, enum ring_gap gap);
