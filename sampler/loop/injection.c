#define _GNU_SOURCE 1 /* MFD_CLOEXEC */

#include "sampler/loop/injection.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/injection_checks.h"
#include "sampler/loop/injection_parts.h"
#include "sampler/loop/safe_thread.h"
#include "sampler/target/proc_file.h"
#include "symbols/elf_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* linux/memfd.h, from 6.3 on */
#endif

enum {
    DISARM_PATIENCE_MS = 10000,
    REARM_PATIENCE_MS = 20, /* who profiles does nothing else meanwhile */
    GAP_NS = 200000000,     /* between two looks for what was loaded; longer when that fails */
    GAP_LONGEST_NS = 2000000000,
};

DEFINE_CLEANUP(struct elf_file *, elf_file_close)
DEFINE_CLEANUP(struct process *, process_close)

/* ---- bring ---- */

int injection_file_make(struct injection *injection, const char *name, unsigned flags,
                        int *ret_number, int *ret_fd, struct failure *why)
{
    char path[64];
    remote_addr at;
    int error = inject_give(injection->thread, name, strlen(name) + 1, &at);
    if (error)
        return injection_call_explain(injection, error, "writing to the stack", why);
    long number =
        injection_system_call(injection, SYS_memfd_create, at, flags, "memfd_create", why);
    if (number < 0)
        return (int)number;
    *ret_number = (int)number;
    snprintf(path, sizeof path, "fd/%d", *ret_number);
    *ret_fd = openat(injection->process->proc_fd, path, O_RDWR | O_CLOEXEC);
    return *ret_fd >= 0 ? 0
                        : injection_call_explain(injection, -errno, "sharing a memory file", why);
}

/* A kernel that does not know the flag makes files that can be run anyway. */
static int library_file_make(struct injection *injection, int *ret_fd, struct failure *why)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int *number = &injection->library_file;
    int error =
        injection_file_make(injection, SHIM_FILE_NAME, flags | MFD_EXEC, number, ret_fd, why);
    return error == -EINVAL
               ? injection_file_make(injection, SHIM_FILE_NAME, flags, number, ret_fd, why)
               : error;
}

static int library_fill(const char *library, int into)
{
    struct stat status;
    AUTO_CLOSE int from = open(library, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &status) < 0)
        return -errno;
    for (off_t left = status.st_size; left > 0;) {
        ssize_t sent = sendfile(into, from, NULL, (size_t)left);
        if (sent <= 0)
            return sent ? -errno : -EIO;
        left -= sent;
    }
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    return fcntl(into, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

static int library_bring(struct injection *injection, struct failure *why)
{
    AUTO_CLOSE int fd = -1;
    if (injection->library)
        return 0;
    int error = library_file_make(injection, &fd, why);
    if (error)
        return error;
    error = library_fill(injection->plan.library, fd);
    return error ? failure_set(why, error, "the shim could not be brought into process %d: %s",
                               injection->process->pid, strerror(-error))
                 : 0;
}

static int ring_bring(struct injection *injection, struct failure *why)
{
    int fd = -1;
    int error = injection_file_make(injection, RING_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING,
                                    &injection->ring_file, &fd, why);
    return error ? error : ring_reader_adopt(fd, &injection->plan.ring, &injection->ring, why);
}

/* What a profiler left open that was killed while it injected. */
static int leftovers_close(struct injection *injection, struct failure *why)
{
    char target[64];
    AUTO_CLOSEDIR DIR *files = NULL;
    int fd = openat(injection->process->proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; files && (entry = readdir(files));) {
        ssize_t length = readlinkat(fd, entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, "/memfd:" SHIM_FILE_NAME " ", sizeof "/memfd:" SHIM_FILE_NAME) != 0 &&
            strncmp(target, "/memfd:" RING_FILE_NAME " ", sizeof "/memfd:" RING_FILE_NAME) != 0 &&
            strncmp(target, "/memfd:" SCRIPT_FILE_NAME " ", sizeof "/memfd:" SCRIPT_FILE_NAME) != 0)
            continue;
        long result = injection_system_call(
            injection, SYS_close, (uint64_t)proc_parse_id(entry->d_name), 0, "close", why);
        if (result < 0)
            return (int)result;
    }
    return 0;
}

static int bring(struct injection *injection, struct failure *why)
{
    int error = leftovers_close(injection, why);
    if (!error)
        error = library_bring(injection, why);
    return error ? error : ring_bring(injection, why);
}

void injection_file_close(struct injection *injection, int *number)
{
    struct failure ignored;
    if (*number >= 0 && injection->thread)
        injection_system_call(injection, SYS_close, (uint64_t)*number, 0, "close", &ignored);
    *number = -1;
}

static void files_close(struct injection *injection)
{
    injection_file_close(injection, &injection->library_file);
    injection_file_close(injection, &injection->ring_file);
}

