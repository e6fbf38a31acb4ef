/* What the parts of a profile for the Firefox Profiler share. */
#pragma once

#include "output/export/frame_table.h"
#include "output/export/json_document.h"
#include "output/export/ledger.h"
#include "output/export/text_table.h"

enum gecko_category { CATEGORY_PYTHON, CATEGORY_NATIVE, CATEGORY_WAITING, CATEGORY_OTHER };

struct gecko {
    struct json_document json;
    struct frame_table frames;
    struct ledger ledger;
    struct text_table texts;
    struct key_index nodes;           /* {1 + the parent, location}: a tree of all stacks */
    uint32_t *stacks, *memory_stacks; /* 1 + the node where each ends; 0: it is empty */
};

/* Tables that all threads share. */
void gecko_shared_write(struct gecko *gecko);
void gecko_threads_write(struct gecko *gecko, const struct report *report);

/* The first thread from that number on that is written; as many as there are: none. Those without a
 * sample (a shell's helpers) would be empty rows. One is written anyway, for what is of no thread.
 */
size_t gecko_thread_next(const struct gecko *gecko, size_t from);

/* The number of a text from anywhere. */
int64_t gecko_text(struct gecko *gecko, const char *text);
