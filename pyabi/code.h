/*
 * Code objects, read once and recognised again: an entry is used only when the bytes that make up
 * the object's identity (from argcount to line table, with its own never repeated version from 3.12
 * on, with the texts of its names before) are those of the moment. So an entry is never stale,
 * without a generation counter.
 */
#pragma once

#include "pyabi/layout.h"
#include "pyabi/lines.h"
#include "pyabi/view.h"
#include "sampler/base/intern.h"
#include "sampler/base/page_cache.h"

enum { IDENTITY_BYTES = 192, NAME_BYTES = 48 };

struct code_entry {
    remote_addr address;
    const char *name;     /* qualified on 3.11+; interned; NULL: unreadable */
    const char *filename; /* interned; NULL: unreadable */
    int first_line;
    uint32_t frame_words;   /* of a frame in the data stack; 0 where frames are heap objects */
    uint64_t bytecode_size; /* 0: unknown */
    bool internal;          /* a trampoline of the interpreter's own, no code of anybody */
    bool retired;           /* its address has got another identity since */
    /* private from here */
    struct code_entry *next_retired;
    uint64_t generation;
    uint64_t walk;  /* in which it was found to be what it was; 0: in none */
    uint8_t *calls; /* a bit for each two bytes of bytecode: is it a call? NULL: unknown */
    uint8_t *line_table;
    size_t line_table_size;
    uint8_t identity[IDENTITY_BYTES], names[2][NAME_BYTES];
    struct {
        int64_t offset;
        struct code_position position;
    } recent[8];
};

struct code_cache;

int code_cache_new(const struct py_layout *layout, struct intern *texts, struct code_cache **ret);
void code_cache_free(struct code_cache *cache);
void code_cache_empty(struct code_cache *cache);
/* Frees the entries that were retired in the round before. */
void code_cache_start_round(struct code_cache *cache);
/* From here on nothing is known to be what it was. */
void code_cache_start_walk(struct code_cache *cache);
size_t code_cache_count(const struct code_cache *cache);

/*
 * The entry of a code object that is alive at this moment. `pages` are for what was not predicted.
 * `generation` counts freed code objects (3.14+); while it stays the same an entry needs no other
 * proof; 0 when there is none. The entry lives until the next round, even when its address gets
 * another identity; then it says so. 0, -EBADMSG, -EFAULT, …
 */
int code_cache_find(struct code_cache *cache, struct view *view, struct page_cache *pages,
                    remote_addr address, uint64_t generation, struct code_entry **ret);

/* Is the instruction so many bytes into the code a call? */
bool code_is_call(const struct code_entry *code, int64_t offset);

/* Line and column of the instruction so many bytes into the code; -1 is "not started yet". */
struct code_position code_find_position(const struct py_layout *layout, struct code_entry *code,
                                        int64_t offset);
