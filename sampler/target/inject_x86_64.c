/*
 * x86-64: the frame is the one of Linux's arch/x86/kernel/signal_64.c (struct rt_sigframe), with
 * the vector registers as arch/x86/kernel/fpu/signal.c wants them.
 */
#ifdef __x86_64__

#define _GNU_SOURCE 1 /* REG_RIP */

#include "sampler/target/inject_arch.h"

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    RED_ZONE = 128,
    SYSCALL_SIZE = 2,
    RESTORER_SIZE = 9,
    VECTOR_ALIGNMENT = 64,
    LEGACY_SIZE = 512,
    SOFTWARE_AT = 464, /* in the legacy part: what the kernel keeps for itself */
    HEADER_END = LEGACY_SIZE + 64,
    CONTROL_AT = 0, /* FCW */
    MXCSR_AT = 24,
    CONTROL_USUAL = 0x37f,
    MXCSR_USUAL = 0x1f80,
    FLAGS_UNUSUAL = 0x500, /* direction, single step */
    LEAF_VECTORS = 0xd,    /* of CPUID: where each component stands */
    STACK_UNKNOWN = 0x7fffffff,
    CONTEXT_FLAGS = 1 | 2 | 4, /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
};

/* errno values that never leave the kernel, save to a tracer (include/linux/errno.h) */
enum { RESTART_SIGNAL = 512, RESTART_ALWAYS = 513, RESTART_NO_HANDLER = 514, RESTART_BLOCK = 516 };

struct kernel_context {
    uint64_t flags, link;
    struct {
        uint64_t address;
        int32_t flags;
        uint64_t size;
    } stack;
    struct sigcontext_64 registers;
    uint64_t signal_mask;
};

struct kernel_frame {
    uint64_t return_address;
    struct kernel_context context;
};

_Static_assert(offsetof(struct kernel_context, registers) == 40, "as the kernel has it");
_Static_assert(offsetof(struct kernel_context, signal_mask) == 296, "as the kernel has it");

/* ---- code to go through ---- */

static const uint8_t restorer_bytes[RESTORER_SIZE] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 5 };

/*
 * At the end of a function: rax is stored where rbx points, then words are taken off the stack:
 * some at once, others into registers whose state lies in the frame anyway. Returns the length.
 */
static size_t epilogue_parse(const uint8_t *at, const uint8_t *end, uint16_t *ret_words)
{
    const uint8_t *start = at;
    *ret_words = 0;
    if (end - at > 2 && at[0] == 0x31 && at[1] == 0xc0) /* xor %eax,%eax */
        at += 2;
    if (end - at > 4 && at[0] == 0x48 && at[1] == 0x83 && at[2] == 0xc4 && at[3] < 0x80 &&
        at[3] % 8 == 0) { /* add $n,%rsp */
        *ret_words = at[3] / 8;
        at += 4;
    }
    for (; end - at > 2; ++*ret_words) {
        if (at[0] == 0x41 && at[1] >= 0x5c && at[1] <= 0x5f) /* pop %r12 … %r15 */
            at += 2;
        else if (at[0] == 0x5b || at[0] == 0x5d) /* pop %rbx, %rbp */
            at++;
        else
            break;
    }
    return at < end && *at == 0xc3 ? (size_t)(at + 1 - start) : 0;
}

/* mov %rax,(%rbx) or mov %rax,n(%rbx), then such an end; what it takes off leaves the stack aligned
 * as a caller's. */
static bool keeper_parse(const uint8_t *at, const uint8_t *end, struct inject_code *code)
{
    static const uint8_t store[] = { 0x48, 0x89 };
    uint16_t words;
    if (end - at < 5 || memcmp(at, store, sizeof store) != 0 || (at[2] != 0x03 && at[2] != 0x43))
        return false;
    bool offset = at[2] == 0x43;
    if (!epilogue_parse(at + 3 + offset, end, &words) || words % 2 == 0)
        return false;
    code->keeper_offset = offset ? (int8_t)at[3] : 0;
    code->keeper_words = words;
    return true;
}

