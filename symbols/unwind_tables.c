#include "symbols/unwind_tables.h"

#include "sampler/base/error.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRAM_HEADER_LIMIT = 64,
    ENTRY_LIMIT = 1 << 26, /* 512 MiB of entries: no real object comes near */
    /* Pointer encodings of the LSB's .eh_frame_hdr chapter. */
    ENCODED_ABSOLUTE_WORD = 0x00,
    ENCODED_FORMAT = 0x0f,
    ENCODED_UNSIGNED_4 = 0x03,
    ENCODED_UNSIGNED_8 = 0x04,
    ENCODED_SIGNED_4 = 0x0b,
    ENCODED_SIGNED_8 = 0x0c,
    ENCODED_SORTED_PAIRS = 0x3b, /* relative to the table, signed, 4 bytes */
};

/* The vdso has no file, but is an object like any other. */
static bool mapping_is_object(const struct mapping *mapping)
{
    return mapping->executable && (mapping->inode || strcmp(mapping->path, "[vdso]") == 0);
}

static uint64_t digest_add(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9E3779B97F4A7C15u + (digest >> 29);
}

static uint64_t maps_digest(const struct maps *maps, size_t *ret_objects)
{
    uint64_t digest = 1;
    size_t objects = 0;
    for (size_t i = 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->list[i];
        if (!mapping_is_object(mapping))
            continue;
        objects++;
        digest = digest_add(digest, mapping->start);
        digest = digest_add(digest, mapping->end);
        digest = digest_add(digest, mapping->file_offset);
        digest = digest_add(digest, mapping->inode);
        digest = digest_add(digest, mapping->device);
    }
    *ret_objects = objects;
    return digest;
}

/* The start of the same file, mapped at or nearest below: 0 if nowhere. */
static remote_addr headers_find(const struct maps *maps, size_t index)
{
    const struct mapping *code = &maps->list[index];
    for (size_t i = index + 1; i-- > 0;) {
        const struct mapping *mapping = &maps->list[i];
        if (mapping->inode == code->inode && mapping->device == code->device &&
            mapping->file_offset == 0 && mapping->readable &&
            strcmp(mapping->path, code->path) == 0)
            return mapping->start;
    }
    return 0;
}

int unwind_tables_set_maps(struct unwind_tables *tables, const struct maps *maps)
{
    size_t objects;
    uint64_t digest = maps_digest(maps, &objects);
    if (digest == tables->digest)
        return 0;

    struct unwind_table *list = calloc(objects ? objects : 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->list[i];
        if (mapping_is_object(mapping))
            list[count++] = (struct unwind_table){
                .start = mapping->start,
                .end = mapping->end,
                .file_offset = mapping->file_offset,
                .headers = headers_find(maps, i),
            };
    }
    unwind_tables_done(tables);
    *tables = (struct unwind_tables){ list, count, digest };
    return 1;
}

void unwind_tables_done(struct unwind_tables *tables)
{
    free(tables->list);
    *tables = (struct unwind_tables){ 0 };
}

struct program_headers {
    Elf64_Phdr list[PROGRAM_HEADER_LIMIT];
    size_t count;
};

static int program_headers_read(struct remote *memory, remote_addr start,
                                struct program_headers *ret)
{
    Elf64_Ehdr header;
    int error = remote_read(memory, start, &header, sizeof header);
    if (error)
        return error;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > PROGRAM_HEADER_LIMIT)
        return -EBADMSG;
    ret->count = header.e_phnum;
    return remote_read(memory, start + header.e_phoff, ret->list, ret->count * sizeof *ret->list);
}

/* What must be added to the object's own addresses: told by the segment that the code was mapped
 * from. */
static bool bias_find(const struct program_headers *headers, const struct unwind_table *table,
                      remote_addr *ret_bias)
{
    uint64_t first = table->file_offset, after = first + (table->end - table->start);
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *segment = &headers->list[i];
        uint64_t segment_after = segment->p_offset + segment->p_filesz;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && segment->p_offset < after &&
            first < segment_after) {
            *ret_bias = table->start - (segment->p_vaddr - segment->p_offset + first);
            return true;
        }
    }
    return false;
}

/* Bytes of an encoded value of fixed size, 0 for any other. */
static size_t encoded_size(uint8_t encoding)
{
    switch (encoding & ENCODED_FORMAT) {
    case ENCODED_UNSIGNED_4:
    case ENCODED_SIGNED_4:
        return 4;
    case ENCODED_ABSOLUTE_WORD:
    case ENCODED_UNSIGNED_8:
    case ENCODED_SIGNED_8:
        return 8;
    default:
        return 0;
    }
}

/* Header: version, three encodings, pointer to .eh_frame, count of entries; then the entries. */
static void table_read(struct remote *memory, remote_addr base, struct unwind_table *table)
{
    uint8_t head[4];
    uint64_t count = 0;
    if (remote_read(memory, base, head, sizeof head))
        return;
    size_t pointer_size = encoded_size(head[1]), count_size = encoded_size(head[2]);
    if (head[0] != 1 || head[3] != ENCODED_SORTED_PAIRS || !pointer_size || !count_size)
        return;
    remote_addr count_at = base + sizeof head + pointer_size;
    if (remote_read(memory, count_at, &count, count_size) || count > ENTRY_LIMIT)
        return;
    table->base = base;
    table->entries = count_at + count_size;
    table->entry_count = count;
}

static void table_locate(struct remote *memory, struct unwind_table *table)
{
    struct program_headers headers;
    remote_addr bias;
    table->located = true;
    if (!table->headers || program_headers_read(memory, table->headers, &headers) ||
        !bias_find(&headers, table, &bias))
        return;
    for (size_t i = 0; i < headers.count; i++)
        if (headers.list[i].p_type == PT_GNU_EH_FRAME)
            table_read(memory, bias + headers.list[i].p_vaddr, table);
}

const struct unwind_table *unwind_tables_find(struct unwind_tables *tables, struct remote *memory,
                                              remote_addr ip)
{
    size_t low = 0, high = tables->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct unwind_table *table = &tables->list[middle];
        if (ip < table->start) {
            high = middle;
        } else if (ip >= table->end) {
            low = middle + 1;
        } else {
            if (!table->located)
                table_locate(memory, table);
            return table->entry_count ? table : NULL;
        }
    }
    return NULL;
}

struct table_entry {
    int32_t function, fde; /* relative to the table's base */
};

bool unwind_table_function(const struct unwind_table *table, struct remote *memory, remote_addr ip,
                           struct table_function *ret)
{
    size_t low = 0, high = table->entry_count;
    struct table_function found = { .end = table->end };
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct table_entry entry;
        if (remote_read(memory, table->entries + middle * sizeof entry, &entry, sizeof entry))
            return false;
        remote_addr start = table->base + (remote_addr)(int64_t)entry.function;
        if (ip < start) {
            high = middle;
            found.end = start;
        } else {
            low = middle + 1;
            found.start = start;
            found.fde = table->base + (remote_addr)(int64_t)entry.fde;
        }
    }
    if (!found.fde)
        return false;
    *ret = found;
    return true;
}
