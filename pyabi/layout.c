/*
 * Chooses a release's layout and makes it the session's own: copied, overlaid with what the target
 * tells of itself, checked whole, once. What the target tells is hostile; what passed here is
 * trusted from then on. Reads no memory: the debug offsets come as bytes.
 */
#include "pyabi/layout.h"

#include <string.h>

#define FIELD(name, bytes) { #name, bytes },
#define LAYOUT_GROUP(group, FIELDS, limit)                                                         \
    static const struct layout_field group##_fields[] = { FIELDS(FIELD){ 0 } };
LAYOUT_GROUPS(LAYOUT_GROUP)
#undef LAYOUT_GROUP
#undef FIELD

const struct layout_group layout_groups[] = {
#define LAYOUT_GROUP(group, FIELDS, limit)                                                         \
    { #group, offsetof(struct py_layout, group), limit, group##_fields },
    LAYOUT_GROUPS(LAYOUT_GROUP)
#undef LAYOUT_GROUP
        { 0 },
};

enum { GROUP_COUNT = sizeof(layout_groups) / sizeof(layout_groups[0]) - 1 };

const struct py_layout *const py_layouts[] = {
#define RELEASE(release, name) &release,
#define DEBUG_OFFSETS(table)
#include "pyabi/releases/releases.def"
#undef RELEASE
    NULL,
};

/* What every _Py_DebugOffsets begin with (CPython: Include/internal/pycore_debug_offsets.h). */
struct debug_offsets_head {
    char cookie[8];
    uint64_t version; /* PY_VERSION_HEX */
    uint64_t free_threaded;
};

struct resolution {
    struct py_layout layout;
    const unsigned char *table;
    size_t table_size;
    uint64_t told_sizes[GROUP_COUNT]; /* UINT64_MAX: the target does not tell it */
    struct failure *why;
};

const char *layout_known_names(void)
{
    static const char names[] =
#define RELEASE(release, name) ", " name
#include "pyabi/releases/releases.def"
#undef RELEASE
#undef DEBUG_OFFSETS
        ;

    return names + strlen(", ");
}

const struct py_layout *layout_find(unsigned major, unsigned minor, bool free_threaded)
{
    for (const struct py_layout *const *layout = py_layouts; *layout; layout++) {
        if ((*layout)->major == major && (*layout)->minor == minor &&
            (*layout)->free_threaded == free_threaded)
            return *layout;
    }
    return NULL;
}

static int field_refuse(const struct resolution *resolution, const struct layout_group *group,
                        const char *field, uint64_t value, const char *reason, const char *other)
{
    return failure_set(resolution->why, -EBADMSG,
                       "Python %s: %s.%s at byte %llu is implausible: %s%s; "
                       "its memory is damaged, or it is a build with a layout of its own",
                       resolution->layout.name, group->name, field, (unsigned long long)value,
                       reason, other);
}

static int head_check(const struct resolution *resolution)
{
    const struct py_layout *layout = &resolution->layout;
    struct debug_offsets_head head;

    if (!resolution->table || resolution->table_size < layout->debug_offsets_size)
        return failure_set(
            resolution->why, -EBADMSG,
            "Python %s: its debug offsets are %u bytes, and %zu of them could be read",
            layout->name, layout->debug_offsets_size, resolution->table_size);
    memcpy(&head, resolution->table, sizeof(head));
    if (head.version >> 24 != layout->major || (head.version >> 16 & 0xff) != layout->minor ||
        !!head.free_threaded != layout->free_threaded)
        return failure_set(resolution->why, -EBADMSG,
                           "Python %s: its debug offsets are those of another version (%#llx%s)",
                           layout->name, (unsigned long long)head.version,
                           head.free_threaded ? ", free-threaded" : "");
    if (!version_is_final((uint32_t)head.version))
        return failure_set(resolution->why, -ENOTSUP,
                           "this Python is a pre-release of %s, whose layout was not settled; "
                           "run it on a release",
                           layout->name);
    return 0;
}

static uint64_t table_word(const struct resolution *resolution, uint16_t at)
{
    uint64_t word;

    memcpy(&word, resolution->table + at, sizeof(word));
    return word;
}

static size_t group_index(uint16_t field)
{
    size_t index = GROUP_COUNT - 1;

    while (layout_groups[index].at > field)
        index--;
    return index;
}

static int row_overlay(struct resolution *resolution, const struct debug_offset *row)
{
    size_t index = group_index(row->field);
    const struct layout_group *group = &layout_groups[index];
    size_t field = (row->field - group->at) / sizeof(struct py_offset) - 1;
    uint64_t value = table_word(resolution, row->at);
    struct py_offset *offset;

    if (row->plus)
        value += table_word(resolution, row->plus);
    if (row->minus)
        value -= table_word(resolution, row->minus);
    if (row->field == group->at) {
        resolution->told_sizes[index] = value;
        return 0;
    }
    offset = layout_offset(&resolution->layout, group, field);
    if (!offset_present(*offset))
        return 0;
    if (value > group->limit)
        return field_refuse(resolution, group, group->fields[field].name, value,
                            "that is beyond its struct", "");
    *offset = (struct py_offset)AT((uint32_t)value);
    return 0;
}

static int debug_offsets_overlay(struct resolution *resolution)
{
    int error = head_check(resolution);

    for (const struct debug_offset *row = resolution->layout.debug_offsets; !error && row->at;
         row++)
        error = row_overlay(resolution, row);
    return error;
}

/* The name of an earlier field that shares a byte with field `index`, or NULL. */
static const char *neighbour_find(struct py_layout *layout, const struct layout_group *group,
                                  size_t index)
{
    uint32_t start = offset_of(*layout_offset(layout, group, index));
    uint32_t end = start + group->fields[index].width;

    for (size_t other = 0; other < index; other++) {
        struct py_offset offset = *layout_offset(layout, group, other);

        if (offset_present(offset) && offset_of(offset) < end &&
            start < offset_of(offset) + group->fields[other].width)
            return group->fields[other].name;
    }
    return NULL;
}

/* Checks one field; `*size` grows to hold it. */
static int field_check(struct resolution *resolution, size_t group_at, size_t index, uint32_t *size)
{
    const struct layout_group *group = &layout_groups[group_at];
    const struct layout_field *field = &group->fields[index];
    uint32_t alignment = field->width ? field->width : 1;
    uint32_t start = offset_of(*layout_offset(&resolution->layout, group, index));
    uint32_t end = start + field->width;
    const char *other;

    if (end > group->limit || end > resolution->told_sizes[group_at])
        return field_refuse(resolution, group, field->name, start, "that is beyond its struct", "");
    if (start % alignment)
        return field_refuse(resolution, group, field->name, start, "that is not aligned", "");
    other = neighbour_find(&resolution->layout, group, index);
    if (other)
        return field_refuse(resolution, group, field->name, start, "there stands ", other);
    *size = end > *size ? end : *size;
    return 0;
}

static int group_check(struct resolution *resolution, size_t group_at)
{
    const struct layout_group *group = &layout_groups[group_at];
    uint32_t *size = (uint32_t *)((char *)&resolution->layout + group->at);
    int error = 0;

    *size = 0;
    for (size_t index = 0; !error && group->fields[index].name; index++) {
        if (offset_present(*layout_offset(&resolution->layout, group, index)))
            error = field_check(resolution, group_at, index, size);
    }
    return error;
}

/* Readers copy from one field to another in one piece, and look for others in the copy. */
static const struct layout_span {
    uint16_t field, first, last;
} spans[] = {
#define SPAN(group, field, first, last)                                                            \
    {                                                                                              \
        offsetof(struct py_layout, group.field), offsetof(struct py_layout, group.first),          \
            offsetof(struct py_layout, group.last)                                                 \
    }
    SPAN(code, firstlineno, argcount, line_table),
    SPAN(code, stacksize, argcount, line_table),
    SPAN(code, nlocalsplus, argcount, line_table),
    SPAN(code, framesize, argcount, line_table),
    SPAN(code, filename, argcount, line_table),
    SPAN(code, name, argcount, line_table),
    SPAN(code, qualname, argcount, line_table),
    SPAN(generator, frame_inline, frame_state, frame_inline),
#undef SPAN
};

static struct py_offset field_at(const struct py_layout *layout, uint16_t at)
{
    return *(const struct py_offset *)((const char *)layout + at);
}

static int span_check(const struct resolution *resolution, const struct layout_span *span)
{
    const struct py_layout *layout = &resolution->layout;
    const struct layout_group *group = &layout_groups[group_index(span->field)];
    size_t index = (span->field - group->at) / sizeof(struct py_offset) - 1;
    struct py_offset field = field_at(layout, span->field);

    if (!offset_present(field) || (offset_of(field) >= offset_of(field_at(layout, span->first)) &&
                                   offset_of(field) <= offset_of(field_at(layout, span->last))))
        return 0;
    return field_refuse(resolution, group, group->fields[index].name, offset_of(field),
                        "that is not where its neighbours are", "");
}

int layout_resolve(const struct py_layout *release, const void *table, size_t table_size,
                   struct py_layout *ret, struct failure *why)
{
    struct resolution resolution = {
        .layout = *release, .table = table, .table_size = table_size, .why = why
    };
    int error = 0;

    memset(resolution.told_sizes, 0xff, sizeof(resolution.told_sizes));
    if (release->debug_offsets)
        error = debug_offsets_overlay(&resolution);
    for (size_t group = 0; !error && group < GROUP_COUNT; group++)
        error = group_check(&resolution, group);
    for (size_t i = 0; !error && i < sizeof(spans) / sizeof(*spans); i++)
        error = span_check(&resolution, &spans[i]);
    if (!error)
        *ret = resolution.layout;
    return error;
}
