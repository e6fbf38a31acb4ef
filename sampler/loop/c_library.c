#include "sampler/loop/c_library.h"

#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"

#include <dlfcn.h>
#include <string.h>

enum { TEXT_MOST = 16 << 20, OWN_DLOPEN = (int)0x80000000u /* __RTLD_DLOPEN */ };

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

static const char *name_of(const struct mapping *mapping)
{
    const char *slash = strrchr(mapping->path, '/');
    return slash ? slash + 1 : mapping->path;
}

static bool name_begins(const struct mapping *mapping, const char *with)
{
    return strncmp(name_of(mapping), with, strlen(with)) == 0;
}

/* Until 2.33 the file behind libc.so.6 was libc-2.33.so, and ld-2.33.so the loader. */
bool is_c_library(const struct mapping *mapping)
{
    return name_begins(mapping, "libc.so.6") || name_begins(mapping, "libc-2.");
}

bool is_dl_library(const struct mapping *mapping)
{
    return name_begins(mapping, "libdl.so.2") || name_begins(mapping, "libdl-2.");
}

bool is_thread_library(const struct mapping *mapping)
{
    return name_begins(mapping, "libpthread.so.0") || name_begins(mapping, "libpthread-2.");
}

bool is_loader(const struct mapping *mapping)
{
    return name_begins(mapping, "ld-linux") || name_begins(mapping, "ld-2.") ||
           name_begins(mapping, "ld-musl") || name_begins(mapping, "ld.so");
}

typedef bool mapping_test(const struct mapping *mapping);

static const struct mapping *mapping_search(const struct maps *maps, mapping_test *test)
{
    for (size_t i = 0; i < maps->count; i++)
        if (test(&maps->list[i]))
            return &maps->list[i];
    return NULL;
}

/* The functions are found where several are looked for; one that is not there stays 0. */
static void functions_find(const struct process *process, const struct mapping *mapping,
                           const char *const *names, remote_addr *into)
{
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    remote_addr bias;
    uint64_t value, size;
    if (!mapping || elf_file_open_mapping(process->proc_fd, mapping, &file) ||
        elf_file_bias(file, mapping, &bias))
        return;
    for (size_t i = 0; i < C_FUNCTIONS; i++)
        if (names[i] && !into[i] && elf_file_find_exported(file, names[i], &value, &size) == 0)
            into[i] = bias + value;
}

/* glibc has dlopen of its own from 2.34 on; before that in libdl, and one for itself in libc. */
static void all_functions_find(const struct process *process, const struct maps *maps,
                               const struct mapping *libc, struct c_library *library)
{
    static const char *const usual[C_FUNCTIONS] = {
        [C_SYSCALL] = "syscall",
        [C_ERRNO] = "__errno_location",
        [C_DLOPEN] = "dlopen",
        [C_DLERROR] = "dlerror",
    };
    static const char *const old[C_FUNCTIONS] = { [C_DLOPEN] = "__libc_dlopen_mode" };
    functions_find(process, libc, usual, library->functions);
    functions_find(process, mapping_search(maps, is_dl_library), usual, library->functions);
    if (!library->functions[C_DLOPEN]) {
        functions_find(process, libc, old, library->functions);
        library->dlopen_flags = OWN_DLOPEN;
    }
}

static int text_search(struct process *process, const struct mapping *mapping,
                       struct inject_code *code)
{
    size_t size = (size_t)(mapping->end - mapping->start);
    AUTO_FREE uint8_t *text = size <= TEXT_MOST ? malloc(size) : NULL;
    if (!text)
        return -ENOMEM;
    long got = remote_read_some(&process->memory, mapping->start, text, size);
    if (got < 0)
        return (int)got;
    inject_code_find(text, (size_t)got, mapping->start, code);
    return 0;
}

static int code_search(struct process *process, const struct maps *maps, const struct mapping *libc,
                       struct inject_code *code)
{
    int error = 0;
    for (size_t i = 0; i < maps->count && !error; i++) {
        const struct mapping *mapping = &maps->list[i];
        if (mapping->executable && mapping->inode == libc->inode && mapping->device == libc->device)
            error = text_search(process, mapping, code);
    }
    return error;
}

static int none_explain(const struct process *process, const struct maps *maps, struct failure *why)
{
    const struct mapping *loader = mapping_search(maps, is_loader);
    return failure_set(why, -ENOTSUP,
                       loader ? "the C library of process %d is not glibc, and the shim needs that"
                              : "the program of process %d is linked statically: nothing can be "
                                "loaded into it",
                       process->pid);
}

int c_library_find(struct process *process, const struct maps *maps, struct c_library *ret,
                   struct failure *why)
{
    struct c_library library = { 0 };
    const struct mapping *libc = mapping_search(maps, is_c_library);
    if (!libc)
        return none_explain(process, maps, why);
    all_functions_find(process, maps, libc, &library);
    int error = code_search(process, maps, libc, &library.code);
    if (error)
        return failure_set(why, error, "the C library of process %d cannot be read", process->pid);
    bool known = library.code.restorer && library.code.keeper;
    for (size_t i = 0; i < C_DLERROR; i++)
        known = known && library.functions[i];
    if (!known)
        return failure_set(why, -ENOTSUP,
                           "the C library of process %d is not built as those that are known",
                           process->pid);
    *ret = library;
    return 0;
}
