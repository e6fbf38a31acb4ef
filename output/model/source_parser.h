/*
 * tree-sitter with Python's grammar, with an end to its effort. Only source_blocks.c needs to know.
 * Its recovery from an error costs the square of what it has to skip, so that a megabyte of
 * anything but Python would take hours. What it takes from the heap tells how hard it works: once
 * that is out of proportion, the text ends for it there, and the rest has no blocks.
 */
#pragma once

#include <stddef.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_python(void);

/* `size` is below 4 GiB. NULL when out of memory; ts_tree_delete frees it. */
TSTree *source_parse(const char *text, size_t size);
