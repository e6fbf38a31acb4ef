/*
 * Any bytes in the slots of a ring: whatever is told is sound, the ring goes on afterwards, and a
 * profile of it can be reported. The first byte's lowest bit has the slots signed, so that the
 * fuzzer gets past the check; the second says how many tickets were given.
 */
#include "output/model/profile.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/utf8.h"
#include "sampler/loop/ring_reader.h"
#include "sampler/shim/ring_layout.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 64 };

DEFINE_CLEANUP(struct report *, report_free)
DEFINE_CLEANUP(struct profile *, profile_free)
DEFINE_CLEANUP(struct ring_reader *, ring_reader_free)

struct fuzz_sink {
    struct ring_sink sink;
    struct profile *profile;
    size_t count;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void frame_check(const struct frame_event *frame)
{
    must(frame->kind == FRAME_PYTHON && frame->line >= 0 && frame->first_line >= 0);
    must(!frame->name || (*frame->name && utf8_is_valid(frame->name)));
    must(!frame->file || (*frame->file && utf8_is_valid(frame->file)));
}

static int event_check(struct ring_sink *sink, const struct memory_event *event)
{
    struct fuzz_sink *fuzz = (struct fuzz_sink *)sink;
    fuzz->count++;
    must(event->change < MEMORY_CHANGES && event->pid > 0 && event->frame_count <= RING_FRAMES);
    must((event->block == 0) ==
         (event->change == MEMORY_COPIED || event->change == MEMORY_EMPTIED));
    bool weighs = event->change == MEMORY_ALLOCATED || event->change == MEMORY_COPIED;
    must(weighs == (event->weight_bytes > 0) && isfinite(event->weight_bytes));
    for (size_t i = 0; i < event->frame_count; i++)
        frame_check(&event->frames[i]);
    return profile_add_memory(fuzz->profile, event);
}

static void slots_fill(struct ring_slot *slots, const uint8_t *data, size_t size, bool are_signed)
{
    size = size < SLOTS * sizeof *slots ? size : SLOTS * sizeof *slots;
    memcpy(slots, data, size);
    for (uint64_t i = 0; are_signed && i < SLOTS; i++) {
        slots[i].check = ring_slot_check(&slots[i], i);
        slots[i].turn = i + 1;
    }
}

static void ring_run(struct ring_reader *reader, struct ring_head *head, struct fuzz_sink *sink)
{
    for (uint64_t now_ns = 1; now_ns < 4 * RING_PATIENCE_NS; now_ns += RING_PATIENCE_NS)
        must(ring_reader_drain(reader, now_ns, &sink->sink) >= 0);
    must(head->taken == head->next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct profile_settings profile_settings = {
        .profiler_version = "1.0", .program = "/srv/a.py", .cpu_count = 1, .leak_detector = true
    };
    static const struct ring_settings settings = { SLOTS, 524287, 1, 0 };
    CLEANUP(report_freep) struct report *report = NULL;
    CLEANUP(profile_freep) struct profile *profile = NULL;
    CLEANUP(ring_reader_freep) struct ring_reader *reader = NULL;
    if (size < 2)
        return 0;
    must(profile_new(&profile_settings, &profile) == 0);
    must(ring_reader_new(&settings, &reader, NULL) == 0);
    size_t ring_size = (size_t)lseek(ring_reader_fd(reader), 0, SEEK_END);
    struct ring_head *head =
        mmap(NULL, ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_reader_fd(reader), 0);
    must(head != MAP_FAILED);
    slots_fill((struct ring_slot *)((char *)head + head->slots_at), data + 2, size - 2,
               data[0] & 1);
    head->next = data[1];
    struct fuzz_sink sink = { { event_check, NULL }, profile, 0 };
    ring_run(reader, head, &sink);
    must(profile_report(profile, &report) == 0);
    munmap(head, ring_size);
    return 0;
}
