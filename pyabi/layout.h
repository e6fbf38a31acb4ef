/*
 * Where things stand in the memory of one CPython release: offsets (present or absent) and shapes.
 * A release is one const `struct py_layout` in releases/. At attach the layout is copied, overlaid
 * with what the target's own _Py_DebugOffsets say (3.13+), checked once, and then never changes;
 * readers never compare versions.
 */
#pragma once

#include "pyabi/layout_fields.def"
#include "sampler/base/error.h"
#include "sampler/base/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 is a real offset in CPython, so "absent" is something else. */
struct py_offset {
    uint32_t plus_one;
};

#define AT(n)                                                                                      \
    {                                                                                              \
        (n) + 1                                                                                    \
    }

/* Present, but moved by patch releases: only what the target tells of it counts. */
#define FROM_TARGET                                                                                \
    {                                                                                              \
        UINT32_MAX                                                                                 \
    }

static inline bool offset_present(struct py_offset offset)
{
    return offset.plus_one != 0;
}

static inline uint32_t offset_of(struct py_offset offset)
{
    return offset.plus_one - 1;
}

/* How a frame says where it is in its code. */
enum position_shape {
    POSITION_LAST_BYTE,   /* f_lasti counts bytes: 3.8, 3.9 */
    POSITION_LAST_UNIT,   /* f_lasti counts two-byte units: 3.10 */
    POSITION_BEFORE_NEXT, /* prev_instr: the unit before the next one, 3.11 and 3.12 */
    POSITION_INSTRUCTION, /* instr_ptr: the running instruction, or the next one: 3.13+ */
};

enum line_table_shape {
    LINES_LNOTAB,    /* co_lnotab: 3.8, 3.9 */
    LINES_RANGES,    /* co_linetable, pairs: 3.10 */
    LINES_LOCATIONS, /* co_linetable, location entries: 3.11+ */
};

/* Where an instance keeps its attributes; distances are words before the object. */
enum instance_shape {
    INSTANCE_DICT_OFFSET,   /* tp_dictoffset alone: 3.8-3.10 */
    INSTANCE_VALUES_BEFORE, /* pointer to the values 4 before, to the dict 3 before: 3.11 */
    INSTANCE_TAGGED_BEFORE, /* one word 3 before; lowest bit set: the values, less one: 3.12 */
    INSTANCE_VALUES_INLINE, /* values after basicsize, dict `managed_dict_words` before: 3.13+ */
};

enum integer_shape {
    INTEGER_OB_SIZE, /* ob_size: sign and digit count, until 3.11 */
    INTEGER_TAG,     /* lv_tag: count << 3 | sign, sign 2 is negative */
};

#define LAYOUT_FIELD(name, bytes) struct py_offset name;
#define LAYOUT_GROUP(group, FIELDS, limit)                                                         \
    struct group##_layout {                                                                        \
        uint32_t size; /* up to the end of the furthest field; layout_resolve() counts it */       \
        FIELDS(LAYOUT_FIELD)                                                                       \
    };
LAYOUT_GROUPS(LAYOUT_GROUP)
#undef LAYOUT_GROUP

/*
 * One number that the target itself tells: the word `at` bytes into its _Py_DebugOffsets is the
 * value of `field`; where `plus` or `minus` is not 0, the word there is added or taken away. A
 * group's size is told to be checked against, not to be used: its struct is longer than what we
 * read of it. Rows of fields that the release has not say nothing.
 */
struct debug_offset {
    uint16_t
        field; /* where in struct py_layout the struct py_offset, or the group's size, stands */
    uint16_t at, plus, minus;
};

#define TOLD(member, where)                                                                        \
    {                                                                                              \
        .field = offsetof(struct py_layout, member), .at = (where)                                 \
    }
#define TOLD_SUM(member, where, and_where)                                                         \
    {                                                                                              \
        .field = offsetof(struct py_layout, member), .at = (where), .plus = (and_where)            \
    }
#define TOLD_DIFFERENCE(member, where, from_where)                                                 \
    {                                                                                              \
        .field = offsetof(struct py_layout, member), .at = (where), .minus = (from_where)          \
    }

