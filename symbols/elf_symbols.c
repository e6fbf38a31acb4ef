/*
 * Looks names up in an ELF object by reading the few bytes that each step needs. Exported symbols
 * are found as the loader finds them, through PT_DYNAMIC and its hash tables, so that a file
 * without section headers is no special case; the others by walking .symtab.
 */
#include "symbols/elf_parts.h"

#include "sampler/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bounds for hostile files; real ones stay far below. */
enum {
    MAX_CHAIN = 1 << 16,
    MAX_SECTIONS = 1 << 20,
    MAX_STRINGS = 1 << 28,
    MAX_NAME = 256,
};

static bool symbol_defined(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_TLS;
}

/* Is symbol number `index` of the dynamic table the one called `name`? */
static bool dynamic_symbol_is(const struct elf_file *file, uint32_t index, const char *name,
                              Elf64_Sym *ret)
{
    char found[MAX_NAME];
    size_t size = strlen(name) + 1;
    return elf_file_read(file, file->dynamic.symbols + (uint64_t)index * sizeof *ret, ret,
                         sizeof *ret) == 0 &&
           symbol_defined(ret) &&
           elf_file_read(file, file->dynamic.strings + ret->st_name, found, size) == 0 &&
           memcmp(found, name, size) == 0;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* DT_GNU_HASH: a header, a bloom filter of 64-bit words, buckets, then one hash a symbol. */
static int gnu_hash_find(const struct elf_file *file, const char *name, Elf64_Sym *ret)
{
    struct {
        uint32_t buckets, first_symbol, bloom_words, bloom_shift;
    } table;
    uint64_t at = file->dynamic.gnu_hash, bloom;
    uint32_t hash = gnu_hash(name), index, stored;
    if (elf_file_read(file, at, &table, sizeof table) < 0 || !table.buckets || !table.bloom_words)
        return -EBADMSG;
    at += sizeof table;
    if (elf_file_read(file, at + hash / 64 % table.bloom_words * 8, &bloom, sizeof bloom) < 0)
        return -EBADMSG;
    if (!(bloom >> hash % 64 & bloom >> (hash >> table.bloom_shift % 32) % 64 & 1))
        return -ENOENT;
    at += (uint64_t)table.bloom_words * 8;
    if (elf_file_read(file, at + hash % table.buckets * 4, &index, sizeof index) < 0 ||
        index < table.first_symbol)
        return -ENOENT;
    at += (uint64_t)table.buckets * 4;
    for (int i = 0; i < MAX_CHAIN; i++, index++) {
        if (elf_file_read(file, at + (uint64_t)(index - table.first_symbol) * 4, &stored, 4) < 0)
            return -EBADMSG;
        if ((stored | 1) == (hash | 1) && dynamic_symbol_is(file, index, name, ret))
            return 0;
        if (stored & 1)
            break;
    }
    return -ENOENT;
}

static uint32_t sysv_hash(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

/* DT_HASH: counts of buckets and symbols, the buckets, then the next of its chain for each. */
static int sysv_hash_find(const struct elf_file *file, const char *name, Elf64_Sym *ret)
{
    uint32_t counts[2], index;
    uint64_t at = file->dynamic.sysv_hash;
    if (elf_file_read(file, at, counts, sizeof counts) < 0 || !counts[0])
        return -EBADMSG;
    at += sizeof counts;
    if (elf_file_read(file, at + sysv_hash(name) % counts[0] * 4, &index, sizeof index) < 0)
        return -EBADMSG;
    at += (uint64_t)counts[0] * 4;
    for (int i = 0; i < MAX_CHAIN && index != STN_UNDEF; i++) {
        if (dynamic_symbol_is(file, index, name, ret))
            return 0;
        if (elf_file_read(file, at + (uint64_t)index * 4, &index, sizeof index) < 0)
            return -EBADMSG;
    }
    return -ENOENT;
}

static int symbol_answer(const Elf64_Sym *symbol, uint64_t *ret_value, uint64_t *ret_size)
{
    *ret_value = symbol->st_value;
    *ret_size = symbol->st_size;
    return 0;
}

int elf_file_find_exported(const struct elf_file *file, const char *name, uint64_t *ret_value,
                           uint64_t *ret_size)
{
    Elf64_Sym symbol;
    if (!file->dynamic.symbols || !file->dynamic.strings || strlen(name) >= MAX_NAME)
        return -ENOENT;
    if ((file->dynamic.gnu_hash && gnu_hash_find(file, name, &symbol) == 0) ||
        (file->dynamic.sysv_hash && sysv_hash_find(file, name, &symbol) == 0))
        return symbol_answer(&symbol, ret_value, ret_size);
    return -ENOENT;
}

static int section_read(const struct elf_file *file, uint64_t index, Elf64_Shdr *ret)
{
    return elf_file_read(file, file->header.e_shoff + index * sizeof *ret, ret, sizeof *ret);
}

/* The first section header holds the counts that do not fit into the ELF header (elf(5)). */
static int sections_read(const struct elf_file *file, Elf64_Shdr **ret, size_t *ret_count,
                         size_t *ret_names)
{
    Elf64_Shdr first;
    const Elf64_Ehdr *header = &file->header;
    if (!header->e_shoff || header->e_shentsize != sizeof first ||
        section_read(file, 0, &first) < 0)
        return -ENOENT;
    uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    if (count > MAX_SECTIONS || count > file->size / sizeof first)
        return -EBADMSG;
    AUTO_FREE Elf64_Shdr *sections = calloc(count ? count : 1, sizeof *sections);
    if (!sections)
        return -ENOMEM;
    if (elf_file_read(file, header->e_shoff, sections, count * sizeof *sections) < 0)
        return -EBADMSG;
    *ret = TAKE_PTR(sections);
    *ret_count = count;
    *ret_names = names;
    return 0;
}

/* The whole of a string section, with a NUL put after it. */
static int strings_read(const struct elf_file *file, const Elf64_Shdr *section, char **ret)
{
    if (section->sh_type != SHT_STRTAB || section->sh_size > MAX_STRINGS ||
        section->sh_size > file->size)
        return -EBADMSG;
    AUTO_FREE char *strings = malloc(section->sh_size + 1);
    if (!strings)
        return -ENOMEM;
    if (elf_file_read(file, section->sh_offset, strings, section->sh_size) < 0)
        return -EBADMSG;
    strings[section->sh_size] = '\0';
    *ret = TAKE_PTR(strings);
    return 0;
}

static int symtab_find(const struct elf_file *file, const Elf64_Shdr *table,
                       const Elf64_Shdr *names, const char *name, Elf64_Sym *ret)
{
    AUTO_FREE char *strings = NULL;
    int error = strings_read(file, names, &strings);
    if (error)
        return error;

    Elf64_Sym block[256];
    uint64_t total = table->sh_size / sizeof block[0];
    for (uint64_t first = 0; first < total; first += 256) {
        size_t count = total - first < 256 ? total - first : 256;
        if (elf_file_read(file, table->sh_offset + first * sizeof block[0], block,
                          count * sizeof block[0]) < 0)
            return -EBADMSG;
        for (size_t i = 0; i < count; i++) {
            if (block[i].st_name >= names->sh_size || !symbol_defined(&block[i]) ||
                strcmp(strings + block[i].st_name, name) != 0)
                continue;
            *ret = block[i];
            return 0;
        }
    }
    return -ENOENT;
}

int elf_file_find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_value,
                         uint64_t *ret_size)
{
    if (elf_file_find_exported(file, name, ret_value, ret_size) == 0)
        return 0;
    AUTO_FREE Elf64_Shdr *sections = NULL;
    size_t count, names;
    Elf64_Sym symbol;
    if (sections_read(file, &sections, &count, &names) < 0)
        return -ENOENT;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type == SHT_SYMTAB && section->sh_link < count &&
            symtab_find(file, section, &sections[section->sh_link], name, &symbol) == 0)
            return symbol_answer(&symbol, ret_value, ret_size);
    }
    return -ENOENT;
}

int elf_file_find_section(const struct elf_file *file, const char *name, uint64_t *ret_address,
                          uint64_t *ret_size)
{
    AUTO_FREE Elf64_Shdr *sections = NULL;
    AUTO_FREE char *strings = NULL;
    size_t count, names;
    if (sections_read(file, &sections, &count, &names) < 0 || names >= count ||
        strings_read(file, &sections[names], &strings) < 0)
        return -ENOENT;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_name < sections[names].sh_size && section->sh_flags & SHF_ALLOC &&
            strcmp(strings + section->sh_name, name) == 0) {
            *ret_address = section->sh_addr;
            *ret_size = section->sh_size;
            return 0;
        }
    }
    return -ENOENT;
}