/* The thread was let go for a script, and no other could be had after it: one may be by now. */
static void files_undo(struct injection *injection)
{
    struct failure ignored;
    injection->plan.cancel_fd = -1; /* whoever wants us to stop wants this, too */
    if (!injection->thread && injection->library_file >= 0)
        injection_thread_take(injection, &ignored);
    injection_script_close(injection);
    files_close(injection);
}

/* ---- arm ---- */

/* Before anybody stands still for it. */
static int shim_read(struct injection *injection, struct failure *why)
{
    static const char *const names[SHIM_FUNCTIONS] = {
        [SHIM_ARM] = "scalene_shim_arm",
        [SHIM_REARM] = "scalene_shim_rearm",
        [SHIM_DISARM] = "scalene_shim_disarm",
    };
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    uint64_t size;
    AUTO_CLOSE int fd = open(injection->plan.library, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? -errno : elf_file_open_fd(fd, &file);
    for (int i = 0; i < SHIM_FUNCTIONS && !error; i++)
        error = elf_file_find_exported(file, names[i], &injection->shim[i], &size);
    return error ? failure_set(why, -ENOENT, "%s is not the shim", injection->plan.library) : 0;
}

/* The answer of one of the shim's own functions. */
static int shim_call(struct injection *injection, enum shim_function function, uint64_t argument,
                     struct failure *why)
{
    const uint64_t arguments[INJECT_ARGUMENTS] = { argument };
    uint64_t answer;
    int error = injection_function_call(injection, injection->library + injection->shim[function],
                                        "the shim", arguments, &answer, why);
    return error ? error : (int)answer;
}

static int arm_explain(const struct injection *injection, int error, struct failure *why)
{
    pid_t pid = injection->process->pid;
    switch (error) {
    case -ENOENT:
        return failure_set(why, -ENOTSUP,
                           "the Python in process %d shows none of the functions by which its "
                           "allocators are found",
                           pid);
    case -EAGAIN:
        return failure_set(why, -EBUSY, "the Python in process %d only begins, or ends", pid);
    case -EINPROGRESS:
        return failure_set(why, -EBUSY, "process %d is in the middle of loading a library", pid);
    case -EBUSY:
        return failure_set(why, -EBUSY,
                           "the shim in process %d is still being armed or disarmed for an earlier "
                           "profiler",
                           pid);
    default:
        return failure_set(why, error, "the shim could not be armed or disarmed in process %d: %s",
                           pid, strerror(-error));
    }
}

/* The same, said in a sentence. */
static int shim_ask(struct injection *injection, enum shim_function function, uint64_t argument,
                    struct failure *why)
{
    why->code = 0;
    int error = shim_call(injection, function, argument, why);
    if (error && !why->code)
        arm_explain(injection, error, why);
    return error ? why->code : 0;
}

static int arm(struct injection *injection, struct failure *why)
{
    if (injection->objects)
        loaded_list_look(injection->objects);
    return shim_ask(injection, SHIM_ARM, (uint64_t)injection->ring_file, why);
}

static void disarm(struct injection *injection)
{
    struct failure ignored;
    shim_call(injection, SHIM_DISARM, 0, &ignored);
}

/* ---- the stages ---- */

static int check(struct injection *injection, struct failure *why)
{
    int error = shim_read(injection, why);
    if (!error)
        error = injection_learn_maps(injection, why);
    if (!error)
        error = injection_check(injection->process, &injection->maps, why);
    if (error)
        return error;
    error = c_library_find(injection->process, &injection->maps, &injection->libc, why);
    if (!error)
        injection_find_asker(injection);
    if (!error)
        loaded_list_open(injection->process, &injection->maps, &injection->objects);
    return error;
}

static const struct stage {
    int (*go)(struct injection *injection, struct failure *why);
    void (*undo)(struct injection *injection); /* also where it went half of the way */
} stages[] = {
    { check, NULL },
    { injection_thread_take, injection_thread_let_go },
    { bring, files_undo },
    { injection_ask_python, NULL },
    { injection_thread_take_quiet, injection_thread_let_go },
    { injection_load, NULL },
    { arm, disarm },
};

enum { STAGES = sizeof stages / sizeof *stages };

static void injection_free(struct injection *injection)
{
    maps_done(&injection->maps);
    ring_reader_free(injection->ring);
    script_asker_close(injection->asker);
    loaded_list_close(injection->objects);
    free(injection);
}

DEFINE_CLEANUP(struct injection *, injection_free)

static int stages_go(struct injection *injection, struct failure *why)
{
    size_t at = 0;
    int error = 0;
    while (at < STAGES && !error)
        error = stages[at++].go(injection, why);
    while (error && at > 0)
        if (stages[--at].undo)
            stages[at].undo(injection);
    return error;
}

static struct injection *injection_new(struct process *process, const struct injection_plan *plan)
{
    struct injection *injection = calloc(1, sizeof *injection);
    if (!injection)
        return NULL;
    injection->process = process;
    injection->plan = *plan;
    injection->patience_ms = plan->patience_ms;
    injection->still.memory_fd = -1;
    snprintf(injection->library_path, sizeof injection->library_path, "%s", plan->library);
    injection->plan.library = injection->library_path;
    injection->library_file = injection->ring_file = injection->script_file = -1;
    return injection;
}

int injection_open(struct process *process, const struct injection_plan *plan,
                   struct injection **ret, struct failure *why)
{
    CLEANUP(injection_freep) struct injection *injection = injection_new(process, plan);
    if (!injection)
        return failure_set(why, -ENOMEM, "out of memory");
    int error = stages_go(injection, why);
    if (error)
        return error;
    injection_others_let_go(injection);
    files_close(injection);
    injection_thread_let_go(injection);
    script_asker_close(TAKE_PTR(injection->asker));
    *ret = TAKE_PTR(injection);
    return 0;
}

struct ring_reader *injection_ring(const struct injection *injection)
{
    return injection->ring;
}

void injection_tell_stood(const struct injection *injection, struct stood *sum)
{
    stood_add(sum, &injection->stood);
}

/* ---- meanwhile ---- */

static int rearm(struct injection *injection)
{
    struct failure ignored;
    injection->patience_ms = REARM_PATIENCE_MS;
    int error = injection_thread_take_quiet(injection, &ignored);
    if (!error)
        error = shim_ask(injection, SHIM_REARM, 0, &ignored);
    injection_thread_let_go(injection);
    return error;
}

void injection_follow(struct injection *injection, uint64_t now_ns)
{
    if (!injection->objects || injection->disarmed || now_ns < injection->look_ns)
        return;
    bool news = loaded_list_look(injection->objects);
    injection->is_behind |= news;
    injection->gap_ns = news || !injection->gap_ns ? GAP_NS : injection->gap_ns;
    if (injection->is_behind) {
        injection->is_behind = rearm(injection) != 0;
        injection->gap_ns = injection->is_behind ? 2 * injection->gap_ns : GAP_NS;
    }
    if (injection->gap_ns > GAP_LONGEST_NS)
        injection->gap_ns = GAP_LONGEST_NS;
    injection->look_ns = clock_ns(CLOCK_MONOTONIC) + injection->gap_ns;
}

bool injection_is_behind(const struct injection *injection)
{
    return injection->is_behind;
}

/* ---- the end ---- */

/* Only where our own ring is mapped: another may have come meanwhile. */
static bool has_ring(const struct injection *injection, ino_t ring)
{
    const struct mapping *mapping = NULL;
    while ((mapping = brought_next(&injection->maps, RING_FILE_NAME, mapping)))
        if (mapping->inode == ring)
            return injection->library != 0;
    return false;
}

static int shim_disarm(struct injection *injection, ino_t ring, struct failure *why)
{
    int error = injection_learn_maps(injection, why);
    if (error || !has_ring(injection, ring))
        return error;
    error = c_library_find(injection->process, &injection->maps, &injection->libc, why);
    if (!error)
        error = shim_read(injection, why);
    if (!error)
        error = injection_thread_take_quiet(injection, why);
    if (!error)
        error = shim_ask(injection, SHIM_DISARM, 0, why);
    injection_thread_let_go(injection);
    return error;
}

static int process_disarm(struct process *process, const struct injection_plan *plan, ino_t ring,
                          struct stood *stood, struct failure *why)
{
    CLEANUP(injection_freep) struct injection *injection = injection_new(process, plan);
    if (!injection)
        return failure_set(why, -ENOMEM, "out of memory");
    int error = shim_disarm(injection, ring, why);
    stood_add(stood, &injection->stood);
    if (!error || error == -ESRCH)
        return 0;
    return failure_prefix(
        why, "the shim in process %d stays armed, and records nothing: ", process->pid);
}

/* Those that it has forked have the shim from it. */
static int descendants_disarm(struct injection *injection, const struct injection_plan *plan,
                              ino_t ring, struct failure *why)
{
    AUTO_FREE pid_t *list = NULL;
    int count = process_list_descendants(injection->process->pid, &list), error = 0;
    for (int i = 0; i < count; i++) {
        CLEANUP(process_closep) struct process *process = NULL;
        struct failure ignored;
        if (process_open(list[i], &process, &ignored) == 0 &&
            process_disarm(process, plan, ring, &injection->stood, why))
            error = why->code;
    }
    return error;
}

int injection_disarm(struct injection *injection, struct failure *why)
{
    struct stat ring;
    if (injection->disarmed || fstat(ring_reader_fd(injection->ring), &ring) < 0)
        return 0;
    struct injection_plan plan = injection->plan;
    plan.cancel_fd = -1; /* whoever wants us to stop wants this, too */
    plan.patience_ms = DISARM_PATIENCE_MS;
    injection->disarmed = true;
    ring_reader_arm(injection->ring, false);
    int descendants_error = descendants_disarm(injection, &plan, ring.st_ino, why);
    int error = process_disarm(injection->process, &plan, ring.st_ino, &injection->stood, why);
    return error ? error : descendants_error;
}

void injection_close(struct injection *injection)
{
    struct failure ignored;
    if (!injection)
        return;
    injection_disarm(injection, &ignored);
    injection_free(injection);
}