struct py_layout {
    const char *name; /* "3.13", "3.13t" */
    uint8_t major, minor;
    bool free_threaded;

#define LAYOUT_GROUP(group, FIELDS, limit) struct group##_layout group;
    LAYOUT_GROUPS(LAYOUT_GROUP)
#undef LAYOUT_GROUP

    enum position_shape position;
    enum line_table_shape lines;
    enum instance_shape instance;
    enum integer_shape integers;

    uint8_t reference_tag_mask; /* bits of a stack reference that are no address: 3 from 3.14 */

    /* Owner values of frames that are no Python function: bit n set for value n; 0 before 3.12. */
    uint8_t shim_owners;
    uint8_t highest_owner;
    uint8_t generator_owner; /* FRAME_OWNED_BY_GENERATOR */
    int8_t executing; /* value of frame.executing, or of generator.frame_state, while it runs */

    uint8_t unicode_kind_shift; /* kind: 3 bits of unicode.state from here */
    uint8_t unicode_compact_shift;
    uint8_t unicode_ascii_shift;

    /* The instructions that call, specialised forms included; ends with {0, 0}. Include/opcode*.h.
     */
    struct opcode_range {
        uint8_t first, last;
    } call_opcodes[12];

    /* Of those that push a callee's frame by themselves, and the units of their inline caches, at
     * the last of which their frame stands from then on; where its link may come late. Ends with 0.
     */
    struct push_opcode {
        uint8_t opcode, caches;
    } push_opcodes[8];

    uint8_t managed_dict_words;      /* from the managed dict pointer to the object */
    uint32_t type_has_inline_values; /* tp_flags bit */
    uint32_t type_has_managed_dict;  /* tp_flags bit */

    uint8_t
        script_breaker; /* the bit of eval_breaker that makes a thread look for a script: 3.14+ */
    uint8_t yield_breaker; /* and the one that makes it let others have the GIL */

    uint32_t debug_offsets_size;              /* sizeof _Py_DebugOffsets; 0 before 3.13 */
    const struct debug_offset *debug_offsets; /* ends with at == 0 */
};

#define RELEASE(release, name) extern const struct py_layout release;
#define DEBUG_OFFSETS(table) extern const struct debug_offset table[];
#include "pyabi/releases/releases.def"
#undef RELEASE
#undef DEBUG_OFFSETS

/* Every known release, ends with NULL. */
extern const struct py_layout *const py_layouts[];

/* The groups and their fields, for who goes through all of them. Both end with a NULL name. */
struct layout_field {
    const char *name;
    uint32_t width; /* 0: a place */
};

struct layout_group {
    const char *name;
    uint32_t at; /* in struct py_layout: the size, then one struct py_offset a field */
    uint32_t limit;
    const struct layout_field *fields;
};

extern const struct layout_group layout_groups[];

static inline struct py_offset *layout_offset(struct py_layout *layout,
                                              const struct layout_group *group, size_t index)
{
    return (struct py_offset *)((char *)layout + group->at + sizeof(uint32_t)) + index;
}

/* Of a PY_VERSION_HEX: alpha, beta and candidate releases move fields about; only what was released
 * keeps its layout, so nothing else is read. */
static inline bool version_is_final(uint32_t version)
{
    return (version >> 4 & 0xf) == 0xf;
}

/* Or only the first two numbers of one. */
static inline bool version_is_whole(uint32_t version)
{
    return version & 0xf0;
}

/* "3.8, 3.9, …" for messages. */
const char *layout_known_names(void);

/* The release's own layout, or NULL. */
const struct py_layout *layout_find(unsigned major, unsigned minor, bool free_threaded);

/*
 * Copies `release` into `*ret`, overlays the debug offsets in `table` (NULL where the release has
 * none), counts the groups' sizes, and checks every present field once: within its struct, aligned,
 * apart from the others. -EBADMSG names the release, the field and the value; -ENOTSUP is a
 * pre-release.
 */
int layout_resolve(const struct py_layout *release, const void *table, size_t table_size,
                   struct py_layout *ret, struct failure *why);
