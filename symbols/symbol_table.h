/*
 * The functions of one object, sorted by address. Takes what ELF symbol tables say with suspicion:
 * sizes are respected, labels inside functions ignored. Names point into the ELF handles, which
 * must stay open.
 */
#pragma once

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
    uint64_t start, size; /* ELF virtual addresses */
    const char *mangled;  /* borrowed from the ELF handle */
    char *readable;       /* owned; NULL until asked for, or when `mangled` is readable */
    unsigned rank;        /* of several at one address, the highest speaks */
};

struct symbol_table {
    struct symbol *list;
    size_t count, room;
};

/* Adds what .symtab and .dynsym of the file name: 0 or -ENOMEM. Call symbol_table_sort() after the
 * last. */
int symbol_table_add(struct symbol_table *table, Elf *elf);
void symbol_table_sort(struct symbol_table *table);

/* The function that holds the address, or NULL. */
struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

/* Demangled; lives as long as the table. */
const char *symbol_readable(struct symbol *symbol);

void symbol_table_done(struct symbol_table *table);