static bool code_find(const uint8_t *text, size_t size, remote_addr address,
                      struct inject_code *code)
{
    const uint8_t *end = text + size;
    const uint8_t *restorer = memmem(text, size, restorer_bytes, sizeof restorer_bytes);
    if (restorer && !code->restorer)
        code->restorer = address + (remote_addr)(restorer - text);
    for (const uint8_t *at = text; at && !code->keeper; at++) {
        at = memchr(at, 0x48, (size_t)(end - at));
        if (!at)
            break;
        if (keeper_parse(at, end, code))
            code->keeper = address + (remote_addr)(at - text);
    }
    return code->restorer && code->keeper;
}

/* ---- the frame ---- */

/*
 * An interrupted system call is left as a handler leaves it that lets calls go on: it is made once
 * more, or says EINTR where the kernel keeps to itself how it would go on.
 */
static void call_settle(const struct user_regs_struct *from, struct sigcontext_64 *into)
{
    if ((int64_t)from->orig_rax < 0)
        return;
    switch (-(int64_t)from->rax) {
    case RESTART_SIGNAL:
    case RESTART_ALWAYS:
    case RESTART_NO_HANDLER:
        into->ax = from->orig_rax;
        into->ip = from->rip - SYSCALL_SIZE;
        break;
    case RESTART_BLOCK:
        into->ax = (uint64_t)-EINTR;
    }
}

static void registers_copy(const struct user_regs_struct *from, struct sigcontext_64 *into)
{
    *into = (struct sigcontext_64){
        .r8 = from->r8,
        .r9 = from->r9,
        .r10 = from->r10,
        .r11 = from->r11,
        .r12 = from->r12,
        .r13 = from->r13,
        .r14 = from->r14,
        .r15 = from->r15,
        .di = from->rdi,
        .si = from->rsi,
        .bp = from->rbp,
        .bx = from->rbx,
        .dx = from->rdx,
        .ax = from->rax,
        .cx = from->rcx,
        .sp = from->rsp,
        .ip = from->rip,
        .flags = from->eflags,
        .cs = (uint16_t)from->cs,
        .ss = (uint16_t)from->ss,
    };
    call_settle(from, into);
}

/*
 * How much of the vector registers' image is in use: components that are not are in their initial
 * state, and the kernel takes no image that is larger than the thread's own (AMX is asked for).
 */
static size_t vectors_extent(uint64_t components)
{
    uint32_t size, at, flags, unused;
    size_t extent = HEADER_END;
    for (uint32_t i = 2; i < 63; i++) {
        if (!(components >> i & 1) ||
            !__get_cpuid_count(LEAF_VECTORS, i, &size, &at, &flags, &unused))
            continue;
        if (extent < (size_t)at + size)
            extent = (size_t)at + size;
    }
    return extent;
}

/* Between its parts the image is as ptrace gives it. */
static size_t vectors_stage(const struct inject_state *state, uint8_t *into, size_t capacity)
{
    uint64_t components;
    if (state->vector_size < HEADER_END)
        return 0;
    memcpy(&components, state->vectors + LEGACY_SIZE, sizeof components);
    components |= 3; /* x87 and SSE stand in the legacy part */
    size_t extent = vectors_extent(components);
    if (extent > state->vector_size || extent + FP_XSTATE_MAGIC2_SIZE > capacity)
        return 0;
    const struct _fpx_sw_bytes software = {
        .magic1 = FP_XSTATE_MAGIC1,
        .extended_size = (uint32_t)extent + FP_XSTATE_MAGIC2_SIZE,
        .xfeatures = components,
        .xstate_size = (uint32_t)extent,
    };
    const uint32_t end = FP_XSTATE_MAGIC2;
    memcpy(into, state->vectors, extent);
    memcpy(into + SOFTWARE_AT, &software, sizeof software);
    memcpy(into + extent, &end, sizeof end);
    return extent + sizeof end;
}

