#define _GNU_SOURCE 1 /* memfd_create */
#include "sampler/loop/ring_reader.h"

#include "pyabi/layout.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/code_names.h"
#include "sampler/target/proc_file.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE_MOST ((uint64_t)1 << 48) /* of a block: what an address space holds */

enum {
    SLOTS_AT = 65536,
    SLOTS_MOST = 1 << 24,
    STRETCH = 256 << 10, /* bytes of slots that are given back at once */
    ENDED = 64,          /* processes that what is not told yet may be of */
};

_Static_assert(sizeof(struct ring_head) <= SLOTS_AT, "slots have pages of their own");

struct ring_reader {
    int fd;
    struct ring_head *head; /* whoever maps the ring may write there: only what is kept below counts
                             */
    size_t size;
    const struct ring_slot *slots;
    struct ring_settings settings;
    uint64_t position;           /* the next ticket to be read */
    uint64_t mark_next, mark_ns; /* tickets below the one had been given by the other */
    bool skips;                  /* the slot before this one was skipped and counted */
    uint64_t records, skipped;
    struct code_names *names;
    struct ended {
        pid_t pid;
        uint64_t last; /* it took no ticket from this one on */
    } ended[ENDED];    /* in the order of their ends */
    size_t ended_count;
    uint8_t *record; /* the one that is told, of RING_RECORD_SLOTS at most */
    struct frame_event *frames;
};

/* ---- making ---- */

static uint32_t ring_offset(struct py_offset offset)
{
    return offset_present(offset) ? offset_of(offset) : RING_ABSENT;
}

static struct ring_python python_write(const struct py_layout *layout)
{
    return (struct ring_python){ .major = layout->major,
                                 .minor = layout->minor,
                                 .free_threaded = layout->free_threaded,
                                 .position_unit = layout->position == POSITION_LAST_UNIT ? 2 : 1,
                                 .shim_owners = layout->shim_owners,
                                 .reference_tag_mask = layout->reference_tag_mask,
                                 .unicode_kind_shift = layout->unicode_kind_shift,
                                 .unicode_compact_shift = layout->unicode_compact_shift,
                                 .unicode_ascii_shift = layout->unicode_ascii_shift,
#define RING_PYTHON_OFFSET(group, field) .group##_##field = ring_offset(layout->group.field),
                                 RING_PYTHON_OFFSETS(RING_PYTHON_OFFSET)
#undef RING_PYTHON_OFFSET
    };
}

static void head_write(const struct ring_settings *settings, struct ring_head *head)
{
    struct proc_stat own = { 0 };
    proc_read_pid_stat(getpid(), &own);
    head->reader_pid = (uint32_t)getpid();
    head->reader_start = own.start_time;
    memcpy(head->magic, RING_MAGIC, sizeof head->magic);
    head->version = RING_VERSION;
    head->slot_size = RING_SLOT_SIZE;
    head->slots_at = SLOTS_AT;
    head->slot_count = settings->slot_count;
    head->window = settings->window;
    head->copy_window = settings->copy_window;
    for (size_t i = 0; py_layouts[i] && i < RING_PYTHONS; i++)
        head->pythons[head->python_count++] = python_write(py_layouts[i]);
}

