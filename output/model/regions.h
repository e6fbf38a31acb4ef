/*
 * What a Python source says about its lines: the loop, function or block that each belongs to, by
 * Scalene's rules, its functions and its imports. Parsed by tree-sitter, never by a Python, so any
 * text gives an answer: what is broken, or newer than the grammar, is passed over where it stands.
 * No I/O. Differences to Scalene 2.4: broken sources have regions (Scalene gives none); a tab is
 * eight columns even behind spaces; a line in brackets that stands left of its block and follows an
 * operator or a dot ends the block, as the grammar sees it.
 */
#pragma once

#include "output/model/value.h"
#include "sampler/base/arena.h"
#include "sampler/base/cleanup.h"

/* Lines count from 1; 0, 0 is none. */
struct line_range {
    uint32_t first, last;
};

struct line_regions {
    struct line_range region; /* innermost for or while, else def, else class, else the line */
    struct line_range loop; /* outermost loop, else the block that the line heads, else the line */
    struct line_range function; /* innermost def, async def or class; may be none */
};

struct source_function {
    const char *qualified_name; /* as co_qualname of 3.11 and later */
    const char *name;
    struct line_range lines;     /* from the line with `def` */
    uint32_t first_line;         /* as co_firstlineno: that of the first decorator, if any */
    struct text_list decorators; /* as written, without @ */
    bool is_coroutine;           /* async def */
    bool is_profiled; /* has @profile, which is not the file's own, or one of a module scalene… */
};

struct source_import {
    const char *text; /* the statement, spaced as ast.unparse does */
    uint32_t line;
    bool is_top; /* in no function, try or other block */
};

struct source_regions {
    struct line_regions *lines; /* line N is lines[N - 1] */
    size_t line_count;
    struct source_function *functions; /* by line */
    size_t function_count;
    struct source_import *imports; /* by line */
    size_t import_count;
    struct arena arena; /* all of the above, and the texts */
};

/*
 * `text` is UTF-8 with lines that end with \n (source_text.h makes it so from any file); it is not
 * kept. A text over REGIONS_SIZE_LIMIT is not parsed: each of its lines stands alone.
 * 0 or -ENOMEM.
 */
int source_regions_new(const char *text, size_t size, struct source_regions **ret);
void source_regions_free(struct source_regions *regions);

/* While it parses, tree-sitter holds some 60 times the size of ordinary code. */
#define REGIONS_SIZE_LIMIT ((size_t)8 << 20)

DEFINE_CLEANUP(struct source_regions *, source_regions_free)
#define AUTO_REGIONS CLEANUP(source_regions_freep)
