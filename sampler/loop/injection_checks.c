#define _GNU_SOURCE 1 /* O_PATH, MFD_CLOEXEC */

#include "sampler/loop/injection_checks.h"

#include "sampler/base/cleanup.h"
#include "sampler/loop/injection.h"
#include "sampler/shim/ring_layout.h"
#include "sampler/target/inject.h"
#include "sampler/target/proc_file.h"
#include "sampler/target/seccomp.h"

#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { STATUS_SIZE = 8192, PAGE = 4096 };

static int status_check(const struct process *process, struct failure *why)
{
    char status[STATUS_SIZE];
    if (proc_read_file(process->proc_fd, "status", status, sizeof status) < 0)
        return failure_set(why, -ESRCH, "process %d has ended", process->pid);
    const char *state = proc_find_field(status, "State");
    const char *features = proc_find_field(status, "x86_Thread_features");
    if (state && (*state == 'T' || *state == 't'))
        return failure_set(why, -EBUSY,
                           "process %d is stopped: nothing can be injected until it goes on (kill "
                           "-CONT %d)",
                           process->pid, process->pid);
    if (features && !strncmp(features, "shstk", strlen("shstk")))
        return failure_set(why, -ENOTSUP,
                           "process %d has a shadow stack, on which no call can be staged",
                           process->pid);
    return 0;
}

/* What the loader and the shim ask of the kernel, as far as filters look at it. */
static const struct seccomp_call calls_made[] = {
    { "memfd_create", SYS_memfd_create, { 0, MFD_CLOEXEC | MFD_ALLOW_SEALING } },
    { "openat", SYS_openat, { (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC } },
    { "read", SYS_read, { 3 } },
    { "pread64", SYS_pread64, { 3 } },
    { "fstat", SYS_fstat, { 3 } },
    { "newfstatat", SYS_newfstatat, { 3 } },
    { "mmap", SYS_mmap, { 0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, 3 } },
    { "mmap", SYS_mmap, { 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 3 } },
    { "mprotect", SYS_mprotect, { 0, PAGE, PROT_READ | PROT_WRITE } },
    { "munmap", SYS_munmap, { 0 } },
    { "madvise", SYS_madvise, { 0, PAGE, MADV_DONTNEED } },
    { "futex", SYS_futex, { 0, FUTEX_WAKE_OP_PRIVATE } },
    { "rt_sigprocmask", SYS_rt_sigprocmask, { (uint64_t)-1, 0, 0, 8 } },
    { "sigaltstack", SYS_sigaltstack, { 0 } },
    { "getpid", SYS_getpid, { 0 } },
    { "gettid", SYS_gettid, { 0 } },
    { "close", SYS_close, { 3 } },
    { "rt_sigreturn", SYS_rt_sigreturn, { 0 } },
};

int injection_check_thread(const struct process *process, const struct pause *pause,
                           struct failure *why)
{
    const struct seccomp_call *refused = NULL;
    char path[64], status[STATUS_SIZE];
    snprintf(path, sizeof path, "task/%d/status", pause->tid);
    if (proc_read_file(process->proc_fd, path, status, sizeof status) < 0)
        return failure_set(why, -ESRCH, "process %d has ended", process->pid);
    if (proc_find_number(status, "Seccomp", 10) == SECCOMP_MODE_DISABLED)
        return 0;
    int error = seccomp_check(pause, calls_made, sizeof calls_made / sizeof *calls_made, &refused);
    if (error == -EACCES)
        return failure_set(why, -ENOTSUP,
                           "process %d runs under a seccomp filter that does not let it call %s, "
                           "which an injection needs: start it with scalene-attach --memory -- "
                           "COMMAND",
                           process->pid, refused->name);
    if (error)
        return failure_set(why, -ENOTSUP,
                           "process %d runs under a seccomp filter, which may end it for the calls "
                           "that an injection makes, and only root can look into that: run this "
                           "with sudo",
                           process->pid);
    return 0;
}

/* The loader opens the memory file by its name there. */
static bool has_proc(const struct process *process)
{
    struct statfs mount;
    AUTO_CLOSE int fd = openat(process->proc_fd, "root/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fstatfs(fd, &mount) == 0 && mount.f_type == PROC_SUPER_MAGIC;
}

static bool is_preloaded(const struct maps *maps)
{
    for (size_t i = 0; i < maps->count; i++) {
        const char *slash = strrchr(maps->list[i].path, '/');
        if (slash && strcmp(slash, "/" SHIM_FILE_NAME) == 0)
            return true;
    }
    return false;
}

static bool reader_lives(struct process *process, remote_addr ring, struct ring_head *ret_head)
{
    struct proc_stat reader;
    return remote_read(&process->memory, ring, ret_head, offsetof(struct ring_head, pythons)) ==
               0 &&
           proc_read_pid_stat((pid_t)ret_head->reader_pid, &reader) == 0 &&
           reader.start_time == ret_head->reader_start && reader.state != 'Z';
}

/* Whose rings are mapped there? */
static int readers_check(struct process *process, const struct maps *maps, struct failure *why)
{
    struct ring_head head;
    const struct mapping *ring = NULL;
    while ((ring = brought_next(maps, RING_FILE_NAME, ring)))
        if (reader_lives(process, ring->start, &head))
            return failure_set(why, -EBUSY,
                               "process %d has the shim of another profiler, process %u: one at a "
                               "time",
                               process->pid, head.reader_pid);
    return 0;
}

int injection_check(struct process *process, const struct maps *maps, struct failure *why)
{
    if (!inject_is_known())
        return failure_set(why, -ENOTSUP, "nothing can be injected on this kind of machine yet");
    int error = status_check(process, why);
    if (error)
        return error;
    if (!has_proc(process))
        return failure_set(why, -ENOTSUP,
                           "process %d sees no /proc, through which the shim is brought to it",
                           process->pid);
    if (is_preloaded(maps))
        return failure_set(why, -ENOTSUP,
                           "process %d was launched with the shim of another scalene-attach",
                           process->pid);
    return readers_check(process, maps, why);
}

const struct mapping *brought_next(const struct maps *maps, const char *name,
                                   const struct mapping *after)
{
    static const char memory_file[] = "/memfd:";
    for (size_t i = after ? (size_t)(after - maps->list) + 1 : 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->list[i];
        if (mapping->file_offset == 0 &&
            strncmp(mapping->path, memory_file, sizeof memory_file - 1) == 0 &&
            strcmp(mapping->path + sizeof memory_file - 1, name) == 0)
            return mapping;
    }
    return NULL;
}

/* How it begins: its parts, and the number of its build. The shim itself changes what follows. */
static size_t head_size(const uint8_t *page)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)page;
    const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(head + 1);
    size_t size = sizeof *head + head->e_phnum * sizeof *parts;
    if (size > PAGE)
        return PAGE;
    for (size_t i = 0; i < head->e_phnum; i++) {
        size_t end = parts[i].p_offset + parts[i].p_filesz;
        if (parts[i].p_type == PT_NOTE && end > size && end <= PAGE)
            size = end;
    }
    return size;
}

bool brought_is(struct process *process, remote_addr at, const char *path)
{
    _Alignas(ElfW(Ehdr)) uint8_t there[PAGE], here[PAGE];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, here, sizeof here, 0) == sizeof here &&
           remote_read(&process->memory, at, there, sizeof there) == 0 &&
           memcmp(here, there, head_size(here)) == 0;
}
