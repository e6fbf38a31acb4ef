/*
 * Prints what our layout of a release says, line for line as a probe prints what the headers say.
 */
#include "pyabi/layout.h"

#include <stdio.h>
#include <string.h>

static void group_print(struct py_layout *layout, const struct layout_group *group)
{
    for (size_t i = 0; group->fields[i].name; i++) {
        const struct py_offset from_target = FROM_TARGET;
        struct py_offset offset = *layout_offset(layout, group, i);

        if (!offset_present(offset))
            continue;
        printf("%s.%s ", group->name, group->fields[i].name);
        if (offset.plus_one == from_target.plus_one)
            printf("from-target ");
        else
            printf("%u ", offset_of(offset));
        printf("%u\n", group->fields[i].width);
    }
}

/* The name of the member that a debug offset is for; NULL when this release has it not. */
static const char *told_name(struct py_layout *layout, const struct layout_group *group,
                             uint16_t field)
{
    if (field == group->at)
        return "size";
    for (size_t i = 0; group->fields[i].name; i++) {
        struct py_offset *offset = layout_offset(layout, group, i);

        if ((char *)offset - (char *)layout == field)
            return offset_present(*offset) ? group->fields[i].name : NULL;
    }
    return NULL;
}

static void told_print(struct py_layout *layout, const struct debug_offset *row)
{
    for (const struct layout_group *group = layout_groups; group->name; group++) {
        const char *name = told_name(layout, group, row->field);

        if (name)
            printf("told %s.%s %u +%u -%u\n", group->name, name, row->at, row->plus, row->minus);
    }
}

static void shapes_print(const struct py_layout *layout)
{
#define SHAPE(name) printf("shape " #name " %lld\n", (long long)layout->name);
    SHAPE(major)
    SHAPE(minor)
    SHAPE(free_threaded)
    SHAPE(reference_tag_mask)
    SHAPE(shim_owners)
    SHAPE(highest_owner)
    SHAPE(generator_owner)
    SHAPE(executing)
    SHAPE(unicode_kind_shift)
    SHAPE(unicode_compact_shift)
    SHAPE(unicode_ascii_shift)
    SHAPE(managed_dict_words)
    SHAPE(type_has_inline_values)
    SHAPE(type_has_managed_dict)
    SHAPE(script_breaker)
    SHAPE(debug_offsets_size)
}

static const struct py_layout *layout_named(const char *name)
{
    for (const struct py_layout *const *layout = py_layouts; *layout; layout++) {
        if (!strcmp((*layout)->name, name))
            return *layout;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct py_layout *release = argc == 2 ? layout_named(argv[1]) : NULL;
    struct py_layout layout;

    if (!release) {
        fprintf(stderr, "usage: print_layout RELEASE, one of %s\n", layout_known_names());
        return 2;
    }
    layout = *release;
    for (const struct layout_group *group = layout_groups; group->name; group++)
        group_print(&layout, group);
    for (const struct debug_offset *row = layout.debug_offsets; row && row->at; row++)
        told_print(&layout, row);
    shapes_print(&layout);
    return 0;
}
