#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/ring_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TAKE_ATTEMPTS = 1000, /* each is lost to another writer that got on */
    STRETCH = 256 * 1024, /* bytes of slots that stay mapped behind the writers */
};

static bool head_plausible(const struct ring_head *head, uint64_t size)
{
    return !memcmp(head->magic, RING_MAGIC, sizeof head->magic) && head->version == RING_VERSION &&
           head->slot_size == RING_SLOT_SIZE && head->slot_count &&
           !(head->slot_count & (head->slot_count - 1)) && head->slots_at >= sizeof *head &&
           head->slots_at % RING_SLOT_SIZE == 0 && head->slots_at < size &&
           head->slot_count <= (size - head->slots_at) / RING_SLOT_SIZE && head->window &&
           head->window < (uint64_t)1 << 56 && head->copy_window < (uint64_t)1 << 56 &&
           head->python_count <= RING_PYTHONS;
}

/* By system calls: mmap is one of the functions that the shim hooks. */
static void *ring_map(int fd, size_t size, void *place)
{
    int flags = MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0);
    long at = syscall(SYS_mmap, place, size, PROT_READ | PROT_WRITE, flags, fd, 0L);
    return at == -1 ? NULL : (void *)at;
}

int ring_adopt(int fd, const struct ring_place *place, struct ring *ret)
{
    struct stat status;
    if (fstat(fd, &status) || status.st_size < (off_t)sizeof(struct ring_head))
        return -EBADMSG;
    size_t size = (size_t)status.st_size;
    if (place->at && size > place->size)
        return -E2BIG;
    struct ring_head *head = ring_map(fd, size, place->at);
    if (!head)
        return -EBADMSG;
    if (!head_plausible(head, size)) {
        ring_leave(&(struct ring_place){ head, size }, place->at);
        return -EBADMSG;
    }
    *ret = (struct ring){
        .head = head,
        .slots = (struct ring_slot *)((char *)head + head->slots_at),
        .slot_count = head->slot_count,
        .window = head->window,
        .copy_window = head->copy_window,
        .size = size,
    };
    return 0;
}

void ring_leave(const struct ring_place *place, bool keep)
{
    if (keep)
        syscall(SYS_mmap, place->at, place->size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1L, 0L);
    else
        syscall(SYS_munmap, place->at, place->size);
}

int ring_open(const char *path, struct ring *ret)
{
    const struct ring_place anywhere = { NULL, 0 };
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = ring_adopt(fd, &anywhere, ret);
    close(fd);
    return error;
}

bool ring_take(struct ring *ring, uint64_t count, uint64_t spare, uint64_t *ret_ticket)
{
    struct ring_head *head = ring->head;
    uint64_t next = atomic_load_explicit(&head->next, memory_order_relaxed);
    for (int attempt = 0; attempt < TAKE_ATTEMPTS; attempt++) {
        uint64_t taken = atomic_load_explicit(&head->taken, memory_order_acquire);
        /* the other order of the two loads would make `taken` run ahead: signed, below zero */
        if ((int64_t)(next + count + spare - taken) > (int64_t)ring->slot_count)
            return false;
        if (atomic_compare_exchange_weak_explicit(&head->next, &next, next + count,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            *ret_ticket = next;
            return true;
        }
    }
    return false;
}

uint64_t ring_slots_needed(size_t size)
{
    uint64_t count = (size + RING_SLOT_ROOM - 1) / RING_SLOT_ROOM;
    return count <= RING_RECORD_SLOTS ? count : 0;
}

static size_t parts_size(const struct ring_part *parts, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].size;
    return size;
}

/* Where in the parts the next byte stands. */
struct parts_reader {
    const struct ring_part *part;
    size_t left, done; /* parts; bytes of the first of them */
};

static void room_fill(uint8_t *room, struct parts_reader *from)
{
    size_t filled = 0;
    while (filled < RING_SLOT_ROOM && from->left) {
        size_t size = from->part->size - from->done;
        if (size > RING_SLOT_ROOM - filled)
            size = RING_SLOT_ROOM - filled;
        if (size) /* an empty part may be nowhere */
            memcpy(room + filled, (const uint8_t *)from->part->data + from->done, size);
        filled += size;
        from->done += size;
        if (from->done == from->part->size) {
            from->part++;
            from->left--;
            from->done = 0;
        }
    }
    memset(room + filled, 0, RING_SLOT_ROOM - filled);
}

/*
 * What the writers have left behind stays in the memory file, but need not stay in this process's
 * resident memory: one stretch after the other is let go of, the one before the last first.
 */
static void stretch_let_go(struct ring *ring, uint64_t ticket)
{
    enum { SLOTS = STRETCH / RING_SLOT_SIZE };
    if (ticket % SLOTS || ring->slot_count < 4 * SLOTS)
        return;
    uint64_t behind = (ticket - 2 * SLOTS) & (ring->slot_count - 1);
    syscall(SYS_madvise, &ring->slots[behind], STRETCH, MADV_DONTNEED);
}

/*
 * The slot is made outside of the ring and copied into it whole. A writer that was kept from going
 * on for so long that the reader has given it up stops here; where it comes too late even for that,
 * its ticket in the check tells.
 */
static bool slot_commit(struct ring *ring, uint64_t ticket, struct ring_slot *made)
{
    struct ring_slot *slot = &ring->slots[ticket & (ring->slot_count - 1)];
    if (atomic_load_explicit(&ring->head->taken, memory_order_acquire) > ticket)
        return false;
    made->check = ring_slot_check(made, ticket);
    memcpy((uint8_t *)slot + sizeof slot->turn, (uint8_t *)made + sizeof made->turn,
           sizeof *made - sizeof made->turn);
    atomic_store_explicit(&slot->turn, ticket + 1, memory_order_release);
    stretch_let_go(ring, ticket);
    return true;
}

bool ring_commit(struct ring *ring, uint64_t ticket, uint32_t pid, const struct ring_part *parts,
                 size_t part_count)
{
    struct parts_reader from = { .part = parts, .left = part_count };
    uint64_t count = ring_slots_needed(parts_size(parts, part_count));
    struct ring_slot made;
    made.pid = pid;
    made.count = (uint16_t)count;
    made.unused = 0;
    for (uint64_t i = 0; i < count; i++) {
        made.index = (uint16_t)i;
        room_fill(made.room, &from);
        if (!slot_commit(ring, ticket + i, &made))
            return false;
    }
    return true;
}

bool ring_write(struct ring *ring, uint32_t pid, uint64_t spare, const struct ring_part *parts,
                size_t part_count)
{
    uint64_t count = ring_slots_needed(parts_size(parts, part_count)), ticket;
    return count && ring_take(ring, count, spare, &ticket) &&
           ring_commit(ring, ticket, pid, parts, part_count);
}

void ring_lose(struct ring *ring, enum record_kind kind, uint64_t bytes)
{
    atomic_fetch_add_explicit(&ring->head->lost[kind], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&ring->head->lost_bytes[kind], bytes, memory_order_relaxed);
}

void ring_tell_gap(struct ring *ring, enum ring_gap gap)
{
    atomic_fetch_or_explicit(&ring->head->gaps, gap, memory_order_relaxed);
}