/* Sealed: a target that cut the file would end us with a SIGBUS. */
static int ring_map(struct ring_reader *reader)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    reader->size = SLOTS_AT + reader->settings.slot_count * RING_SLOT_SIZE;
    if (reader->fd < 0)
        reader->fd = memfd_create(RING_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (reader->fd < 0 || ftruncate(reader->fd, (off_t)reader->size) ||
        fcntl(reader->fd, F_ADD_SEALS, seals))
        return -errno;
    void *at = mmap(NULL, reader->size, PROT_READ | PROT_WRITE, MAP_SHARED, reader->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    reader->head = at;
    reader->slots = (const struct ring_slot *)((char *)at + SLOTS_AT);
    head_write(&reader->settings, reader->head);
    return 0;
}

void ring_reader_free(struct ring_reader *reader)
{
    if (!reader)
        return;
    if (reader->head)
        munmap(reader->head, reader->size);
    if (reader->fd >= 0)
        close(reader->fd);
    code_names_free(reader->names);
    free(reader->record);
    free(reader->frames);
    free(reader);
}

DEFINE_CLEANUP(struct ring_reader *, ring_reader_free)

int ring_reader_adopt(int fd, const struct ring_settings *settings, struct ring_reader **ret,
                      struct failure *why)
{
    AUTO_CLOSE int file = fd;
    uint64_t count = settings->slot_count;
    if (count < 2 || count > SLOTS_MOST || (count & (count - 1)) || !settings->window ||
        !settings->copy_window)
        return failure_set(why, -EINVAL, "there is no ring of %llu slots",
                           (unsigned long long)count);
    CLEANUP(ring_reader_freep) struct ring_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return failure_set(why, -ENOMEM, "out of memory");
    reader->fd = TAKE_FD(file);
    reader->settings = *settings;
    reader->record = malloc(RING_RECORD_SLOTS * RING_SLOT_ROOM);
    reader->frames = calloc(RING_FRAMES, sizeof *reader->frames);
    if (!reader->record || !reader->frames || code_names_new(&reader->names))
        return failure_set(why, -ENOMEM, "out of memory");
    int error = ring_map(reader);
    if (error)
        return failure_set(why, error, "no memory file for the ring of allocations: %s",
                           strerror(-error));
    *ret = TAKE_PTR(reader);
    return 0;
}

int ring_reader_new(const struct ring_settings *settings, struct ring_reader **ret,
                    struct failure *why)
{
    return ring_reader_adopt(-1, settings, ret, why);
}

int ring_reader_fd(const struct ring_reader *reader)
{
    return reader->fd;
}

void ring_reader_arm(struct ring_reader *reader, bool armed)
{
    atomic_store_explicit(&reader->head->armed, armed, memory_order_release);
}

static void ended_forget(struct ring_reader *reader, size_t count)
{
    for (size_t i = 0; i < count; i++)
        code_names_forget(reader->names, reader->ended[i].pid);
    reader->ended_count -= count;
    memmove(reader->ended, reader->ended + count, reader->ended_count * sizeof *reader->ended);
}

/* Those of whom all is told. */
static void ended_settle(struct ring_reader *reader)
{
    size_t count = 0;
    while (count < reader->ended_count && reader->ended[count].last <= reader->position)
        count++;
    ended_forget(reader, count);
}

void ring_reader_forget(struct ring_reader *reader, pid_t pid)
{
    if (reader->ended_count == ENDED)
        ended_forget(reader, 1);
    uint64_t next = atomic_load_explicit(&reader->head->next, memory_order_acquire);
    reader->ended[reader->ended_count++] = (struct ended){ pid, next };
    ended_settle(reader);
}

bool ring_reader_knows(const struct ring_reader *reader, pid_t pid)
{
    return code_names_knows(reader->names, pid);
}

/* ---- records: each is checked to its end before anything of it is told ---- */

static bool code_is_whole(const struct code_record *record)
{
    uint64_t room = record->head.size - sizeof *record;
    return (uint64_t)record->name_size + record->file_size + record->table_size <= room;
}

static bool block_is_whole(const struct block_record *record)
{
    bool copied = record->head.kind == RECORD_COPIED;
    uint64_t room = (record->head.size - sizeof *record) / sizeof *record->frames;
    return record->frame_count <= RING_FRAMES && record->frame_count <= room && record->size &&
           record->size <= SIZE_MOST && record->domain <= DOMAIN_OBJECT &&
           (record->block == 0) == copied;
}

static bool change_is_whole(const struct change_record *record)
{
    return record->block && record->size <= SIZE_MOST;
}

static bool record_is_whole(const void *record)
{
    static const size_t least[RECORD_KINDS] = {
        [RECORD_PROCESS] = sizeof(struct process_record),
        [RECORD_CODE] = sizeof(struct code_record),
        [RECORD_ALLOCATED] = sizeof(struct block_record),
        [RECORD_FREED] = sizeof(struct change_record),
        [RECORD_RESIZED] = sizeof(struct change_record),
        [RECORD_COPIED] = sizeof(struct block_record),
    };
    const struct record_head *head = record;
    if (head->kind >= RECORD_KINDS || head->size < least[head->kind])
        return false;
    switch (head->kind) {
    case RECORD_PROCESS:
        return true;
    case RECORD_CODE:
        return code_is_whole(record);
    case RECORD_ALLOCATED:
    case RECORD_COPIED:
        return block_is_whole(record);
    default:
        return change_is_whole(record);
    }
}

/* ---- telling ---- */

/* Nothing happened before profiling began, and nothing after now. */
static uint64_t event_time(const struct ring_reader *reader, const struct record_head *head,
                           uint64_t now_ns)
{
    uint64_t start = reader->settings.start_ns;
    uint64_t time = head->time_ns < now_ns ? head->time_ns : now_ns;
    return time > start ? time - start : 0;
}

static void frames_fill(struct ring_reader *reader, const struct block_record *record)
{
    for (size_t i = 0; i < record->frame_count; i++)
        if (!code_names_find(reader->names, (pid_t)record->head.pid, &record->frames[i],
                             &reader->frames[i]))
            reader->frames[i] = (struct frame_event){ .kind = FRAME_PYTHON };
}

/* A block of `size` is sampled with the probability 1 - exp(-size / window). */
static double block_weight(const struct ring_reader *reader, uint64_t size)
{
    return (double)size / -expm1(-(double)size / (double)reader->settings.window);
}

static void block_fill(struct ring_reader *reader, const struct block_record *record,
                       struct memory_event *event)
{
    bool copied = record->head.kind == RECORD_COPIED;
    frames_fill(reader, record);
    event->block = record->block;
    event->size_bytes = record->size;
    event->weight_bytes = copied ? (double)record->size : block_weight(reader, record->size);
    event->python = !copied && record->domain >= DOMAIN_RAW;
    event->frames = reader->frames;
    event->frame_count = record->frame_count;
}

static void change_fill(const struct change_record *record, struct memory_event *event)
{
    event->block = record->block;
    event->size_bytes = record->head.kind == RECORD_FREED ? 0 : record->size;
}

static int process_begin(struct ring_reader *reader, const struct process_record *record,
                         struct ring_sink *sink)
{
    if (sink->process)
        sink->process(sink, (pid_t)record->head.pid, (pid_t)record->ppid);
    return code_names_begin(reader->names, (pid_t)record->head.pid, (pid_t)record->ppid,
                            record->forked != 0);
}

static int record_tell(struct ring_reader *reader, uint64_t now_ns, struct ring_sink *sink)
{
    static const enum memory_change changes[RECORD_KINDS] = {
        [RECORD_PROCESS] = MEMORY_EMPTIED, [RECORD_ALLOCATED] = MEMORY_ALLOCATED,
        [RECORD_FREED] = MEMORY_FREED,     [RECORD_RESIZED] = MEMORY_RESIZED,
        [RECORD_COPIED] = MEMORY_COPIED,
    };
    const void *record = reader->record;
    const struct record_head *head = record;
    struct memory_event event = {
        .time_ns = event_time(reader, head, now_ns),
        .pid = (pid_t)head->pid,
        .tid = (pid_t)head->tid,
        .change = changes[head->kind],
    };
    int error = 0;
    switch (head->kind) {
    case RECORD_CODE:
        return code_names_add(reader->names, record);
    case RECORD_PROCESS:
        error = process_begin(reader, record, sink);
        break;
    case RECORD_ALLOCATED:
    case RECORD_COPIED:
        block_fill(reader, record, &event);
        break;
    default:
        change_fill(record, &event);
    }
    return error ? error : sink->memory(sink, &event);
}

/* ---- slots ---- */

enum slot_state { SLOT_UNWRITTEN, SLOT_BROKEN, SLOT_WHOLE };

static enum slot_state slot_read(const struct ring_reader *reader, uint64_t ticket,
                                 struct ring_slot *ret)
{
    const struct ring_slot *slot = &reader->slots[ticket & (reader->settings.slot_count - 1)];
    if (atomic_load_explicit(&slot->turn, memory_order_acquire) != ticket + 1)
        return SLOT_UNWRITTEN;
    memcpy((char *)ret + sizeof ret->turn, (const char *)slot + sizeof slot->turn,
           sizeof *slot - sizeof slot->turn);
    bool plausible = ret->check == ring_slot_check(ret, ticket) && ret->count &&
                     ret->count <= RING_RECORD_SLOTS && ret->index < ret->count && ret->pid &&
                     ret->pid <= INT32_MAX;
    return plausible ? SLOT_WHOLE : SLOT_BROKEN;
}

struct gathered {
    enum slot_state state;
    uint64_t slots; /* whole: of the record; else up to where the next one may begin */
    bool is_rest;   /* of a record that was given up before */
};

/* The record's own head says the same as its slots. */
static bool head_fits(const struct record_head *head, const struct ring_slot *slot)
{
    return head->pid == slot->pid && head->size <= (uint64_t)slot->count * RING_SLOT_ROOM &&
           head->size > (uint64_t)(slot->count - 1) * RING_SLOT_ROOM;
}

static struct gathered record_gather(struct ring_reader *reader, uint64_t limit)
{
    struct ring_slot first, slot;
    enum slot_state state = slot_read(reader, reader->position, &first);
    if (state != SLOT_WHOLE)
        return (struct gathered){ state, 1, false };
    if (first.index || first.count > limit - reader->position)
        return (struct gathered){ SLOT_BROKEN, 1, first.index > 0 };
    slot = first;
    for (uint64_t i = 0; i < first.count; i++) {
        if (i > 0)
            state = slot_read(reader, reader->position + i, &slot);
        if (state != SLOT_WHOLE)
            return (struct gathered){ state, i + 1, false };
        if (slot.index != i || slot.count != first.count || slot.pid != first.pid)
            return (struct gathered){ SLOT_BROKEN, i, false };
        memcpy(reader->record + i * RING_SLOT_ROOM, slot.room, RING_SLOT_ROOM);
    }
    bool whole = head_fits((const struct record_head *)reader->record, &first) &&
                 record_is_whole(reader->record);
    return (struct gathered){ whole ? SLOT_WHOLE : SLOT_BROKEN, first.count, false };
}

/* Was the ticket given so long ago that its writer does not come any more? */
static bool is_overdue(struct ring_reader *reader, uint64_t ticket, uint64_t limit, uint64_t now_ns)
{
    if (ticket < reader->mark_next)
        return now_ns >= reader->mark_ns && now_ns - reader->mark_ns >= RING_PATIENCE_NS;
    reader->mark_next = limit;
    reader->mark_ns = now_ns;
    return false;
}

/* Unwritten neighbours were one record, as far as anybody can tell. */
static void slots_skip(struct ring_reader *reader, const struct gathered *gathered)
{
    reader->skipped += !reader->skips && !gathered->is_rest;
    reader->skips = gathered->state == SLOT_UNWRITTEN;
    reader->position += gathered->slots;
}

/* Where the tickets end that were given. Writers never give more than there are slots: somebody
 * wrote over the number, and they go on from here. */
static uint64_t tickets_end(struct ring_reader *reader)
{
    uint64_t next = atomic_load_explicit(&reader->head->next, memory_order_acquire);
    if (next - reader->position <= reader->settings.slot_count)
        return next;
    atomic_store_explicit(&reader->head->next, reader->position, memory_order_release);
    reader->skipped++;
    return reader->position;
}

bool ring_reader_has_news(const struct ring_reader *reader)
{
    return atomic_load_explicit(&reader->head->next, memory_order_acquire) != reader->position;
}

/*
 * A stretch that has been read is given back to the system before its slots are given to anybody
 * anew, so that the ring takes the memory of what waits in it. A writer that comes too late writes
 * into an empty page, which nobody believes.
 */
static void stretch_give_back(struct ring_reader *reader, uint64_t before)
{
    enum { SLOTS = STRETCH / RING_SLOT_SIZE };
    _Static_assert(SLOTS >= (int)RING_RECORD_SLOTS,
                   "no record passes more than one end of a stretch");
    uint64_t read = before / SLOTS;
    if (reader->position / SLOTS == read || reader->settings.slot_count < SLOTS)
        return;
    uint64_t first = read * SLOTS & (reader->settings.slot_count - 1);
    madvise((char *)reader->head + SLOTS_AT + first * RING_SLOT_SIZE, STRETCH, MADV_REMOVE);
}

long ring_reader_drain(struct ring_reader *reader, uint64_t now_ns, struct ring_sink *sink)
{
    uint64_t limit = tickets_end(reader);
    long count = 0;
    int error = 0;
    while (reader->position < limit && !error) {
        uint64_t before = reader->position;
        struct gathered gathered = record_gather(reader, limit);
        if (gathered.state == SLOT_UNWRITTEN &&
            !is_overdue(reader, reader->position + gathered.slots - 1, limit, now_ns))
            break;
        if (gathered.state == SLOT_WHOLE) {
            error = record_tell(reader, now_ns, sink);
            reader->position += gathered.slots;
            reader->skips = false;
            reader->records++;
            count++;
        } else {
            slots_skip(reader, &gathered);
        }
        stretch_give_back(reader, before);
        atomic_store_explicit(&reader->head->taken, reader->position, memory_order_release);
    }
    ended_settle(reader);
    return error ? error : count;
}

/* ---- what was lost ---- */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t lost_bytes(const struct ring_reader *reader, enum record_kind kind)
{
    return atomic_load_explicit(&reader->head->lost_bytes[kind], memory_order_relaxed);
}

uint32_t ring_reader_gaps(const struct ring_reader *reader)
{
    return atomic_load_explicit(&reader->head->gaps, memory_order_relaxed);
}

void ring_reader_losses(const struct ring_reader *reader, struct memory_loss_event *ret)
{
    *ret = (struct memory_loss_event){
        .records = reader->records,
        .lost = reader->skipped,
        .allocated_bytes = lost_bytes(reader, RECORD_ALLOCATED),
        .freed_bytes = sum(lost_bytes(reader, RECORD_FREED), lost_bytes(reader, RECORD_RESIZED)),
        .copied_bytes = lost_bytes(reader, RECORD_COPIED),
    };
    for (int kind = 0; kind < RECORD_KINDS; kind++)
        ret->lost =
            sum(ret->lost, atomic_load_explicit(&reader->head->lost[kind], memory_order_relaxed));
}
