/*
 * Opens mapped ELF objects and answers questions about them by reading the few bytes that each needs. The
 * file is not mapped: whoever owns it may cut it short while we look, and that must be an error, not a
 * SIGBUS. Exported symbols are found as the loader finds them, through PT_DYNAMIC and its hash tables, so
 * that a file without section headers is no special case.
 */
#include "symbols/elf_file.h"

#include "sampler/base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Bounds for hostile files; real ones stay far below. */
enum {
    MAX_DYNAMIC_ENTRIES = 1024,
    MAX_CHAIN = 1 << 16,
    MAX_SECTIONS = 1 << 20,
    MAX_STRINGS = 1 << 28,
    MAX_NAME = 256,
};

#define NATIVE_DATA (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* What PT_DYNAMIC points to, as file offsets; 0 is absent (the ELF header stands there). */
struct dynamic_tables {
    uint64_t symbols, strings, gnu_hash, sysv_hash;
};

struct elf_file {
    Elf *handle;
    int fd;                     /* -1: the bytes below */
    const unsigned char *bytes; /* borrowed */
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Phdr *segments;
    size_t segment_count;
    struct dynamic_tables dynamic;
};

void elf_file_close(struct elf_file *file)
{
    if (!file)
        return;
    elf_end(file->handle);
    if (file->fd >= 0)
        close(file->fd);
    free(file->segments);
    free(file);
}

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

