#define _GNU_SOURCE 1 /* prlimit */

#include "sampler/loop/thread_place.h"

#include "sampler/base/cleanup.h"
#include "sampler/loop/c_library.h"
#include "sampler/target/arch.h"
#include "sampler/target/inject.h"
#include "symbols/elf_file.h"
#include "symbols/native_symbols.h"
#include "symbols/unwinder.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    STACK_COPY = 256 << 10,
    STACK_MOST = 8 << 20, /* that is looked through for the loader */
    FRAMES = 8192,
    FRAMES_OF_LIBRARY = 24, /* an allocator has fewer */
    OBJECTS = 64,
    RANGES = 32,
    BELOW_STACK = 24 << 10, /* that must be there already: the signal frame */
    CALL_ARGUMENT = 4,      /* DWARF's number of the second argument's register: rsi */
    RED_ZONE = 128,
    FOLLOWED = 1 << 13,
};

enum object_kind { KIND_UNKNOWN, KIND_PLAIN, KIND_LOADER, KIND_C_LIBRARY, KIND_ALLOCATOR };

struct object_known {
    dev_t device;
    ino_t inode;
    enum object_kind kind;
};

struct text_range {
    remote_addr start, end;
};

struct thread_places {
    struct process *process;
    struct maps maps;      /* as they are now */
    struct maps code_maps; /* as they were when code was mapped last: others borrow them */
    struct native_unwind *unwind;
    struct native_symbols *symbols;
    struct object_known known[OBJECTS];
    size_t known_count;
    ino_t program;
    struct text_range loader[RANGES]; /* whoever returns there has not left it */
    size_t loader_count;
    uint64_t followed[FOLLOWED]; /* sums of stacks that were followed and do not lead there */
    uint8_t *stack;
    size_t stack_room;
    struct native_frame frames[FRAMES];
};

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

/* ---- what the frames lie in ---- */

static enum object_kind kind_look(const struct thread_places *places, const struct mapping *mapping)
{
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    uint64_t value, size;
    if (is_loader(mapping))
        return KIND_LOADER;
    if (is_c_library(mapping))
        return KIND_C_LIBRARY;
    if (!mapping->inode || elf_file_open_mapping(places->process->proc_fd, mapping, &file))
        return KIND_PLAIN;
    return elf_file_find_exported(file, "malloc", &value, &size) ? KIND_PLAIN : KIND_ALLOCATOR;
}

static enum object_kind kind_of(struct thread_places *places, const struct mapping *mapping)
{
    for (size_t i = 0; i < places->known_count; i++)
        if (places->known[i].inode == mapping->inode && places->known[i].device == mapping->device)
            return places->known[i].kind;
    enum object_kind kind = kind_look(places, mapping);
    if (places->known_count < OBJECTS)
        places->known[places->known_count++] =
            (struct object_known){ mapping->device, mapping->inode, kind };
    return kind;
}

static bool is_program(const struct thread_places *places, const struct mapping *mapping)
{
    const char *slash = strrchr(mapping->path, '/');
    return mapping->inode == places->program ||
           strncmp(slash ? slash + 1 : mapping->path, "libpython", strlen("libpython")) == 0;
}

/*
 * Functions of libc that hold its locks while they run, or that run between fork's preparations.
 * What libc keeps to itself has no name, but who called it has.
 */
