/*
 * What the file of a mapped object says of its functions, read once for all processes that have it
 * mapped, however many these are. Kept as long as somebody uses it; knows no address in a process.
 */
#pragma once

#include "symbols/elf_file.h"
#include "symbols/source_lines.h"
#include "symbols/symbol_table.h"

#include <stdbool.h>

struct object_symbols {
    struct elf_file *file;
    struct elf_file *debug; /* separate debug file; NULL: none, or none needed */
    struct symbol_table symbols;
    struct source_lines *lines; /* NULL: none, or not wanted */
    bool stripped;              /* the file itself names no local functions */
    /* what the list finds it by, and until when */
    struct file_identity identity;
    bool in_list, wants_lines;
    unsigned users;
    void *bytes; /* of an object that is in no file */
    struct object_symbols *next;
};

/* Those that are in use. Begins as { NULL }, and is empty again when all users are gone. */
struct object_list {
    struct object_symbols *first;
};

/* The object behind a mapping. Errors as elf_file_open_mapping; an object without readable symbols
 * is none. */
int object_symbols_open(struct object_list *list, int proc_fd, const struct mapping *mapping,
                        bool wants_lines, struct object_symbols **ret);

/* From bytes, which are freed with it, or at once where they are no object. Nobody shares it. */
int object_symbols_open_bytes(void *bytes, size_t size, bool wants_lines,
                              struct object_symbols **ret);

void object_symbols_close(struct object_list *list, struct object_symbols *object);
