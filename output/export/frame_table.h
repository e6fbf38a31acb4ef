/*
 * The frames of a report's stacks, each once, at the three levels at which formats tell frames
 * apart. Equal frames get equal numbers, in the order in which they first come, however many copies
 * of them the report has.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/report.h"
#include "sampler/base/intern.h"

/* Texts are valid UTF-8. */
struct frame_function {
    const char *name, *file; /* "": unknown; the file of a native one is its module */
    bool native;
};

struct frame_place {
    uint32_t function;
    int64_t line; /* 0: unknown */
};

/* A place, or of a native function each instruction. */
struct frame_location {
    uint32_t place;
    uint64_t ip, offset; /* 0: unknown */
};

struct frame_stack {
    uint32_t *locations; /* outermost first */
    size_t count;
};

struct frame_table {                                              /* all zero is empty */
    struct key_index function_index, place_index, location_index; /* their counts are these: */
    struct frame_function *functions;
    struct frame_place *places;
    struct frame_location *locations;
    size_t function_room, place_room, location_room;
    struct frame_stack *stacks;        /* the combined stacks of the report, */
    struct frame_stack *memory_stacks; /* and those of memory */
    struct intern *texts;
    struct arena arena;
};

/* 0 or -ENOMEM. The report is not needed any more. */
int frame_table_init(struct frame_table *table, const struct report *report);
void frame_table_done(struct frame_table *table);

/* A copy, repaired where it is no UTF-8, that lives as long as the table; "" of NULL. NULL when out
 * of memory. */
const char *frame_table_text(struct frame_table *table, const char *text);

static inline const struct frame_function *frame_function_at(const struct frame_table *table,
                                                             uint32_t location)
{
    return &table->functions[table->places[table->locations[location].place].function];
}

static inline int64_t frame_line_at(const struct frame_table *table, uint32_t location)
{
    return table->places[table->locations[location].place].line;
}
