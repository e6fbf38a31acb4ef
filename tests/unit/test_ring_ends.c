/* Both ends of the ring together, the shim's writers and the profiler's reader: what is written is
 * told, in each writer's order, or counted as lost; whoever dies and whoever sleeps. */
#define _GNU_SOURCE 1 /* pthread_tryjoin_np */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampler/shim/ring_writer.h"
#include "tests/unit/made_ring.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { SLOTS = 256, WRITERS = 4, RECORDS = 20000, FRAMES = 60 };

static const uint64_t NOW = MADE_START_NS + 1000000;

/* A sink that knows of each writer, by its pid, how far it has come. */
struct ends {
    struct ring_sink sink; /* first, so that a struct ring_sink * leads back here */
    struct made_ring made;
    uint64_t last[WRITERS + 1], told;
    bool is_wrong;
};

struct writer {
    pthread_t thread;
    struct ring ring;
    uint32_t pid;
    uint64_t lost;
};

static int event_follow(struct ring_sink *sink, const struct memory_event *event)
{
    struct ends *ends = (struct ends *)sink;
    if (event->pid > WRITERS || event->block <= ends->last[event->pid] ||
        event->size_bytes != event->block ||
        event->frame_count != (event->block % 3 == 0 ? FRAMES : 0)) {
        ends->is_wrong = true;
        return 0;
    }
    ends->last[event->pid] = event->block;
    ends->told++;
    return 0;
}

static void ends_open(struct ends *ends)
{
    *ends = (struct ends){ .sink = { .memory = event_follow } };
    made_ring_open(&ends->made, SLOTS);
}

static void ends_close(struct ends *ends)
{
    made_ring_close(&ends->made);
}

/* Where the reader has it, too: a sanitizer of threads knows by the address what they share. */
static struct ring ring_of(const struct ends *ends)
{
    struct ring ring;
    char line[512];
    void *place = NULL;
    AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        void *at;
        if (strstr(line, "/memfd:" RING_FILE_NAME) && sscanf(line, "%p", &at) == 1 &&
            at != ends->made.head)
            place = at;
    }
    assert_non_null(place);
    const struct ring_place there = { place, ends->made.size };
    assert_int_equal(ring_adopt(ring_reader_fd(ends->made.reader), &there, &ring), 0);
    return ring;
}

static long ends_drain(struct ends *ends, uint64_t now_ns)
{
    return ring_reader_drain(ends->made.reader, now_ns, &ends->sink);
}

static bool block_write(struct ring *ring, uint32_t pid, uint64_t number)
{
    static const struct record_frame frames[FRAMES];
    uint16_t count = number % 3 == 0 ? FRAMES : 0;
    struct block_record record = {
        .head = head_of(RECORD_ALLOCATED, pid, sizeof record + count * sizeof *frames),
        .block = number,
        .size = number,
        .frame_count = count,
    };
    const struct ring_part parts[] = { { &record, sizeof record },
                                       { frames, count * sizeof *frames } };
    if (ring_write(ring, pid, 0, parts, count ? 2 : 1))
        return true;
    ring_lose(ring, RECORD_ALLOCATED, number);
    return false;
}

static void *writer_run(void *argument)
{
    struct writer *writer = argument;
    for (uint64_t i = 1; i <= RECORDS; i++) {
        bool written = block_write(&writer->ring, writer->pid, i);
        writer->lost += !written;
        if (!written)
            sched_yield(); /* that the other end comes to its turn */
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    CLEANUP(ends_close) struct ends ends;
    struct writer writers[WRITERS];
    uint64_t lost = 0;
    ends_open(&ends);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .ring = ring_of(&ends), .pid = i + 1 };
        assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_run, &writers[i]), 0);
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        while (pthread_tryjoin_np(writers[i].thread, NULL)) {
            assert_true(ends_drain(&ends, NOW) >= 0);
            sched_yield();
        }
        lost += writers[i].lost;
    }
    assert_true(ends_drain(&ends, NOW) >= 0);
    assert_false(ends.is_wrong);
    assert_int_equal(ends.told + lost, WRITERS * RECORDS);
    assert_int_equal(made_lost(&ends.made), lost);
    assert_true(ends.told > 4 * SLOTS);
}

/* While the reader sleeps the ring runs full: what is lost is counted, bytes and all, and what is
 * in it is told when it wakes up, as is all that comes after. */
static void test_asleep(void **state)
{
    (void)state;
    CLEANUP(ends_close) struct ends ends;
    struct memory_loss_event loss;
    ends_open(&ends);
    struct ring ring = ring_of(&ends);
    uint64_t lost = 0, lost_bytes = 0;
    for (uint64_t i = 1; i <= 10 * SLOTS; i++) {
        bool written = block_write(&ring, 1, i);
        lost += !written;
        lost_bytes += written ? 0 : i;
    }
    assert_true(lost > 8 * SLOTS);
    assert_int_equal(ends_drain(&ends, NOW + 5 * 1000000000ull), 10 * SLOTS - (long)lost);
    ring_reader_losses(ends.made.reader, &loss);
    assert_int_equal(loss.lost, lost);
    assert_int_equal(loss.allocated_bytes, lost_bytes);
    assert_int_equal(loss.records, 10 * SLOTS - lost);
    assert_true(block_write(&ring, 1, 10 * SLOTS + 1));
    assert_int_equal(ends_drain(&ends, NOW), 1);
    assert_false(ends.is_wrong);
}

/* Children that write for ever are killed wherever they happen to be. */
static void test_killed(void **state)
{
    (void)state;
    CLEANUP(ends_close) struct ends ends;
    ends_open(&ends);
    for (int round = 0; round < 20; round++) {
        struct ring ring = ring_of(&ends);
        uint64_t from = ends.last[1] + 1, told = ends.told;
        pid_t child = fork();
        if (child == 0)
            for (uint64_t i = from;; i++)
                block_write(&ring, 1, i);
        assert_true(child > 0);
        while (ends.told < told + 100)
            assert_true(ends_drain(&ends, NOW) >= 0);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        uint64_t now_ns = NOW + (uint64_t)round * 10 * RING_PATIENCE_NS;
        assert_true(ends_drain(&ends, now_ns) >= 0);
        assert_true(ends_drain(&ends, now_ns + RING_PATIENCE_NS) >= 0);
        assert_true(block_write(&ring, 2, (uint64_t)round + 1));
        assert_int_equal(ends_drain(&ends, now_ns + RING_PATIENCE_NS), 1);
    }
    assert_false(ends.is_wrong);
    assert_int_equal(ends.last[2], 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
