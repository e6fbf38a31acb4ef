/* Native stacks of children that wait at the end of a chain of calls of this very program. */

#include "sampler/target/trace.h"
#include "symbols/elf_file.h"
#include "symbols/native_symbols.h"
#include "symbols/unwinder.h"

#include <sys/auxv.h>

#include "tests/unit/child.h"

#define NOINLINE __attribute__((noinline, used))
/* Keeps a call from becoming a jump. */
#define NO_TAIL_CALL() __asm__ volatile("")

enum { FRAMES = 128, STACK_BYTES = 64 << 10, RED_ZONE = 128, CODE_BYTES = 4096 };

struct walk {
    struct process *process;
    struct maps maps;
    struct stack_image image;
    struct native_unwind *unwind;
    struct native_symbols *symbols;
    struct native_frame frames[FRAMES];
    int count;
};

/* No part of a struct walk, which lies on a stack that a child inherits and we copy. */
static char copied_stack[STACK_BYTES];

/* ---- taking and looking ---- */

static void walk_open(struct walk *walk, const struct child *child)
{
    walk->process = open_child(child);
    struct remote *memory = &walk->process->memory;
    int proc_fd = walk->process->proc_fd;
    assert_int_equal(maps_read(proc_fd, &walk->maps), 0);
    assert_int_equal(unwinder_libunwind.open(memory, proc_fd, &walk->unwind), 0);
    assert_int_equal(unwinder_libunwind.set_maps(walk->unwind, &walk->maps), 0);
    assert_int_equal(native_symbols_open(memory, proc_fd, &walk->symbols), 0);
    assert_int_equal(native_symbols_set_maps(walk->symbols, &walk->maps), 0);
}

static void walk_close(struct walk *walk)
{
    unwinder_libunwind.close(walk->unwind);
    native_symbols_close(walk->symbols);
    maps_done(&walk->maps);
    process_close(walk->process);
}

#define AUTO_WALK CLEANUP(walk_close) struct walk

/* What holds of every stack, however it came about. */
static void assert_sound(const struct walk *walk)
{
    for (int i = 0; i + 1 < walk->count; i++) {
        assert_true(walk->frames[i].sp < walk->frames[i].cfa);
        assert_int_equal(walk->frames[i].cfa, walk->frames[i + 1].sp);
    }
    if (walk->count)
        assert_int_equal(walk->frames[walk->count - 1].cfa, walk->frames[walk->count - 1].sp);
}

static void walk_image(struct walk *walk)
{
    static struct native_frame again[FRAMES];
    walk->count = unwinder_libunwind.walk(walk->unwind, &walk->image, walk->frames, FRAMES);
    assert_in_range(walk->count, 1, FRAMES);
    assert_sound(walk);
    /* with what is remembered of the first walk */
    int count = unwinder_libunwind.walk(walk->unwind, &walk->image, again, FRAMES);
    assert_int_equal(count, walk->count);
    assert_memory_equal(again, walk->frames, (size_t)count * sizeof *again);
}

static void copy_stack(struct walk *walk, const struct child *child)
{
    struct pause pause;
    assert_int_equal(thread_pause(child->pid, &pause), 0);
    assert_int_equal(thread_read_registers(&pause, &walk->image.registers), 0);
    walk->image.stack_start = walk->image.registers.sp - RED_ZONE;
    walk->image.bytes = copied_stack;
    long got = remote_read_some(&walk->process->memory, walk->image.stack_start, copied_stack,
                                sizeof copied_stack);
    assert_true(thread_resume(&pause) >= 0);
    assert_true(got > RED_ZONE);
    walk->image.size = (size_t)got;
}

static void walk_child(struct walk *walk, const struct child *child)
{
    walk_open(walk, child);
    copy_stack(walk, child);
    walk_image(walk);
}

static struct native_symbol frame_symbol(struct walk *walk, int index)
{
    struct native_symbol symbol;
    assert_in_range(index, 0, walk->count - 1);
    assert_int_equal(native_symbols_find(walk->symbols, walk->frames[index].ip, &symbol), 0);
    return symbol;
}

/* The frame's place in the stack; fails when there is none of that name. */
static int frame_find(struct walk *walk, const char *name)
{
    for (int i = 0; i < walk->count; i++) {
        struct native_symbol symbol = frame_symbol(walk, i);
        if (symbol.name && strcmp(symbol.name, name) == 0)
            return i;
    }
    fail_msg("no frame of %s", name);
    return -1;
}

static void assert_names(struct walk *walk, int first, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        struct native_symbol symbol = frame_symbol(walk, first + i);
        assert_non_null(symbol.name);
        assert_string_equal(symbol.name, names[i]);
    }
}

