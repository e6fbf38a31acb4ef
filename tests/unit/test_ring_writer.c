/* The ring's writers: what many of them write at once is whole, in order and counted, whoever of
 * them dies or comes too late. The reader here is the least that judges them. */
#define _GNU_SOURCE 1 /* memfd_create, pthread_tryjoin_np */

#include "sampler/shim/ring_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    SLOTS = 1 << 10,
    WRITERS = 4,
    RECORDS = 20000,
    LARGEST = 3 * RING_SLOT_ROOM, /* of a record that is written here */
};

/* What a test's record holds: its bytes follow from the rest. */
struct numbered {
    struct record_head head;
    uint32_t writer, number;
    uint8_t bytes[LARGEST];
};

struct fixture {
    struct ring ring;
    char path[32];
    int fd;
};

/* ---- a ring, and its reader ---- */

static int ring_make(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const struct ring_head head = {
        .magic = RING_MAGIC,
        .version = RING_VERSION,
        .slot_size = RING_SLOT_SIZE,
        .slots_at = 4096 * ((sizeof head + 4095) / 4096),
        .slot_count = SLOTS,
        .window = 1000,
        .copy_window = 1000,
    };
    fixture->fd = memfd_create("ring", MFD_CLOEXEC);
    snprintf(fixture->path, sizeof fixture->path, "/proc/self/fd/%d", fixture->fd);
    *state = fixture;
    return ftruncate(fixture->fd, (off_t)(head.slots_at + SLOTS * RING_SLOT_SIZE)) ||
           pwrite(fixture->fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
           ring_open(fixture->path, &fixture->ring);
}

static int ring_unmake(void **state)
{
    struct fixture *fixture = *state;
    munmap(fixture->ring.head, fixture->ring.head->slots_at + SLOTS * RING_SLOT_SIZE);
    close(fixture->fd);
    free(fixture);
    return 0;
}

/* The next slot, if it is whole. */
static const struct ring_slot *slot_find(struct ring *ring, uint64_t ticket)
{
    const struct ring_slot *slot = &ring->slots[ticket & (SLOTS - 1)];
    if (atomic_load_explicit(&slot->turn, memory_order_acquire) != ticket + 1 ||
        slot->check != ring_slot_check(slot, ticket))
        return NULL;
    return slot;
}

static uint64_t taken(struct ring *ring)
{
    return atomic_load(&ring->head->taken);
}

/* The next record, if it is whole; its slots are given back. */
static bool record_read(struct ring *ring, struct numbered *ret)
{
    uint64_t ticket = taken(ring);
    const struct ring_slot *slot = slot_find(ring, ticket);
    if (!slot)
        return false;
    unsigned count = slot->count;
    assert_in_range(count, 1, (sizeof *ret + RING_SLOT_ROOM - 1) / RING_SLOT_ROOM);
    uint8_t bytes[sizeof *ret + RING_SLOT_ROOM];
    for (unsigned i = 0; i < count; i++) {
        slot = slot_find(ring, ticket + i);
        if (!slot)
            return false;
        assert_int_equal(slot->index, i);
        assert_int_equal(slot->count, count);
        memcpy(bytes + (size_t)i * RING_SLOT_ROOM, slot->room, RING_SLOT_ROOM);
    }
    memcpy(ret, bytes, sizeof *ret);
    assert_int_equal(slot->pid, ret->head.pid);
    atomic_store_explicit(&ring->head->taken, ticket + count, memory_order_release);
    return true;
}

/* ---- records that prove themselves ---- */

static uint8_t byte_of(uint32_t writer, uint32_t number, size_t at)
{
    return (uint8_t)(writer * 41 + number * 7 + at);
}

static size_t size_of(uint32_t number)
{
    return number * 13 % LARGEST;
}

static bool record_write(struct ring *ring, uint32_t writer, uint32_t number)
{
    struct numbered record = { .writer = writer, .number = number };
    size_t extra = size_of(number), half = extra / 2;
    size_t fixed = offsetof(struct numbered, bytes);
    record.head.kind = RECORD_ALLOCATED;
    record.head.size = (uint32_t)(fixed + extra);
    record.head.pid = writer;
    for (size_t i = 0; i < extra; i++)
        record.bytes[i] = byte_of(writer, number, i);
    const struct ring_part parts[] = { { &record, fixed },
                                       { record.bytes, half },
                                       { NULL, 0 },
                                       { record.bytes + half, extra - half } };
    return ring_write(ring, writer, 0, parts, 4);
}

static void record_check(const struct numbered *record)
{
    size_t extra = size_of(record->number);
    assert_int_equal(record->head.pid, record->writer);
    assert_int_equal(record->head.size, offsetof(struct numbered, bytes) + extra);
    size_t right = 0;
    while (right < extra && record->bytes[right] == byte_of(record->writer, record->number, right))
        right++;
    assert_int_equal(right, extra);
}

/* ---- the tests ---- */

static void test_one_after_the_other(void **state)
{
    struct ring *ring = &((struct fixture *)*state)->ring;
    struct numbered record;
    for (uint32_t number = 0; number < 3 * SLOTS; number++) {
        assert_true(record_write(ring, 7, number));
        assert_true(record_read(ring, &record));
        assert_int_equal(record.number, number);
        record_check(&record);
    }
    assert_false(record_read(ring, &record));
}

struct writer {
    struct ring *ring;
    uint32_t name;
};

static void write_all(struct ring *ring, uint32_t writer)
{
    for (uint32_t number = 0; number < RECORDS; number++)
        if (!record_write(ring, writer, number)) {
            ring_lose(ring, RECORD_ALLOCATED, size_of(number));
            sched_yield(); /* the reader's turn */
        }
}

static void *writer_run(void *argument)
{
    const struct writer *writer = argument;
    write_all(writer->ring, writer->name);
    return NULL;
}

struct tally {
    uint64_t records, bytes;
    int64_t last[WRITERS];
};

static void ring_drain(struct ring *ring, struct tally *tally)
{
    struct numbered record;
    while (record_read(ring, &record)) {
        record_check(&record);
        assert_in_range(record.writer, 0, WRITERS - 1);
        assert_true(record.number > tally->last[record.writer]);
        tally->last[record.writer] = record.number;
        tally->records++;
        tally->bytes += size_of(record.number);
    }
}

static struct tally tally_begin(void)
{
    struct tally tally = { 0 };
    memset(tally.last, -1, sizeof tally.last);
    return tally;
}

/* Whatever was not read was counted as lost, record by record and byte by byte. */
static void tally_check(struct ring *ring, const struct tally *tally)
{
    uint64_t bytes = 0;
    for (uint32_t number = 0; number < RECORDS; number++)
        bytes += (uint64_t)WRITERS * size_of(number);
    assert_int_equal(taken(ring), atomic_load(&ring->head->next));
    assert_int_equal(tally->records + atomic_load(&ring->head->lost[RECORD_ALLOCATED]),
                     (uint64_t)WRITERS * RECORDS);
    assert_int_equal(tally->bytes + atomic_load(&ring->head->lost_bytes[RECORD_ALLOCATED]), bytes);
    assert_true(tally->records > SLOTS);
}

static void test_threads(void **state)
{
    struct ring *ring = &((struct fixture *)*state)->ring;
    struct tally tally = tally_begin();
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ ring, i };
        assert_int_equal(pthread_create(&threads[i], NULL, writer_run, &writers[i]), 0);
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        while (pthread_tryjoin_np(threads[i], NULL))
            ring_drain(ring, &tally);
    ring_drain(ring, &tally);
    tally_check(ring, &tally);
}

