#define _GNU_SOURCE 1 /* struct link_map */

#include "sampler/shim/loaded_object.h"

#include "sampler/shim/field.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* ---- one object ---- */

/* The loader has made addresses of most of what stands there, but not everywhere. */
static const void *dynamic_pointer(const struct loaded_object *object, ElfW(Addr) value)
{
    return (const void *)(value < object->base ? value + object->base : value);
}

static void dynamic_read(struct loaded_object *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *pointer = dynamic_pointer(object, entry->d_un.d_ptr);
        size_t count = entry->d_un.d_val / sizeof(ElfW(Rela));
        switch (entry->d_tag) {
        case DT_JMPREL:
            object->lists[0] = pointer;
            break;
        case DT_PLTRELSZ:
            object->counts[0] = count;
            break;
        case DT_RELA:
            object->lists[1] = pointer;
            break;
        case DT_RELASZ:
            object->counts[1] = count;
            break;
        case DT_SYMTAB:
            object->symbols = pointer;
            break;
        case DT_STRTAB:
            object->strings = pointer;
            break;
        case DT_HASH:
            object->old_hash = pointer;
            break;
        case DT_GNU_HASH:
            object->hash = pointer;
        }
    }
    for (size_t i = 0; i < 2; i++)
        if (!object->lists[i])
            object->counts[i] = 0;
}

/* Where its parts are listed: the kernel tells of the program, others begin with their head. */
static bool parts_find(const struct link_map *map, struct loaded_object *object)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)map->l_addr;
    if (!map->l_prev) {
        object->parts = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        object->part_count = getauxval(AT_PHNUM);
        return object->parts;
    }
    if (!map->l_addr || map->l_addr % (size_t)sysconf(_SC_PAGESIZE) || !field_is_readable(head) ||
        memcmp(head->e_ident, ELFMAG, SELFMAG))
        return false;
    object->parts = (const ElfW(Phdr) *)(map->l_addr + head->e_phoff);
    object->part_count = head->e_phnum;
    return true;
}

bool loaded_object_read(const struct link_map *map, struct loaded_object *ret)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct loaded_object object = { .base = map->l_addr };
    if (!parts_find(map, &object) || !map->l_ld)
        return false;
    for (size_t i = 0; i < object.part_count; i++) {
        const ElfW(Phdr) *part = &object.parts[i];
        uintptr_t at = object.base + part->p_vaddr;
        if (part->p_type != PT_GNU_RELRO)
            continue;
        object.guarded = at & ~(page - 1);
        object.guarded_end = (at + part->p_memsz) & ~(page - 1);
    }
    dynamic_read(&object, map->l_ld);
    *ret = object;
    return object.symbols && object.strings;
}

bool loaded_object_holds(const struct loaded_object *object, const void *address)
{
    for (size_t i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        if (part->p_type == PT_LOAD &&
            (uintptr_t)address - object->base - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

void loaded_object_range(const struct loaded_object *object, uintptr_t *ret_start,
                         uintptr_t *ret_end)
{
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (size_t i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        uintptr_t at = object->base + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        start = at < start ? at : start;
        end = at + part->p_memsz > end ? at + part->p_memsz : end;
    }
    *ret_start = start;
    *ret_end = end;
}

/* ---- what it defines ---- */

static bool symbol_is(const struct loaded_object *object, const ElfW(Sym) * symbol,
                      const char *name)
{
    return symbol->st_shndx != SHN_UNDEF && strcmp(object->strings + symbol->st_name, name) == 0;
}

static uint32_t name_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

/* The older table tells how many symbols there are, and they are few enough to go through. */
static const ElfW(Sym) * define_by_count(const struct loaded_object *object, const char *name)
{
    for (uint32_t i = 0; object->old_hash && i < object->old_hash[1]; i++)
        if (symbol_is(object, &object->symbols[i], name))
            return &object->symbols[i];
    return NULL;
}

/* The table: counts of buckets, of symbols that are not in it, and of words of a filter that we do
 * not need; then these words, the buckets, and the hash of each symbol, odd in the last of a
 * bucket. */
const ElfW(Sym) * loaded_object_define(const struct loaded_object *object, const char *name)
{
    const uint32_t *table = object->hash;
    if (!table || !table[0])
        return define_by_count(object, name);
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *hashes = buckets + table[0];
    uint32_t hash = name_hash(name), index = buckets[hash % table[0]];
    for (; index >= table[1]; index++) {
        const ElfW(Sym) *symbol = &object->symbols[index];
        uint32_t stored = hashes[index - table[1]];
        if ((stored | 1) == (hash | 1) && symbol_is(object, symbol, name))
            return symbol;
        if (stored & 1)
            break;
    }
    return NULL;
}

/* ---- all ---- */

bool loaded_objects_are_whole(void)
{
    return _r_debug.r_state == RT_CONSISTENT;
}

int loaded_objects_walk(loaded_object_visit *visit, void *argument)
{
    struct loaded_object object;
    if (!loaded_objects_are_whole())
        return -EINPROGRESS;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        if (loaded_object_read(map, &object) && visit(&object, argument))
            return 1;
    return 0;
}

bool loaded_program_read(struct loaded_object *ret)
{
    return _r_debug.r_map && loaded_object_read(_r_debug.r_map, ret);
}
