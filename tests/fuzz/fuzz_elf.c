/* Any bytes for an ELF object: every question about it ends, and reads nothing but the bytes. */
#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

static void ask_names(const struct elf_file *file)
{
    static const char *const names[] = { "_PyRuntime", "Py_Version", "x", "" };
    uint64_t value, size;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool exported = elf_file_find_exported(file, names[i], &value, &size) == 0;
        if (elf_file_find_symbol(file, names[i], &value, &size) < 0 && exported)
            abort();
        elf_file_find_section(file, names[i], &value, &size);
    }
    elf_file_find_section(file, ".PyRuntime", &value, &size);
}

static void ask_bias(const struct elf_file *file)
{
    remote_addr bias;
    for (unsigned i = 0; i < 64; i++) {
        const struct mapping mapping = {
            .start = 0x7f0000000000,
            .end = 0x7f0000001000,
            .file_offset = (i >> 2) * 0x1000,
            .writable = i & 1,
            .executable = i & 2,
        };
        elf_file_bias(file, &mapping, &bias);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    AUTO_FREE void *bytes = malloc(size ? size : 1); /* libelf wants to be able to write */
    if (!bytes)
        return 0;
    if (size)
        memcpy(bytes, data, size);
    if (elf_file_open_bytes(bytes, size, &file) < 0)
        return 0;
    ask_names(file);
    ask_bias(file);
    return 0;
}