/* Each opens the ring for itself. */
static void process_run(const char *path, uint32_t name)
{
    struct ring ring;
    if (ring_open(path, &ring))
        _exit(1);
    write_all(&ring, name);
    _exit(0);
}

static void test_processes(void **state)
{
    struct fixture *fixture = *state;
    struct tally tally = tally_begin();
    for (uint32_t i = 0; i < WRITERS; i++)
        if (!fork())
            process_run(fixture->path, i);
    for (int running = WRITERS; running;) {
        int status;
        ring_drain(&fixture->ring, &tally);
        if (waitpid(-1, &status, WNOHANG) > 0) {
            assert_int_equal(status, 0);
            running--;
        }
    }
    ring_drain(&fixture->ring, &tally);
    tally_check(&fixture->ring, &tally);
}

static void test_full(void **state)
{
    struct ring *ring = &((struct fixture *)*state)->ring;
    struct numbered record;
    uint64_t ticket, written = 0;
    while (record_write(ring, 1, 0))
        written++;
    assert_int_equal(written, SLOTS);
    assert_false(ring_take(ring, 1, 0, &ticket));
    assert_true(record_read(ring, &record));
    assert_false(ring_take(ring, 2, 0, &ticket));
    assert_false(ring_take(ring, 1, 1, &ticket)); /* that one is for others */
    assert_true(record_write(ring, 1, 0));
    for (uint64_t i = 0; i < SLOTS; i++)
        assert_true(record_read(ring, &record));
    assert_false(record_read(ring, &record));
}

/* A child takes a ticket and is killed before it writes: the others go on, and once the reader has
 * lost its patience it finds what they wrote. */