static int frame_stage(const struct inject_state *state, const struct inject_code *code,
                       uint8_t *image, size_t capacity, struct inject_plan *ret)
{
    struct inject_plan plan = { .data = state->registers.rsp - RED_ZONE - INJECT_DATA - 16 };
    plan.data &= ~(remote_addr)15;
    plan.result = plan.data + INJECT_DATA;
    remote_addr vectors = (plan.data - state->vector_size - FP_XSTATE_MAGIC2_SIZE) &
                          ~(remote_addr)(VECTOR_ALIGNMENT - 1);
    plan.frame = ((vectors - sizeof(struct kernel_frame)) & ~(remote_addr)15) - 8;
    plan.stack = plan.frame - 8 - 8 * (remote_addr)code->keeper_words;
    size_t vectors_at = (size_t)(vectors - plan.frame);
    struct kernel_frame frame = {
        .return_address = code->restorer,
        .context = { .flags = CONTEXT_FLAGS,
                     .stack.flags = STACK_UNKNOWN, /* refused, and so the thread's own stays */
                     .signal_mask = state->signal_mask },
    };
    size_t size = vectors_stage(state, image + vectors_at, capacity - vectors_at);
    if (!size)
        return -EFAULT;
    registers_copy(&state->registers, &frame.context.registers);
    frame.context.registers.fpstate = vectors;
    memcpy(image, &frame, sizeof frame);
    plan.image_size = vectors_at + size;
    *ret = plan;
    return 0;
}

/* ---- the call ---- */

static void vectors_begin(struct inject_state *state)
{
    const uint16_t control = CONTROL_USUAL;
    const uint32_t mxcsr = MXCSR_USUAL;
    uint8_t software[LEGACY_SIZE - SOFTWARE_AT];
    memcpy(software, state->vectors + SOFTWARE_AT, sizeof software);
    memset(state->vectors, 0, state->vector_size);
    memcpy(state->vectors + CONTROL_AT, &control, sizeof control);
    memcpy(state->vectors + MXCSR_AT, &mxcsr, sizeof mxcsr);
    memcpy(state->vectors + SOFTWARE_AT, software, sizeof software);
}

static void call_stage(struct inject_state *state, const struct inject_plan *plan,
                       const struct inject_code *code, remote_addr function,
                       const uint64_t *arguments)
{
    struct user_regs_struct *registers = &state->registers;
    registers->rip = function;
    registers->rsp = plan->stack;
    registers->rbx = plan->result - (remote_addr)(int64_t)code->keeper_offset;
    registers->rax = 0;
    registers->orig_rax = (uint64_t)-1; /* it is in no system call, that none is made again */
    registers->eflags &= ~(uint64_t)FLAGS_UNUSUAL;
    registers->rdi = arguments[0];
    registers->rsi = arguments[1];
    registers->rdx = arguments[2];
    registers->rcx = arguments[3];
    registers->r8 = arguments[4];
    registers->r9 = arguments[5];
    vectors_begin(state);
}

static bool call_rewind(struct user_regs_struct *registers, const struct inject_plan *plan,
                        const struct inject_code *code)
{
    if (registers->orig_rax != SYS_rt_sigreturn || registers->rsp != plan->frame + 8 ||
        registers->rip != code->restorer + RESTORER_SIZE)
        return false;
    registers->rax = SYS_rt_sigreturn;
    registers->orig_rax = (uint64_t)-1;
    registers->rip -= SYSCALL_SIZE;
    return true;
}

const struct inject_arch native_inject = {
    .stage = frame_stage,
    .call = call_stage,
    .rewind = call_rewind,
    .find = code_find,
    .vector_set = NT_X86_XSTATE,
};

#endif