static bool name_locks(const char *name)
{
    static const char *const parts[] = {
        "alloc",  "free",  "memalign", "mallinfo", "mallopt", "malloc", "dl_",
        "dlopen", "dlsym", "dlclose",  "dlinfo",   "dladdr",  "fork",   "clone",
    };
    for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* ---- one thread ---- */

/*
 * A futex that is waited for by comparing bits is a semaphore's or a condition's; locks of the
 * allocator and the loader wait plainly (glibc: lll_lock, futex_abstimed_wait).
 */
static bool is_condition(const struct registers *registers, uint64_t call)
{
    return registers->in_call && call < ARCH_SYSCALLS &&
           native_arch.wait_classes[call] == WAIT_FUTEX &&
           (registers->all[CALL_ARGUMENT] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

static bool call_is_harmless(const struct registers *registers, uint64_t call)
{
    if (call >= ARCH_SYSCALLS || native_arch.wait_classes[call] == WAIT_OTHER)
        return false;
    return native_arch.wait_classes[call] != WAIT_FUTEX || is_condition(registers, call);
}

/* The main thread's stack grows by itself, up to a limit. */
static bool stack_has_room(const struct thread_places *places, remote_addr sp)
{
    const struct mapping *stack = maps_find(&places->maps, sp);
    struct rlimit limit;
    if (!stack || !stack->writable || sp - stack->start < BELOW_STACK)
        return false;
    if (sp - stack->start >= INJECT_STACK)
        return true;
    return strcmp(stack->path, "[stack]") == 0 &&
           prlimit(places->process->pid, RLIMIT_STACK, NULL, &limit) == 0 &&
           limit.rlim_cur > stack->end - sp + INJECT_STACK;
}

static const char *frame_obstacle(struct thread_places *places, const struct native_frame *frame,
                                  bool innermost_and_running)
{
    struct native_symbol symbol = { 0 };
    const struct mapping *mapping = maps_find(&places->maps, frame->ip);
    if (!mapping || !mapping->inode)
        return "threads run code that belongs to no file";
    enum object_kind kind = kind_of(places, mapping);
    if (kind == KIND_LOADER)
        return "threads are in the dynamic loader";
    if (innermost_and_running)
        return kind == KIND_PLAIN ? NULL : "threads run in the C library or an allocator";
    if (kind != KIND_C_LIBRARY)
        return NULL;
    native_symbols_find(places->symbols, frame->ip, &symbol);
    return name_locks(symbol.mangled) ? "threads are in the allocator or the loader" : NULL;
}

/* ---- stacks ---- */

/* So much of it as is there and wanted: how much, from its red zone on. */
static size_t stack_read(struct thread_places *places, remote_addr sp, size_t most)
{
    const struct mapping *mapping = maps_find(&places->maps, sp);
    size_t size = mapping ? (size_t)(mapping->end - sp) + RED_ZONE : 0;
    size = size < most ? size : most;
    if (size > places->stack_room) {
        uint8_t *more = realloc(places->stack, size);
        if (!more)
            return 0;
        places->stack = more;
        places->stack_room = size;
    }
    long got = remote_read_some(&places->process->memory, sp - RED_ZONE, places->stack, size);
    return got > RED_ZONE ? (size_t)got : 0;
}

static int stack_walk(struct thread_places *places, const struct registers *registers, size_t size,
                      size_t most)
{
    const struct stack_image image = {
        .registers = *registers,
        .stack_start = registers->sp - RED_ZONE,
        .bytes = places->stack,
        .size = size,
    };
    return size ? unwinder_libunwind.walk(places->unwind, &image, places->frames, most) : 0;
}

/* From the innermost frame on, until Python's own code is reached. */
static const char *python_obstacle(struct thread_places *places, const struct registers *registers)
{
    size_t size = stack_read(places, registers->sp, STACK_COPY);
    int count = stack_walk(places, registers, size, FRAMES);
    if (!size)
        return "stacks cannot be read";
    for (int i = 0; i < count; i++) {
        const char *obstacle =
            frame_obstacle(places, &places->frames[i], i == 0 && !registers->in_call);
        if (obstacle)
            return obstacle;
        if (is_program(places, maps_find(&places->maps, places->frames[i].ip)))
            return NULL;
    }
    return "stacks of threads cannot be followed to Python";
}

/* From the innermost frame on, until it has left the libraries that have locks. Threads of an
 * allocator's own wait for work there, and hold nothing then. */
static bool library_holds(struct thread_places *places, const struct registers *registers,
                          uint64_t call)
{
    size_t size = stack_read(places, registers->sp, STACK_COPY);
    int count = stack_walk(places, registers, size, FRAMES_OF_LIBRARY);
    for (int i = 0; i < count; i++) {
        const struct native_frame *frame = &places->frames[i];
        const struct mapping *mapping = maps_find(&places->maps, frame->ip);
        enum object_kind kind = mapping && mapping->inode ? kind_of(places, mapping) : KIND_PLAIN;
        if (kind == KIND_PLAIN || (kind == KIND_ALLOCATOR && is_program(places, mapping)))
            return false;
        if (kind == KIND_ALLOCATOR)
            return !is_condition(registers, call);
        if (frame_obstacle(places, frame, i == 0 && !registers->in_call))
            return true;
    }
    return false;
}

/* ---- the loader ---- */

static bool is_in_loader(const struct thread_places *places, remote_addr address)
{
    for (size_t i = 0; i < places->loader_count; i++)
        if (address >= places->loader[i].start && address < places->loader[i].end)
            return true;
    return false;
}

/* The last word of the stack that could be an address to return to in the loader; 0: none. */
static remote_addr loader_trace_find(const struct thread_places *places, remote_addr sp,
                                     size_t size)
{
    remote_addr word;
    for (size_t at = size - size % sizeof word; at >= RED_ZONE + sizeof word;) {
        at -= sizeof word;
        memcpy(&word, places->stack + at, sizeof word);
        if (is_in_loader(places, word))
            return sp - RED_ZONE + at;
    }
    return 0;
}

static bool is_in_c_library(const struct thread_places *places, const struct native_frame *frame)
{
    const struct mapping *mapping = maps_find(&places->maps, frame->ip);
    return mapping && (is_c_library(mapping) || is_thread_library(mapping));
}

/* Programs begin at their own _start, and threads in the C library, which calls itself there: a
 * walk that comes to that has seen the whole stack. */
static bool is_beginning(struct thread_places *places, int count)
{
    const struct native_frame *last = &places->frames[count - 1];
    struct native_symbol symbol = { 0 };
    if (count > 1 && is_in_c_library(places, last) && is_in_c_library(places, last - 1))
        return true;
    native_symbols_find(places->symbols, last->ip, &symbol);
    return symbol.mangled && strcmp(symbol.mangled, "_start") == 0;
}

/* Of a thread that waits it is the same when it is looked at again, and following is the dear part
 * of that. */
static uint64_t stack_sum(const struct thread_places *places, const struct registers *registers,
                          size_t size)
{
    uint64_t sum = 0xCBF29CE484222325u ^ registers->ip, word;
    sum = (sum ^ registers->sp) * 0x100000001B3u;
    for (size_t at = 0; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, places->stack + at, sizeof word);
        sum = (sum ^ word) * 0x100000001B3u;
        sum ^= sum >> 32;
    }
    return sum;
}

/*
 * Anywhere on its stack, as the loader calls others: who goes through the list of objects is called
 * back for each, and may wait there for the GIL. No word that leads to the loader: it is not there.
 * Words stay when functions have returned, so where there are any the stack is followed.
 */
static const char *loader_obstacle(struct thread_places *places, const struct registers *registers)
{
    static const char in_loader[] = "threads are in the dynamic loader";
    if (is_in_loader(places, registers->ip))
        return in_loader;
    size_t size = stack_read(places, registers->sp, STACK_MOST);
    remote_addr trace = size ? loader_trace_find(places, registers->sp, size) : 0;
    if (size && size < STACK_MOST && !trace)
        return NULL;
    uint64_t sum = stack_sum(places, registers, size);
    uint64_t *followed = &places->followed[sum % FOLLOWED];
    if (size && *followed == sum)
        return NULL;
    int count = stack_walk(places, registers, size, FRAMES);
    for (int i = 0; i < count; i++)
        if (is_in_loader(places, places->frames[i].ip))
            return in_loader;
    if (count > 0 &&
        ((trace && trace < places->frames[count - 1].sp) || is_beginning(places, count))) {
        *followed = sum;
        return NULL;
    }
    return "stacks of threads cannot be followed to their beginning";
}

static void range_add(struct thread_places *places, remote_addr start, remote_addr end)
{
    if (places->loader_count < RANGES)
        places->loader[places->loader_count++] = (struct text_range){ start, end };
}

/* What of the C library holds the loader's locks, before it calls the loader or without that. */
static void functions_learn(struct thread_places *places, const struct mapping *mapping)
{
    static const char *const names[] = {
        "dlopen",
        "dlmopen",
        "dlclose",
        "dlsym",
        "dlvsym",
        "dladdr",
        "dladdr1",
        "dlinfo",
        "dl_iterate_phdr",
        "_dl_addr",
        "__libc_dlopen_mode",
        "__libc_dlsym",
        "__libc_dlclose",
    };
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    remote_addr bias;
    uint64_t value, size;
    if (elf_file_open_mapping(places->process->proc_fd, mapping, &file) ||
        elf_file_bias(file, mapping, &bias))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (elf_file_find_exported(file, names[i], &value, &size) == 0)
            range_add(places, bias + value, bias + value + size);
}

static void loader_learn(struct thread_places *places)
{
    places->loader_count = 0;
    for (size_t i = 0; i < places->maps.count; i++) {
        const struct mapping *mapping = &places->maps.list[i];
        if (!mapping->executable)
            continue;
        if (is_loader(mapping) || is_dl_library(mapping))
            range_add(places, mapping->start, mapping->end);
        else if (is_c_library(mapping))
            functions_learn(places, mapping);
    }
}

/* ---- what is asked ---- */

const char *thread_places_refuse_call(struct thread_places *places, const struct pause *pause)
{
    struct registers registers;
    uint64_t call;
    if (pause->signal)
        return "a signal is on its way";
    if (thread_read_registers(pause, &registers) || thread_read_call(pause, &call))
        return "registers cannot be read";
    if (registers.in_call && !call_is_harmless(&registers, call))
        return "threads are in system calls that may hold locks of the C library";
    if (!stack_has_room(places, registers.sp))
        return "there is no room on the stacks";
    const char *obstacle = python_obstacle(places, &registers);
    return obstacle ? obstacle : loader_obstacle(places, &registers);
}

const char *thread_places_refuse_rest(struct thread_places *places, const struct pause *pause)
{
    struct registers registers;
    if (thread_read_registers(pause, &registers))
        return "registers cannot be read";
    return loader_obstacle(places, &registers);
}

bool thread_places_allocates(struct thread_places *places, const struct pause *pause)
{
    struct registers registers;
    uint64_t call;
    return thread_read_registers(pause, &registers) || thread_read_call(pause, &call) ||
           library_holds(places, &registers, call);
}

bool thread_place_is_call(const struct pause *pause)
{
    struct registers registers;
    return thread_read_registers(pause, &registers) == 0 && registers.in_call;
}

static const struct mapping *code_next(const struct maps *maps, size_t *index)
{
    while (*index < maps->count)
        if (maps->list[(*index)++].executable)
            return &maps->list[*index - 1];
    return NULL;
}

static bool code_is_same(const struct maps *a, const struct maps *b)
{
    const struct mapping *one, *other;
    size_t i = 0, j = 0;
    do {
        one = code_next(a, &i);
        other = code_next(b, &j);
        if (one && other &&
            (one->start != other->start || one->end != other->end || one->inode != other->inode))
            return false;
    } while (one && other);
    return one == other;
}

static int code_learn(struct thread_places *places)
{
    maps_done(&places->code_maps);
    int error = maps_read(places->process->proc_fd, &places->code_maps);
    if (!error)
        error = unwinder_libunwind.set_maps(places->unwind, &places->code_maps);
    if (!error)
        error = native_symbols_set_maps(places->symbols, &places->code_maps);
    if (!error)
        loader_learn(places);
    memset(places->followed, 0, sizeof places->followed);
    return error;
}

int thread_places_learn(struct thread_places *places)
{
    maps_done(&places->maps);
    int error = maps_read(places->process->proc_fd, &places->maps);
    if (!error && !code_is_same(&places->maps, &places->code_maps))
        error = code_learn(places);
    return error;
}

void thread_places_close(struct thread_places *places)
{
    if (!places)
        return;
    if (places->unwind)
        unwinder_libunwind.close(places->unwind);
    if (places->symbols)
        native_symbols_close(places->symbols);
    maps_done(&places->maps);
    maps_done(&places->code_maps);
    free(places->stack);
    free(places);
}

DEFINE_CLEANUP(struct thread_places *, thread_places_close)

int thread_places_open(struct process *process, struct thread_places **ret)
{
    struct stat status;
    CLEANUP(thread_places_closep) struct thread_places *places = calloc(1, sizeof *places);
    if (!places)
        return -ENOMEM;
    places->process = process;
    places->program = fstatat(process->proc_fd, "exe", &status, 0) ? 0 : status.st_ino;
    int error = unwinder_libunwind.open(&process->memory, process->proc_fd, &places->unwind);
    if (!error)
        error = native_symbols_open(&process->memory, process->proc_fd, &places->symbols);
    if (error)
        return error;
    native_symbols_want_lines(places->symbols, false);
    *ret = TAKE_PTR(places);
    return 0;
}
