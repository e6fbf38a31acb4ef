/*
 * What the shim and its reader share: a ring of slots in a memory file that every process of the
 * tree maps. Many writers, one reader. A writer takes tickets and never waits; a slot is whole once
 * it bears its ticket; one that never gets there is skipped. The reader believes nothing that it
 * has not checked: whoever maps the ring may write anything into it.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC "SCALRING"

enum {
    RING_VERSION = 4,
    RING_SLOT_SIZE = 256,
    RING_SLOT_HEAD = 24,
    RING_SLOT_ROOM = RING_SLOT_SIZE - RING_SLOT_HEAD,
    RING_RECORD_SLOTS = 512, /* of one record at most: 116 KiB */
    RING_PYTHONS = 32,
    RING_FRAMES = 1024, /* of one record: the innermost; what is left out is counted in it */
};

enum record_kind {
    RECORD_PROCESS, /* a process has the shim: once an image, and once more after a fork. Blocks
                       that an earlier image of that pid had are gone */
    RECORD_CODE,    /* a code object, before the first record that names it */
    RECORD_ALLOCATED,
    RECORD_FREED,
    RECORD_RESIZED,
    RECORD_COPIED,
    RECORD_KINDS
};

/* What a process does not tell of, and knows that it does not. */
enum ring_gap {
    GAP_CODES = 1,      /* so many code objects that the last ones have no names */
    GAP_IMPORTS = 2,    /* so many imports that the last ones are not hooked */
    GAP_ALLOCATORS = 4, /* CPython's allocators were set by somebody else */
    GAP_PROGRAM = 8,    /* the program has an allocator of its own linked in */
    GAP_MAPPINGS = 16,  /* so many mappings at once that the last ones are told as freed */
};

/* Whose allocator was asked. */
enum allocation_domain { DOMAIN_NATIVE, DOMAIN_MAPPED, DOMAIN_RAW, DOMAIN_MEM, DOMAIN_OBJECT };

/*
 * Where things stand in one CPython release, for the walk of a thread's own stack: offsets, or
 * RING_ABSENT. Filled in by the reader, which knows them; the shim compares no versions.
 */
#define RING_ABSENT UINT32_MAX

/* F(name): an offset of struct py_layout's, group_field. */
#define RING_PYTHON_OFFSETS(F)                                                                     \
    F(thread, ident)                                                                               \
    F(thread, frame)                                                                               \
    F(thread, cframe)                                                                              \
    F(cframe, current_frame)                                                                       \
    F(frame, previous)                                                                             \
    F(frame, code)                                                                                 \
    F(frame, position)                                                                             \
    F(frame, instruction)                                                                          \
    F(frame, owner)                                                                                \
    F(frame, tlbc_index)                                                                           \
    F(code, firstlineno)                                                                           \
    F(code, filename)                                                                              \
    F(code, name)                                                                                  \
    F(code, qualname)                                                                              \
    F(code, line_table)                                                                            \
    F(code, bytecode_inline)                                                                       \
    F(code, tlbc)                                                                                  \
    F(tlbc, array_size)                                                                            \
    F(tlbc, entries)                                                                               \
    F(object, type)                                                                                \
    F(object, var_size)                                                                            \
    F(unicode, length)                                                                             \
    F(unicode, state)                                                                              \
    F(unicode, ascii_data)                                                                         \
    F(unicode, compact_data)                                                                       \
    F(unicode, any)                                                                                \
    F(bytes, length)                                                                               \
    F(bytes, data)

struct ring_python {
    uint8_t major, minor, free_threaded;
    uint8_t position_unit; /* of frame_position: 1 byte, or 2 */
    uint8_t shim_owners;   /* as struct py_layout */
    uint8_t reference_tag_mask;
    uint8_t unicode_kind_shift, unicode_compact_shift, unicode_ascii_shift;
    uint8_t unused[7];
#define RING_PYTHON_OFFSET(group, field) uint32_t group##_##field;
    RING_PYTHON_OFFSETS(RING_PYTHON_OFFSET)
#undef RING_PYTHON_OFFSET
};

/* At the ring's start, in pages of its own; slots follow at `slots_at`. */
struct ring_head {
    char magic[8];
    uint32_t version, slot_size;
    uint64_t slots_at, slot_count; /* a power of two */
    uint64_t window;               /* mean bytes allocated between two samples */
    uint64_t copy_window;          /* and copied */
    uint32_t python_count;
    uint32_t reader_pid; /* whose ring it is, and when that began: clock ticks since boot */
    uint64_t reader_start;
    struct ring_python pythons[RING_PYTHONS];

