/*
 * Opens mapped ELF objects and says where they lie. The file is read, not mapped: whoever owns it
 * may cut it short while we look, and that must be an error, not a SIGBUS.
 */
#include "symbols/elf_file.h"

#include "sampler/base/cleanup.h"
#include "symbols/elf_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { MAX_DYNAMIC_ENTRIES = 1024 }; /* real files have some thirty */

#define NATIVE_DATA (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

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

int elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t size)
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
    return elf_file_read(file, header->e_phoff, file->segments,
                         file->segment_count * sizeof *file->segments);
}

/* File offset of the byte that the loader would put at an ELF virtual address; 0: none. */
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

static void dynamic_note(const struct elf_file *file, const Elf64_Dyn *entry, void *data)
{
    struct dynamic_tables *tables = data;
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

/* A file without a readable PT_DYNAMIC simply exports nothing, and needs nothing. */
static void dynamic_walk(const struct elf_file *file,
                         void (*take)(const struct elf_file *, const Elf64_Dyn *, void *),
                         void *data)
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
        if (!count || elf_file_read(file, segment->p_offset + first * sizeof entries[0], entries,
                                    count * sizeof entries[0]) < 0)
            return;
        for (size_t i = 0; i < count; i++) {
            if (entries[i].d_tag == DT_NULL)
                return;
            take(file, &entries[i], data);
        }
    }
}

struct needed_search {
    const char *beginning;
    bool found;
};

static void needed_compare(const struct elf_file *file, const Elf64_Dyn *entry, void *data)
{
    struct needed_search *search = data;
    char name[64];
    size_t length = strlen(search->beginning);
    if (entry->d_tag == DT_NEEDED && file->dynamic.strings && length <= sizeof name &&
        elf_file_read(file, file->dynamic.strings + entry->d_un.d_val, name, length) == 0 &&
        memcmp(name, search->beginning, length) == 0)
        search->found = true;
}

bool elf_file_needs(const struct elf_file *file, const char *beginning)
{
    struct needed_search search = { .beginning = beginning };
    dynamic_walk(file, needed_compare, &search);
    return search.found;
}

static int file_finish_open(struct elf_file *file)
{
    if (!file->handle || elf_kind(file->handle) != ELF_K_ELF ||
        elf_file_read(file, 0, &file->header, sizeof file->header) < 0 ||
        !header_sound(&file->header))
        return -EBADMSG;
    int error = file_load_segments(file);
    if (!error)
        dynamic_walk(file, dynamic_note, &file->dynamic);
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
 * The mapping's own file? overlayfs and btrfs tell stat() an anonymous device (major 0) and the
 * maps the one below (before Linux 6.8), so for these the inode must do.
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

int elf_file_identify(const struct elf_file *file, struct file_identity *ret)
{
    struct stat status;
    if (file->fd < 0 || fstat(file->fd, &status) < 0)
        return -ENOENT;
    *ret = (struct file_identity){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size = (uint64_t)status.st_size,
        .modified_s = status.st_mtim.tv_sec,
        .modified_ns = status.st_mtim.tv_nsec,
        .changed_s = status.st_ctim.tv_sec,
        .changed_ns = status.st_ctim.tv_nsec,
    };
    return 0;
}

bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_s == b->modified_s && a->modified_ns == b->modified_ns &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

Elf *elf_file_handle(const struct elf_file *file)
{
    return file->handle;
}

/* May that mapping be a piece of this segment? Read-only after relocation, it lost the write. */
static bool segment_fits(const Elf64_Phdr *segment, const struct mapping *mapping)
{
    return segment->p_type == PT_LOAD && segment->p_filesz > 0 &&
           (!mapping->writable || segment->p_flags & PF_W) &&
           (!mapping->executable || segment->p_flags & PF_X);
}

/*
 * The page where one segment ends and the next begins is mapped twice from the same offset, so a
 * segment that begins in the mapping's first page goes before one that merely reaches it.
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
