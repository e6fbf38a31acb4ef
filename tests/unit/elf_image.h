/*
 * Makes small ELF objects for tests: a page of headers and dynamic tables, one of text, one of data
 * (.dynamic first) with a page of .bss behind it, and a page that is never loaded, with .symtab
 * and the section headers. Addresses given to it count from the object's first byte in memory.
 */
#pragma once

#include <elf.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    ELF_IMAGE_BASE = 0x10000, /* ELF virtual address of the first byte */
    ELF_IMAGE_DATA_AT = 0x2000,
    ELF_IMAGE_DATA = 0x3000, /* where the data are, counted from the first byte in memory */
    ELF_IMAGE_BSS = 0x4000,
    ELF_IMAGE_END = 0x5000,
    ELF_IMAGE_SIZE = 0x4000,

    IMAGE_DYNSYM = 0x200,
    IMAGE_DYNSTR = 0x400,
    IMAGE_GNU_HASH = 0x600,
    IMAGE_SYSV_HASH = 0x800,
    IMAGE_SYMTAB = 0x3000,
    IMAGE_STRTAB = 0x3200,
    IMAGE_SHSTRTAB = 0x3400,
    IMAGE_SECTIONS = 0x3600,
    IMAGE_TABLE_SIZE = 0x200,
};

struct elf_name {
    const char *name;
    uint64_t address; /* 0: undefined here */
};

enum elf_image_hash { HASH_GNU, HASH_SYSV, HASH_NONE };

struct elf_plan {
    struct elf_name exported[8]; /* up to the first without a name */
    struct elf_name local[8];    /* in .symtab alone */
    struct elf_name section;
    const char *needed; /* a library, or NULL */
    enum elf_image_hash hash;
    bool no_sections;       /* as after sstrip */
    bool extended_counts;   /* e_shnum and e_shstrndx as for 65,280 sections and more */
    uint64_t fixed_address; /* for ET_EXEC, instead of ELF_IMAGE_BASE */
};

struct elf_image {
    alignas(8) uint8_t bytes[ELF_IMAGE_SIZE];
    uint64_t base;
};

static inline uint32_t image_add_name(uint8_t *strings, const char *name)
{
    uint32_t at = 1;
    while (strings[at])
        at += (uint32_t)strlen((char *)strings + at) + 1;
    strcpy((char *)strings + at, name);
    return at;
}

/* Symbol 0 is the empty one; returns how many there are with it. */
static inline uint32_t image_add_symbols(struct elf_image *image, const struct elf_name *names,
                                         uint32_t table, uint32_t strings)
{
    Elf64_Sym *symbols = (Elf64_Sym *)(image->bytes + table);
    uint32_t count = 1;
    for (; count < 9 && names[count - 1].name; count++) {
        const struct elf_name *from = &names[count - 1];
        symbols[count].st_name = image_add_name(image->bytes + strings, from->name);
        symbols[count].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
        symbols[count].st_shndx = from->address ? 1 : SHN_UNDEF;
        symbols[count].st_value = from->address ? image->base + from->address : 0;
        symbols[count].st_size = from->address ? 64 : 0;
    }
    return count;
}

/* The hash of the gABI, as its text has it. */
static inline uint32_t image_sysv_hash(const char *name)
{
    uint32_t hash = 0, high;
    for (; *name; name++) {
        hash = (hash << 4) + (uint8_t)*name;
        if ((high = hash & 0xf0000000))
            hash ^= high >> 24;
        hash &= ~high;
    }
    return hash;
}

/* Three buckets, chains in the order of the symbols. */
static inline void image_add_sysv_hash(struct elf_image *image, const struct elf_plan *plan,
                                       uint32_t count)
{
    uint32_t *table = (uint32_t *)(image->bytes + IMAGE_SYSV_HASH);
    table[0] = 3;
    table[1] = count;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t *slot = &table[2 + image_sysv_hash(plan->exported[i - 1].name) % 3];
        while (*slot)
            slot = &table[5 + *slot];
        *slot = i;
    }
}

/* One bucket and one bloom word with the bits of all symbols: shift 6. */
static inline void image_add_gnu_hash(struct elf_image *image, const struct elf_plan *plan,
                                      uint32_t count)
{
    uint32_t *table = (uint32_t *)(image->bytes + IMAGE_GNU_HASH);
    uint64_t bloom = 0;
    table[0] = 1;
    table[1] = 1;
    table[2] = 1;
    table[3] = 6;
    table[6] = count > 1;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t hash = 5381;
        for (const char *name = plan->exported[i - 1].name; *name; name++)
            hash = (hash << 5) + hash + (uint8_t)*name;
        bloom |= 1ull << hash % 64 | 1ull << (hash >> 6) % 64;
        table[6 + i] = (hash & ~1u) | (i + 1 == count);
    }
    memcpy(&table[4], &bloom, sizeof bloom);
}