static int file_read(const struct elf_file *file, uint64_t offset, void *into, size_t size)
{
    if (offset > file->size || size > file->size - offset)
        return -EBADMSG;
    if (file->fd < 0) {
        if (size)
            memcpy(into, file->bytes + offset, size);
        return 0;
    }
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(file->fd, (char *)into + done, size - done, (off_t)(offset + done));
        if (got <= 0)
            return -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

static bool header_sound(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == NATIVE_DATA;
}

static int file_load_segments(struct elf_file *file)
{
    const Elf64_Ehdr *header = &file->header;
    if (header->e_phnum == 0)
        return 0;
    if (header->e_phentsize != sizeof *file->segments)
        return -EBADMSG;
    file->segments = calloc(header->e_phnum, sizeof *file->segments);
    if (!file->segments)
        return -ENOMEM;
    file->segment_count = header->e_phnum;
    return file_read(file, header->e_phoff, file->segments,
                     file->segment_count * sizeof *file->segments);
}

/* File offset of a byte that the loader would put at that ELF virtual address; 0 when there is none. */
static uint64_t file_offset_of(const struct elf_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *segment = &file->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return 0;
}

static void dynamic_note(const struct elf_file *file, const Elf64_Dyn *entry,
                         struct dynamic_tables *tables)
{
    uint64_t offset = file_offset_of(file, entry->d_un.d_ptr);
    switch (entry->d_tag) {
    case DT_SYMTAB:
        tables->symbols = offset;
        break;
    case DT_STRTAB:
        tables->strings = offset;
        break;
    case DT_GNU_HASH:
        tables->gnu_hash = offset;
        break;
    case DT_HASH:
        tables->sysv_hash = offset;
        break;
    }
}

/* A file without a readable PT_DYNAMIC simply exports nothing. */
static void file_load_dynamic(struct elf_file *file)
{
    const Elf64_Phdr *segment = NULL;
    for (size_t i = 0; i < file->segment_count && !segment; i++)
        if (file->segments[i].p_type == PT_DYNAMIC)
            segment = &file->segments[i];
    if (!segment)
        return;

    Elf64_Dyn entries[64];
    for (size_t first = 0; first < MAX_DYNAMIC_ENTRIES; first += 64) {
        uint64_t left = segment->p_filesz / sizeof entries[0];
        size_t count = left <= first ? 0 : left - first < 64 ? left - first : 64;
        if (!count || file_read(file, segment->p_offset + first * sizeof entries[0], entries,
                                count * sizeof entries[0]) < 0)
            return;
        for (size_t i = 0; i < count; i++) {
            if (entries[i].d_tag == DT_NULL)
                return;
            dynamic_note(file, &entries[i], &file->dynamic);
        }
    }
}

static int file_finish_open(struct elf_file *file)
{
    if (!file->handle || elf_kind(file->handle) != ELF_K_ELF ||
        file_read(file, 0, &file->header, sizeof file->header) < 0 ||
        !header_sound(&file->header))
        return -EBADMSG;
    int error = file_load_segments(file);
    if (!error)
        file_load_dynamic(file);
    return error;
}

static struct elf_file *file_new(void)
{
    struct elf_file *file = calloc(1, sizeof *file);
    if (file)
        file->fd = -1;
    elf_version(EV_CURRENT);
    return file;
}

int elf_file_open_fd(int fd, struct elf_file **ret)
{
    struct stat status;
    CLEANUP(elf_file_closep) struct elf_file *file = file_new();
    if (!file)
        return -ENOMEM;
    file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (file->fd < 0 || fstat(file->fd, &status) < 0 || !S_ISREG(status.st_mode))
        return -EBADMSG;
    file->size = (uint64_t)status.st_size;
    file->handle = elf_begin(file->fd, ELF_C_READ, NULL);
    int error = file_finish_open(file);
    if (!error)
        *ret = TAKE_PTR(file);
    return error;
}

int elf_file_open_bytes(void *bytes, size_t size, struct elf_file **ret)
{
    CLEANUP(elf_file_closep) struct elf_file *file = file_new();
    if (!file)
        return -ENOMEM;
    file->bytes = bytes;
    file->size = size;
    file->handle = elf_memory(bytes, size);
    int error = file_finish_open(file);
    if (!error)
        *ret = TAKE_PTR(file);
    return error;
}

/*
 * The mapping's own file? overlayfs and btrfs tell stat() an anonymous device (major 0) and the maps the one
 * below (before Linux 6.8), so for these the inode must do.
 */
static bool same_object(const struct stat *status, const struct mapping *mapping)
{
    return status->st_ino == mapping->inode &&
           (status->st_dev == mapping->device || major(status->st_dev) == 0);
}

/* Looks before it opens: opening a device or a pipe that the target has mapped may have effects. */
static int mapping_try(int folder_fd, const char *path, const struct mapping *same_as, int *ret_fd)
{
    struct stat status;
    if (fstatat(folder_fd, path, &status, 0) < 0)
        return errno == EACCES || errno == EPERM ? -EPERM : -ENOENT;
    if (!S_ISREG(status.st_mode))
        return -ENOENT;
    AUTO_CLOSE int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == EACCES || errno == EPERM ? -EPERM : -ENOENT;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        (same_as && !same_object(&status, same_as)))
        return -ENOENT;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int elf_file_open_mapping(int proc_fd, const struct mapping *mapping, struct elf_file **ret)
{
    if (mapping->inode == 0)
        return -ENOENT;
    char by_address[64], below_root[PATH_MAX + 8];
    snprintf(by_address, sizeof by_address, "map_files/%llx-%llx",
             (unsigned long long)mapping->start, (unsigned long long)mapping->end);
    snprintf(below_root, sizeof below_root, "root%s", mapping->path);
    const struct {
        int folder_fd;
        const char *path;
        const struct mapping *same_as;
    } ways[] = {
        { proc_fd, by_address, NULL },
        { proc_fd, below_root, mapping },
        { AT_FDCWD, mapping->path, mapping },
        { proc_fd, "exe", mapping },
    };

    bool denied = false;
    AUTO_CLOSE int fd = -1;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && fd < 0; i++)
        if (mapping_try(ways[i].folder_fd, ways[i].path, ways[i].same_as, &fd) == -EPERM)
            denied = true;
    if (fd < 0)
        return denied ? -EPERM : -ENOENT;
    return elf_file_open_fd(fd, ret);
}