/* ---- a plain chain ---- */

NOINLINE static void chain_third(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    NO_TAIL_CALL();
}

NOINLINE static void chain_second(struct child_side *side, unsigned depth)
{
    char room[300];
    __asm__ volatile("" : : "r"(room) : "memory");
    if (depth)
        chain_second(side, depth - 1);
    else
        chain_third(side);
    NO_TAIL_CALL();
}

NOINLINE static void chain_first(struct child_side *side)
{
    unsigned depth = 3;
    __asm__ volatile("" : "+r"(depth)); /* a known depth would be compiled into copies */
    chain_second(side, depth);
    NO_TAIL_CALL();
}

static void test_chain(void **state)
{
    static const char *const NAMES[] = { "chain_third",  "chain_second", "chain_second",
                                         "chain_second", "chain_second", "chain_first" };
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_first, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    int third = frame_find(&walk, "chain_third");
    assert_names(&walk, third, NAMES, sizeof NAMES / sizeof NAMES[0]);
    assert_true(frame_find(&walk, "main") > third);
    for (int i = 1; i <= 4; i++)
        assert_true(walk.frames[third + i].cfa - walk.frames[third + i].sp >= 300);
}

/* Twice from one image gives one answer, though the second walk is served from what was learnt. */
static void test_walk_again(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_first, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    struct native_frame before[FRAMES];
    int count = walk.count;
    memcpy(before, walk.frames, sizeof before);
    uint64_t calls = walk.process->read_calls;
    walk_image(&walk);
    assert_int_equal(walk.count, count);
    assert_memory_equal(walk.frames, before, (size_t)count * sizeof before[0]);
    assert_int_equal(walk.process->read_calls, calls);
}

static void test_copy_ends_early(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_first, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    struct native_frame whole[FRAMES];
    int count = walk.count;
    memcpy(whole, walk.frames, sizeof whole);
    for (int keep = 0; keep < count; keep++) {
        walk.image.size = whole[keep].sp - walk.image.stack_start;
        walk.count = unwinder_libunwind.walk(walk.unwind, &walk.image, walk.frames, FRAMES);
        assert_in_range(walk.count, 1, keep + 1);
        for (int i = 0; i < walk.count; i++)
            assert_int_equal(walk.frames[i].ip, whole[i].ip);
    }
}

static void test_capacity(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_first, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);
    remote_addr second = walk.frames[1].ip, third = walk.frames[2].ip;
    assert_int_equal(unwinder_libunwind.walk(walk.unwind, &walk.image, walk.frames, 0), 0);
    walk.frames[2].ip = 0;
    assert_int_equal(unwinder_libunwind.walk(walk.unwind, &walk.image, walk.frames, 2), 2);
    assert_int_equal(walk.frames[1].ip, second);
    assert_int_equal(walk.frames[2].ip, 0);
    assert_true(third);
}

/* ---- signals ---- */

/* Traps in its very first instruction: one byte less would be another function. */
void trap_at_entry(void);
#if defined(__x86_64__)
#define TRAP "ud2\nret\n"
#else
#define TRAP ".inst 0\nret\n"
#endif
__asm__(".text\n"
        ".globl trap_at_entry\n"
        ".type trap_at_entry, %function\n"
        "trap_at_entry:\n"
        ".cfi_startproc\n" TRAP ".cfi_endproc\n"
        ".size trap_at_entry, . - trap_at_entry\n");

static struct child_side *signal_side;

NOINLINE static void handle_trap(int number)
{
    (void)number;
    child_say_ready(signal_side);
    child_await_order(signal_side);
    NO_TAIL_CALL();
}

NOINLINE static void run_into_trap(struct child_side *side)
{
    signal_side = side;
    signal(SIGILL, handle_trap);
    trap_at_entry();
    NO_TAIL_CALL();
}

