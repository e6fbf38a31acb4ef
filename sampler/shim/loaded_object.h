/*
 * An object that the loader has in this process: its relocations, what it imports by them, and what
 * it defines. They are found by the list that the loader keeps for debuggers, and no lock of its is
 * taken: whoever walks it knows that no other thread is in the loader. Writes nothing.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loaded_object {
    ElfW(Addr) base;
    const ElfW(Phdr) * parts;
    size_t part_count;
    const ElfW(Rela) * lists[2];
    size_t counts[2];
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;           /* DT_GNU_HASH, or NULL; … */
    const uint32_t *old_hash;       /* … DT_HASH, or NULL */
    uintptr_t guarded, guarded_end; /* what the loader makes read-only when it is done (RELRO) */
};

/* False when it has no symbols. */
bool loaded_object_read(const struct link_map *map, struct loaded_object *ret);
bool loaded_object_holds(const struct loaded_object *object, const void *address);

/* From its first byte to its last one, with what may lie in between. */
void loaded_object_range(const struct loaded_object *object, uintptr_t *ret_start,
                         uintptr_t *ret_end);

/* The symbol that the object defines under that name, or NULL. */
const ElfW(Sym) * loaded_object_define(const struct loaded_object *object, const char *name);

typedef bool loaded_object_visit(const struct loaded_object *object, void *argument);

/* The program first, the others in the order of their loading, until a visit returns true: that is
 * 1, else 0. -EINPROGRESS: it is not whole, as a thread is changing it. */
int loaded_objects_walk(loaded_object_visit *visit, void *argument);

bool loaded_objects_are_whole(void);

/* The program itself. */
bool loaded_program_read(struct loaded_object *ret);
