/* What the sources behind elf_file.h share about an open file, and nobody else. */
#pragma once

#include "symbols/elf_file.h"

#include <elf.h>

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

/* 0, or -EBADMSG where the file ends before. */
int elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t size);
