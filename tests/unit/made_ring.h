/*
 * A ring as its writers see it, and what a test puts into it: records whole, in part, or wrong.
 * Writes as sampler/shim/ring_layout.h says, and not with the shim's own code.
 */
#pragma once

#include "sampler/base/cleanup.h"
#include "sampler/loop/ring_reader.h"
#include "sampler/shim/ring_layout.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct ring_reader *, ring_reader_free)

enum { MADE_WINDOW = 1000, MADE_START_NS = 1000000 };

struct made_ring {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct ring_reader *reader;
    struct ring_head *head;
    struct ring_slot *slots;
    size_t size;
    struct memory_event events[64]; /* the last ones that were told, from the first on */
    struct frame_event frames[64];  /* the innermost of each */
    size_t count;
    int answer; /* of the sink */
    struct {
        pid_t pid, parent;
    } processes[8];
    size_t process_count;
};

static inline void made_hear(struct ring_sink *sink, pid_t pid, pid_t parent)
{
    struct made_ring *made = (struct made_ring *)sink;
    size_t at = made->process_count++ % 8;
    made->processes[at].pid = pid;
    made->processes[at].parent = parent;
}

static inline int made_take(struct ring_sink *sink, const struct memory_event *event)
{
    struct made_ring *made = (struct made_ring *)sink;
    if (made->answer)
        return made->answer;
    if (made->count < 64) {
        made->events[made->count] = *event;
        if (event->frame_count)
            made->frames[made->count] = event->frames[0];
    }
    made->count++;
    return 0;
}

static inline void made_ring_open(struct made_ring *made, uint64_t slot_count)
{
    const struct ring_settings settings = { slot_count, MADE_WINDOW, 7, MADE_START_NS };
    struct failure why = { 0 };
    struct stat status;
    *made = (struct made_ring){ .sink = { made_take, made_hear } };
    if (ring_reader_new(&settings, &made->reader, &why))
        fail_msg("%s", why.text);
    int fd = ring_reader_fd(made->reader);
    assert_int_equal(fstat(fd, &status), 0);
    made->size = (size_t)status.st_size;
    void *at = mmap(NULL, made->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    made->head = at;
    made->slots = (struct ring_slot *)((char *)at + made->head->slots_at);
}

static inline void made_ring_close(struct made_ring *made)
{
    munmap(made->head, made->size);
    ring_reader_free(made->reader);
}

#define AUTO_RING CLEANUP(made_ring_close)

static inline struct ring_slot *slot_at(struct made_ring *made, uint64_t ticket)
{
    return &made->slots[ticket % made->head->slot_count];
}

/* The slot as it stands becomes one that is believed. */
static inline void slot_sign(struct made_ring *made, uint64_t ticket)
{
    struct ring_slot *slot = slot_at(made, ticket);
    slot->check = ring_slot_check(slot, ticket);
    atomic_store_explicit(&slot->turn, ticket + 1, memory_order_release);
}

static inline uint64_t slots_of(size_t size)
{
    return (size + RING_SLOT_ROOM - 1) / RING_SLOT_ROOM;
}

static inline void record_fill(struct made_ring *made, uint64_t ticket, const void *record,
                               size_t size)
{
    const struct record_head *head = record;
    for (uint64_t i = 0; i < slots_of(size); i++) {
        struct ring_slot *slot = slot_at(made, ticket + i);
        size_t rest = size - i * RING_SLOT_ROOM;
        slot->pid = head->pid;
        slot->index = (uint16_t)i;
        slot->count = (uint16_t)slots_of(size);
        slot->unused = 0;
        memset(slot->room, 0, sizeof slot->room);
        memcpy(slot->room, (const char *)record + i * RING_SLOT_ROOM,
               rest < RING_SLOT_ROOM ? rest : RING_SLOT_ROOM);
        slot_sign(made, ticket + i);
    }
}

/* The first ticket of `count`. */
static inline uint64_t tickets_take(struct made_ring *made, uint64_t count)
{
    return atomic_fetch_add(&made->head->next, count);
}

/* Its first ticket. */
static inline uint64_t record_put(struct made_ring *made, const void *record, size_t size)
{
    uint64_t ticket = tickets_take(made, slots_of(size));
    record_fill(made, ticket, record, size);
    return ticket;
}

/* ---- records ---- */

static inline struct record_head head_of(enum record_kind kind, uint32_t pid, size_t size)
{
    return (struct record_head){ (uint16_t)kind,     0, (uint32_t)size, pid, pid + 1,
                                 MADE_START_NS + 500 };
}

static inline uint64_t process_put(struct made_ring *made, uint32_t pid, uint32_t ppid, bool forked)
{
    const struct process_record record = {
        head_of(RECORD_PROCESS, pid, sizeof record), ppid, 3, 12, 0, forked
    };
    return record_put(made, &record, sizeof record);
}

static inline uint64_t change_put(struct made_ring *made, enum record_kind kind, uint32_t pid,
                                  uint64_t block, uint64_t size)
{
    const struct change_record record = { head_of(kind, pid, sizeof record), block, size };
    return record_put(made, &record, sizeof record);
}

static inline uint64_t block_put(struct made_ring *made, enum record_kind kind, uint32_t pid,
                                 uint64_t block, uint64_t size, const struct record_frame *frames,
                                 uint16_t count)
{
    size_t bytes = sizeof(struct block_record) + count * sizeof *frames;
    AUTO_FREE struct block_record *record = calloc(1, bytes);
    record->head = head_of(kind, pid, bytes);
    record->block = block;
    record->size = size;
    record->domain = DOMAIN_OBJECT;
    record->frame_count = count;
    if (count)
        memcpy(record->frames, frames, count * sizeof *frames);
    return record_put(made, record, bytes);
}

static inline uint64_t code_put(struct made_ring *made, uint32_t pid, uint32_t id, const char *name,
                                const char *file, int first_line, const void *table, size_t size)
{
    size_t bytes = sizeof(struct code_record) + strlen(name) + strlen(file) + size;
    AUTO_FREE struct code_record *record = calloc(1, bytes);
    record->head = head_of(RECORD_CODE, pid, bytes);
    record->code_id = id;
    record->first_line = first_line;
    record->name_size = (uint32_t)strlen(name);
    record->file_size = (uint32_t)strlen(file);
    record->table_size = (uint32_t)size;
    record->major = 3;
    record->minor = 10;
    char *to = (char *)(record + 1);
    memcpy(to, name, record->name_size);
    memcpy(to + record->name_size, file, record->file_size);
    memcpy(to + record->name_size + record->file_size, table, size);
    return record_put(made, record, bytes);
}

static inline long made_drain(struct made_ring *made, uint64_t now_ns)
{
    made->count = 0;
    return ring_reader_drain(made->reader, now_ns, &made->sink);
}

static inline uint64_t made_lost(const struct made_ring *made)
{
    struct memory_loss_event loss;
    ring_reader_losses(made->reader, &loss);
    return loss.lost;
}
