/*
 * An ELF object that a process has mapped, opened by the way that is right in every namespace, and
 * the few questions we ask it. Hostile files are answered with errors. Needs no section headers.
 */
#pragma once

#include "symbols/maps.h"

#include <libelf.h>

struct elf_file;

/*
 * Opens the object behind a mapping: /proc/PID/map_files/START-END, else /proc/PID/root + path,
 * else the path as it stands (chroot in our own mount namespace), else /proc/PID/exe; the last
 * three only when device and inode are the mapping's. 0, -ENOENT, -EPERM, -EBADMSG (no ELF),
 * -ENOMEM.
 */
int elf_file_open_mapping(int proc_fd, const struct mapping *mapping, struct elf_file **ret);

/* From a descriptor (duplicated), or from bytes that outlive it (tests, fuzzers, vdso). */
int elf_file_open_fd(int fd, struct elf_file **ret);
int elf_file_open_bytes(void *bytes, size_t size, struct elf_file **ret);
void elf_file_close(struct elf_file *file);

/* The same for two that are one file which nobody has written to meanwhile. -ENOENT: in no file. */
struct file_identity {
    uint64_t device, inode, size;
    int64_t modified_s, modified_ns, changed_s, changed_ns;
};
int elf_file_identify(const struct elf_file *file, struct file_identity *ret);
bool file_identity_same(const struct file_identity *a, const struct file_identity *b);

/* libelf's handle, borrowed. */
Elf *elf_file_handle(const struct elf_file *file);

/* What has to be added to an ELF virtual address of this object to get the address in the process,
 * given one of the object's mappings there. */
int elf_file_bias(const struct elf_file *file, const struct mapping *mapping,
                  remote_addr *ret_bias);

/* Looks in .dynsym, then .symtab; without section headers through PT_DYNAMIC. ELF virtual address.
 * -ENOENT. */
int elf_file_find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_value,
                         uint64_t *ret_size);

/* The same in what the object exports alone: a handful of small reads, whatever its size. */
int elf_file_find_exported(const struct elf_file *file, const char *name, uint64_t *ret_value,
                           uint64_t *ret_size);

/* Does it ask for a library (DT_NEEDED) whose name begins so? */
bool elf_file_needs(const struct elf_file *file, const char *beginning);

/* -ENOENT when there is none (or no section headers). */
int elf_file_find_section(const struct elf_file *file, const char *name, uint64_t *ret_address,
                          uint64_t *ret_size);