    /* 0: nobody records. Written by the reader alone. */
    _Alignas(64) _Atomic uint32_t armed;
    _Alignas(64) _Atomic uint64_t next;  /* the ticket that is given next */
    _Alignas(64) _Atomic uint64_t taken; /* tickets that the reader is done with */
    /* what found no room: how many, and the bytes that they stood for */
    _Alignas(64) _Atomic uint64_t lost[RECORD_KINDS];
    _Atomic uint64_t lost_bytes[RECORD_KINDS];
    _Atomic uint32_t gaps; /* bits of enum ring_gap, of any process */
};

/* A record lies in `count` slots with tickets one after the other, this being the `index`th. */
struct ring_slot {
    _Atomic uint64_t turn; /* its ticket + 1, once all else is written */
    uint32_t check; /* ring_check() of all that follows it in the slot, with the ticket: a writer
                       that comes too late leaves what nobody believes */
    uint32_t pid;
    uint16_t index, count;
    uint32_t unused;
    uint8_t room[RING_SLOT_ROOM];
};

/* ---- records: a head, then what its kind adds; all sizes in bytes, all offsets from its start
 * ---- */

struct record_head {
    uint16_t kind; /* enum record_kind */
    uint16_t unused;
    uint32_t size; /* of the whole record */
    uint32_t pid, tid;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
};

struct process_record {
    struct record_head head;
    uint32_t ppid;
    uint8_t major, minor, free_threaded; /* 0: no Python, or none yet */
    uint8_t forked;
};

/* Followed by name, file (UTF-8) and line table. Ids are a process's own and never given twice. */
struct code_record {
    struct record_head head;
    uint32_t code_id;
    int32_t first_line;
    uint32_t name_size, file_size, table_size;
    uint8_t major, minor, free_threaded, unused;
};

struct record_frame {
    uint32_t code_id; /* 0: of code that could not be told of */
    int32_t offset;   /* of the running instruction, in bytes */
};

/* RECORD_ALLOCATED and RECORD_COPIED. Followed by frames, innermost first. */
struct block_record {
    struct record_head head;
    uint64_t block; /* a process's own number of it, never given twice; 0: a copy */
    uint64_t size;  /* asked for, or by how much it grew, its number then being one that was told
                       already or a new one; a copy: what it stands for */
    uint8_t domain; /* enum allocation_domain */
    uint8_t unused[3];
    uint16_t frame_count, frames_left_out; /* the outermost; 65535: that many or more */
    struct record_frame frames[];
};

/* RECORD_FREED and RECORD_RESIZED */
struct change_record {
    struct record_head head;
    uint64_t block;
    uint64_t size; /* resized: what is left of all that was told as allocated under this number */
};

_Static_assert(sizeof(struct ring_slot) == RING_SLOT_SIZE, "the wire");
_Static_assert(offsetof(struct ring_slot, room) == RING_SLOT_HEAD, "the wire");
_Static_assert(sizeof(struct record_head) == 24, "the wire");
_Static_assert(sizeof(struct process_record) == 32, "the wire");
_Static_assert(sizeof(struct code_record) == 48, "the wire");
_Static_assert(sizeof(struct record_frame) == 8, "the wire");
_Static_assert(sizeof(struct block_record) == 48, "the wire");
_Static_assert(sizeof(struct change_record) == 40, "the wire");
_Static_assert(sizeof(struct ring_python) % 4 == 0, "the wire");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared between processes");

/* FNV-1a over words, then folded. `size` is a multiple of 4. */
static inline uint32_t ring_check(const void *bytes, size_t size, uint64_t ticket)
{
    const uint32_t *words = (const uint32_t *)bytes;
    uint64_t sum = 0xCBF29CE484222325u ^ ticket;
    for (size_t i = 0; i < size / 4; i++)
        sum = (sum ^ words[i]) * 0x100000001B3u;
    return (uint32_t)(sum ^ sum >> 32);
}

/* What a slot's `check` is, from all that stands behind it. */
static inline uint32_t ring_slot_check(const struct ring_slot *slot, uint64_t ticket)
{
    enum { CHECKED_FROM = offsetof(struct ring_slot, pid) };
    return ring_check((const uint8_t *)slot + CHECKED_FROM, RING_SLOT_SIZE - CHECKED_FROM, ticket);
}