static void test_killed_in_between(void **state)
{
    struct fixture *fixture = *state;
    struct ring *ring = &fixture->ring;
    struct numbered record;
    uint64_t ticket;
    int status;
    pid_t child = fork();
    if (!child) {
        ring_take(ring, 2, 0, &ticket);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    for (uint32_t number = 0; number < SLOTS - 2; number++)
        assert_true(record_write(ring, 3, number * LARGEST));
    assert_false(record_write(ring, 3, 0));
    assert_false(record_read(ring, &record));
    atomic_fetch_add(&ring->head->taken, 2);
    for (uint32_t number = 0; number < SLOTS - 2; number++) {
        assert_true(record_read(ring, &record));
        record_check(&record);
        assert_int_equal(record.number, number * LARGEST);
    }
}

/* The reader has gone on without it: nothing is written any more. */
static void test_too_late(void **state)
{
    struct ring *ring = &((struct fixture *)*state)->ring;
    struct numbered record = { .writer = 1 };
    const struct ring_part part = { &record, RING_SLOT_ROOM };
    uint64_t ticket;
    assert_true(ring_take(ring, 1, 0, &ticket));
    atomic_fetch_add(&ring->head->taken, 1);
    assert_false(ring_commit(ring, ticket, 1, &part, 1));
    assert_int_equal(atomic_load(&ring->slots[ticket & (SLOTS - 1)].turn), 0);
}

/* A writer that was kept for so long that its slot is another's meanwhile, and that writes all the
 * same (it had looked just before): neither what it writes nor what it spoils is believed. */
static void test_too_late_to_know(void **state)
{
    struct ring *ring = &((struct fixture *)*state)->ring;
    struct numbered record = { .writer = 1 };
    const struct ring_part part = { &record, RING_SLOT_ROOM };
    uint64_t late, next;
    assert_true(ring_take(ring, 1, 0, &late));
    atomic_store(&ring->head->taken, late + 1);
    atomic_store(&ring->head->next, late + SLOTS);
    atomic_store(&ring->head->taken, late + SLOTS);
    assert_true(ring_take(ring, 1, 0, &next));
    assert_int_equal(next, late + SLOTS);
    assert_true(ring_commit(ring, next, 1, &part, 1));
    assert_non_null(slot_find(ring, next));
    atomic_store(&ring->head->taken, late); /* as it stood when the late one looked */
    assert_true(ring_commit(ring, late, 1, &part, 1));
    atomic_store(&ring->head->taken, next);
    assert_null(slot_find(ring, next));
    atomic_store(&ring->slots[next & (SLOTS - 1)].turn,
                 next + 1); /* if only half of it came through */
    assert_null(slot_find(ring, next));
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(ring_slots_needed(0), 0);
    assert_int_equal(ring_slots_needed(1), 1);
    assert_int_equal(ring_slots_needed(RING_SLOT_ROOM), 1);
    assert_int_equal(ring_slots_needed(RING_SLOT_ROOM + 1), 2);
    assert_int_equal(ring_slots_needed((size_t)RING_SLOT_ROOM * RING_RECORD_SLOTS),
                     RING_RECORD_SLOTS);
    assert_int_equal(ring_slots_needed((size_t)RING_SLOT_ROOM * RING_RECORD_SLOTS + 1), 0);
}

/* What is no ring, or no whole one, is not opened. */
static void test_no_ring(void **state)
{
    struct fixture *fixture = *state;
    struct ring ring;
    struct ring_head *head = fixture->ring.head;
    assert_int_equal(ring_open("/nowhere/ring", &ring), -ENOENT);
    assert_int_equal(ring_open("/dev/null", &ring), -EBADMSG);
    head->magic[0]++;
    assert_int_equal(ring_open(fixture->path, &ring), -EBADMSG);
    head->magic[0]--;
    head->slot_count = SLOTS * 2; /* beyond its end */
    assert_int_equal(ring_open(fixture->path, &ring), -EBADMSG);
    head->slot_count = SLOTS - 1;
    assert_int_equal(ring_open(fixture->path, &ring), -EBADMSG);
    head->slot_count = SLOTS;
    head->window = 0;
    assert_int_equal(ring_open(fixture->path, &ring), -EBADMSG);
    head->window = 1;
    assert_int_equal(ring_open(fixture->path, &ring), 0);
    munmap(ring.head, ring.head->slots_at + SLOTS * RING_SLOT_SIZE);
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, ring_make, ring_unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RING(test_one_after_the_other), WITH_RING(test_threads),
        WITH_RING(test_processes),           WITH_RING(test_full),
        WITH_RING(test_killed_in_between),   WITH_RING(test_too_late),
        WITH_RING(test_too_late_to_know),    WITH_RING(test_no_ring),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