static void test_signal(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(run_into_trap, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    int handler = frame_find(&walk, "handle_trap"), trap = frame_find(&walk, "trap_at_entry");
    assert_int_equal(trap, handler + 2); /* between them the C library's trampoline */
    assert_int_equal(walk.frames[trap].ip, (remote_addr)trap_at_entry);
    assert_int_equal(frame_symbol(&walk, trap).offset, 0);
    assert_int_equal(frame_find(&walk, "run_into_trap"), trap + 1);
}

/* ---- code without unwind tables ---- */

#if defined(__x86_64__)
/* push rbp; mov rbp, rsp; call rsi; pop rbp; ret */
static const unsigned char WITH_FRAME_POINTER[] = {
    0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3
};
/* push rbp; xor ebp, ebp; call rsi; pop rbp; ret */
static const unsigned char WITHOUT_FRAME_POINTER[] = { 0x55, 0x31, 0xed, 0xff, 0xd6, 0x5d, 0xc3 };
#else
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x1; ldp x29, x30, [sp], 16; ret */
static const unsigned char WITH_FRAME_POINTER[] = {
    0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x20, 0x00,
    0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
};
/* stp x29, x30, [sp, -16]!; mov x29, xzr; blr x1; ldp x29, x30, [sp], 16; ret */
static const unsigned char WITHOUT_FRAME_POINTER[] = {
    0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x1f, 0xaa, 0x20, 0x00,
    0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
};
#endif

struct made_code {
    const unsigned char *bytes;
    size_t size;
};

NOINLINE static void called_by_made_code(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    NO_TAIL_CALL();
}

NOINLINE static void call_made_code(struct child_side *side)
{
    const struct made_code *made = side->argument;
    void *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, made->bytes, made->size);
    mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, (char *)code + made->size);
    void (*call)(struct child_side *, void (*)(struct child_side *));
    memcpy(&call, &code, sizeof call);
    call(side, called_by_made_code);
    NO_TAIL_CALL();
}

static void assert_nameless(struct walk *walk, int index)
{
    struct native_symbol symbol = frame_symbol(walk, index);
    assert_null(symbol.name);
    assert_null(symbol.module);
    const struct mapping *mapping = maps_find(&walk->maps, walk->frames[index].ip);
    assert_true(mapping->executable && mapping->inode == 0);
}

static void test_made_code_with_frame_pointer(void **state)
{
    struct made_code made = { WITH_FRAME_POINTER, sizeof WITH_FRAME_POINTER };
    (void)state;
    AUTO_CHILD struct child child = child_start(call_made_code, &made);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    int called = frame_find(&walk, "called_by_made_code");
    assert_nameless(&walk, called + 1);
    assert_int_equal(frame_find(&walk, "call_made_code"), called + 2);
    assert_true(frame_find(&walk, "main") > called + 2);
}

static void test_made_code_without_frame_pointer(void **state)
{
    struct made_code made = { WITHOUT_FRAME_POINTER, sizeof WITHOUT_FRAME_POINTER };
    (void)state;
    AUTO_CHILD struct child child = child_start(call_made_code, &made);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    int called = frame_find(&walk, "called_by_made_code");
    assert_nameless(&walk, called + 1);
    assert_int_equal(walk.count, called + 2);
}

/* ---- the vdso ---- */

#if defined(__x86_64__)
#define VDSO_NAME "__vdso_clock_gettime"
#else
#define VDSO_NAME "__kernel_clock_gettime"
#endif

static remote_addr find_vdso_function(void)
{
    remote_addr start = getauxval(AT_SYSINFO_EHDR);
    struct elf_file *file;
    uint64_t value, size;
    assert_int_equal(elf_file_open_bytes((void *)start, 2 * 4096, &file), 0);
    assert_int_equal(elf_file_find_exported(file, VDSO_NAME, &value, &size), 0);
    elf_file_close(file);
    return start + value;
}

/* A child is a copy of us, so our addresses are its own. Its image stands at the entry of a
 * function of the vdso, as called by the innermost of its real frames. */
static void test_vdso(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(chain_first, NULL);
    child_await_ready(&child);
    AUTO_WALK walk = { 0 };
    walk_child(&walk, &child);

    remote_addr innermost = walk.frames[0].ip, entry = find_vdso_function();
    struct registers *registers = &walk.image.registers;
    int count = walk.count;
#if defined(__x86_64__)
    uint64_t return_address = innermost + 1;
    registers->sp -= sizeof return_address;
    registers->all[7] = registers->sp;
    memcpy(copied_stack + (registers->sp - walk.image.stack_start), &return_address,
           sizeof return_address);
#else
    registers->all[30] = innermost + 1;
#endif
    registers->ip = entry;
    walk_image(&walk);
    assert_int_equal(walk.count, count + 1);
    assert_int_equal(walk.frames[1].ip, innermost);
    struct native_symbol symbol = frame_symbol(&walk, 0);
    assert_string_equal(symbol.module, "[vdso]");
    assert_string_equal(symbol.name, VDSO_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_walk_again),
        cmocka_unit_test(test_copy_ends_early),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_made_code_with_frame_pointer),
        cmocka_unit_test(test_made_code_without_frame_pointer),
        cmocka_unit_test(test_vdso),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
