/*
 * What the parts of Python source are: keywords, texts, numbers, as tree-sitter finds them. Broken
 * source gives what can be told of it. No I/O.
 */
#pragma once

#include "output/model/value.h"

enum source_part {
    SOURCE_PLAIN,
    SOURCE_KEYWORD,
    SOURCE_CONSTANT, /* a number, True, False, None, … */
    SOURCE_STRING,
    SOURCE_COMMENT,
    SOURCE_DEFINED, /* the name of a def or class, where it is defined */
    SOURCE_DECORATOR,
    SOURCE_PART_COUNT
};

/* Bytes of one line that are one part. */
struct source_span {
    uint32_t first, end;
    enum source_part part;
};

/* The spans of line i are items[starts[i]] to items[starts[i + 1] - 1], in order. All zero: none.
 */
struct source_colours {
    struct source_span *items;
    uint32_t *starts;
    size_t line_count;
};

/*
 * `lines` may end with \n, \r\n or nothing; where one is NULL it is empty. What is larger than
 * REGIONS_SIZE_LIMIT has no colours. 0 or -ENOMEM; either way `ret` wants source_colours_done.
 */
int source_colours_read(const char *const *lines, size_t count, struct source_colours *ret);
void source_colours_done(struct source_colours *colours);

/* What that byte of the line is; `*at` is where the last one was found, first starts[line]. Bytes
 * are asked for from left to right. */
enum source_part source_colours_find(const struct source_colours *colours, size_t line,
                                     uint32_t byte, uint32_t *at);