static inline void image_add_dynamic(struct elf_image *image, const struct elf_plan *plan)
{
    uint32_t count = image_add_symbols(image, plan->exported, IMAGE_DYNSYM, IMAGE_DYNSTR);
    Elf64_Dyn *dynamic = (Elf64_Dyn *)(image->bytes + ELF_IMAGE_DATA_AT);
    *dynamic++ = (Elf64_Dyn){ DT_SYMTAB, { image->base + IMAGE_DYNSYM } };
    *dynamic++ = (Elf64_Dyn){ DT_STRTAB, { image->base + IMAGE_DYNSTR } };
    if (plan->hash == HASH_GNU) {
        image_add_gnu_hash(image, plan, count);
        *dynamic++ = (Elf64_Dyn){ DT_GNU_HASH, { image->base + IMAGE_GNU_HASH } };
    } else if (plan->hash == HASH_SYSV) {
        image_add_sysv_hash(image, plan, count);
        *dynamic++ = (Elf64_Dyn){ DT_HASH, { image->base + IMAGE_SYSV_HASH } };
    }
    if (plan->needed)
        *dynamic++ =
            (Elf64_Dyn){ DT_NEEDED, { image_add_name(image->bytes + IMAGE_DYNSTR, plan->needed) } };
    *dynamic = (Elf64_Dyn){ DT_NULL, { 0 } };
}

static inline void image_add_sections(struct elf_image *image, const struct elf_plan *plan)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)image->bytes;
    Elf64_Shdr *sections = (Elf64_Shdr *)(image->bytes + IMAGE_SECTIONS);
    uint8_t *names = image->bytes + IMAGE_SHSTRTAB;
    uint32_t count = plan->section.name ? 5 : 4;
    header->e_shoff = IMAGE_SECTIONS;
    header->e_shentsize = sizeof *sections;
    header->e_shnum = plan->extended_counts ? 0 : (uint16_t)count;
    header->e_shstrndx = plan->extended_counts ? SHN_XINDEX : 3;
    if (plan->extended_counts)
        sections[0] = (Elf64_Shdr){ .sh_size = count, .sh_link = 3 };
    sections[1] = (Elf64_Shdr){
        .sh_name = image_add_name(names, ".symtab"),
        .sh_type = SHT_SYMTAB,
        .sh_offset = IMAGE_SYMTAB,
        .sh_size =
            image_add_symbols(image, plan->local, IMAGE_SYMTAB, IMAGE_STRTAB) * sizeof(Elf64_Sym),
        .sh_link = 2,
        .sh_entsize = sizeof(Elf64_Sym),
    };
    sections[2] = (Elf64_Shdr){ .sh_name = image_add_name(names, ".strtab"),
                                .sh_type = SHT_STRTAB,
                                .sh_offset = IMAGE_STRTAB,
                                .sh_size = IMAGE_TABLE_SIZE };
    sections[3] = (Elf64_Shdr){ .sh_name = image_add_name(names, ".shstrtab"),
                                .sh_type = SHT_STRTAB,
                                .sh_offset = IMAGE_SHSTRTAB,
                                .sh_size = IMAGE_TABLE_SIZE };
    if (plan->section.name)
        sections[4] = (Elf64_Shdr){ .sh_name = image_add_name(names, plan->section.name),
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC | SHF_WRITE,
                                    .sh_addr = image->base + plan->section.address,
                                    .sh_size = 64 };
}

static inline void elf_image_make(struct elf_image *image, const struct elf_plan *plan)
{
    memset(image, 0, sizeof *image);
    image->base = plan->fixed_address ? plan->fixed_address : ELF_IMAGE_BASE;
    Elf64_Ehdr *header = (Elf64_Ehdr *)image->bytes;
    *header = (Elf64_Ehdr){
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = plan->fixed_address ? ET_EXEC : ET_DYN,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof *header,
        .e_phoff = sizeof *header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 4,
    };
    Elf64_Phdr *segments = (Elf64_Phdr *)(header + 1);
    uint64_t base = image->base, data = base + ELF_IMAGE_DATA;
    segments[0] = (Elf64_Phdr){ PT_LOAD, PF_R, 0, base, base, 0x1000, 0x1000, 0x1000 };
    segments[1] = (Elf64_Phdr){ PT_LOAD,       PF_R | PF_X, 0x1000, base + 0x1000,
                                base + 0x1000, 0x1000,      0x1000, 0x1000 };
    segments[2] = (Elf64_Phdr){
        PT_LOAD, PF_R | PF_W, ELF_IMAGE_DATA_AT, data, data, 0x1000, ELF_IMAGE_END - ELF_IMAGE_DATA,
        0x1000
    };
    segments[3] =
        (Elf64_Phdr){ PT_DYNAMIC, PF_R | PF_W, ELF_IMAGE_DATA_AT, data, data, 0x100, 0x100, 8 };
    image_add_dynamic(image, plan);
    if (!plan->no_sections)
        image_add_sections(image, plan);
}