Elf *elf_file_handle(const struct elf_file *file)
{
    return file->handle;
}

/* May that mapping be a piece of this segment? Read-only after relocation, it has lost the segment's PF_W. */
static bool segment_fits(const Elf64_Phdr *segment, const struct mapping *mapping)
{
    return segment->p_type == PT_LOAD && segment->p_filesz > 0 &&
           (!mapping->writable || segment->p_flags & PF_W) &&
           (!mapping->executable || segment->p_flags & PF_X);
}

/*
 * The page where one segment ends and the next begins is mapped twice from the same offset, so a segment that
 * begins in the mapping's first page goes before one that merely reaches it.
 */
int elf_file_bias(const struct elf_file *file, const struct mapping *mapping, remote_addr *ret_bias)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = mapping->file_offset;
    const Elf64_Phdr *found = NULL;
    for (size_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *segment = &file->segments[i];
        if (!segment_fits(segment, mapping))
            continue;
        uint64_t first_page = segment->p_offset & -page;
        if (first_page == offset) {
            found = segment;
            break;
        }
        if (!found && offset > first_page &&
            offset - first_page < segment->p_offset - first_page + segment->p_filesz)
            found = segment;
    }
    if (!found)
        return -ENOENT;
    *ret_bias = mapping->start - (found->p_vaddr + (offset - found->p_offset));
    return 0;
}

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
    return file_read(file, file->dynamic.symbols + (uint64_t)index * sizeof *ret, ret,
                     sizeof *ret) == 0 &&
           symbol_defined(ret) &&
           file_read(file, file->dynamic.strings + ret->st_name, found, size) == 0 &&
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
    if (file_read(file, at, &table, sizeof table) < 0 || !table.buckets || !table.bloom_words)
        return -EBADMSG;
    at += sizeof table;
    if (file_read(file, at + hash / 64 % table.bloom_words * 8, &bloom, sizeof bloom) < 0)
        return -EBADMSG;
    if (!(bloom >> hash % 64 & bloom >> (hash >> table.bloom_shift % 32) % 64 & 1))
        return -ENOENT;
    at += (uint64_t)table.bloom_words * 8;
    if (file_read(file, at + hash % table.buckets * 4, &index, sizeof index) < 0 ||
        index < table.first_symbol)
        return -ENOENT;
    at += (uint64_t)table.buckets * 4;
    for (int i = 0; i < MAX_CHAIN; i++, index++) {
        if (file_read(file, at + (uint64_t)(index - table.first_symbol) * 4, &stored, 4) < 0)
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

/* DT_HASH: counts of buckets and symbols, the buckets, then for each symbol the next of its chain. */
static int sysv_hash_find(const struct elf_file *file, const char *name, Elf64_Sym *ret)
{
    uint32_t counts[2], index;
    uint64_t at = file->dynamic.sysv_hash;
    if (file_read(file, at, counts, sizeof counts) < 0 || !counts[0])
        return -EBADMSG;
    at += sizeof counts;
    if (file_read(file, at + sysv_hash(name) % counts[0] * 4, &index, sizeof index) < 0)
        return -EBADMSG;
    at += (uint64_t)counts[0] * 4;
    for (int i = 0; i < MAX_CHAIN && index != STN_UNDEF; i++) {
        if (dynamic_symbol_is(file, index, name, ret))
            return 0;
        if (file_read(file, at + (uint64_t)index * 4, &index, sizeof index) < 0)
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
    return file_read(file, file->header.e_shoff + index * sizeof *ret, ret, sizeof *ret);
}

/* All section headers; the first one holds the counts that do not fit into the ELF header (elf(5)). */
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
    if (file_read(file, header->e_shoff, sections, count * sizeof *sections) < 0)
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
    if (file_read(file, section->sh_offset, strings, section->sh_size) < 0)
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
        if (file_read(file, table->sh_offset + first * sizeof block[0], block,
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
