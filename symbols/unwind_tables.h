/*
 * Where the .eh_frame_hdr of each mapped object lies in the target's memory. Reads program headers
 * and table headers from that memory, through a remote that the caller hands in; opens no file.
 */
#pragma once

#include "symbols/maps.h"

struct unwind_table {
    remote_addr start, end; /* the executable mapping that it serves */
    uint64_t file_offset;
    remote_addr headers; /* where the object's first page is mapped */
    bool located;        /* the rest has been looked for */
    remote_addr base;    /* of .eh_frame_hdr; the entries are relative to it */
    remote_addr entries; /* pairs of 32-bit function and FDE offsets, sorted */
    size_t entry_count;  /* 0: the object has no table that we can search */
};

struct unwind_tables {
    struct unwind_table *list; /* sorted by address */
    size_t count;
    uint64_t digest; /* of the executable mappings that the list was made from */
};

/* 1: other objects are mapped now, 0: the same as before, -ENOMEM. */
int unwind_tables_set_maps(struct unwind_tables *tables, const struct maps *maps);
void unwind_tables_done(struct unwind_tables *tables);

/* The table for code at `ip`, located on first use; NULL when there is none. */
const struct unwind_table *unwind_tables_find(struct unwind_tables *tables, struct remote *memory,
                                              remote_addr ip);

/* The function, or outlined part of one, that holds an address: from its table entry to the next
 * one's. */
struct table_function {
    remote_addr start, end;
    remote_addr fde; /* its unwind information */
};

bool unwind_table_function(const struct unwind_table *table, struct remote *memory, remote_addr ip,
                           struct table_function *ret);
