/*
 * The statements of a Python source as tree-sitter finds them, flat and without its types: the only
 * file that knows the grammar's names. Blocks come in source order, parents before children.
 */
#pragma once

#include "output/model/regions.h"

enum block_kind {
    BLOCK_STATEMENT, /* anything else */
    BLOCK_LOOP,
    BLOCK_ASYNC_LOOP,
    BLOCK_IF, /* also elif: inside the one before, as in Python's own tree */
    BLOCK_WITH,
    BLOCK_DEF,
    BLOCK_ASYNC_DEF,
    BLOCK_CLASS,
};

enum { BLOCK_NONE = -1 };

struct source_block {
    enum block_kind kind;
    int32_t parent;     /* BLOCK_NONE at the top */
    int32_t definition; /* its own when it is a def or class, else -1 */
    int32_t owner;      /* definition that it stands in; -1: none */
    struct line_range lines;
};

struct source_definition {
    int32_t block;
    uint32_t first_line; /* of its first decorator, else its own */
    const char *name;
    bool is_global; /* said so by a `global` before it */
    struct text_list decorators;
    struct text_list globals; /* names that it says to be global */
};

/* Texts lie in the arena that was handed in. */
struct source_blocks {
    struct source_block *items;
    size_t count;
    struct source_definition *definitions;
    size_t definition_count;
    struct source_import *imports;
    size_t import_count;
};

/* 0 or -ENOMEM; either way `ret` wants source_blocks_done. */
int source_blocks_read(const char *text, size_t size, struct arena *arena,
                       struct source_blocks *ret);
void source_blocks_done(struct source_blocks *blocks);
