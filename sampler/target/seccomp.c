#include "sampler/target/seccomp.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/arch.h"

#include <string.h>
#include <sys/ptrace.h>

enum { FILTERS_MOST = 64 }; /* one after the other, on one thread */

struct machine {
    uint32_t accumulator, index, memory[BPF_MEMWORDS];
};

static int alu_run(uint16_t code, uint32_t operand, uint32_t *accumulator)
{
    switch (BPF_OP(code)) {
    case BPF_ADD:
        *accumulator += operand;
        return 0;
    case BPF_SUB:
        *accumulator -= operand;
        return 0;
    case BPF_MUL:
        *accumulator *= operand;
        return 0;
    case BPF_DIV:
        if (!operand)
            return -EBADMSG;
        *accumulator /= operand;
        return 0;
    case BPF_AND:
        *accumulator &= operand;
        return 0;
    case BPF_OR:
        *accumulator |= operand;
        return 0;
    case BPF_XOR:
        *accumulator ^= operand;
        return 0;
    case BPF_LSH:
        *accumulator = operand < 32 ? *accumulator << operand : 0;
        return 0;
    case BPF_RSH:
        *accumulator = operand < 32 ? *accumulator >> operand : 0;
        return 0;
    case BPF_NEG:
        *accumulator = -*accumulator;
        return 0;
    default:
        return -EBADMSG;
    }
}

static int load_run(const struct sock_filter *step, const struct seccomp_data *data,
                    const struct machine *machine, uint32_t *into)
{
    switch (BPF_MODE(step->code)) {
    case BPF_ABS:
        if (step->k % sizeof *into || step->k > sizeof *data - sizeof *into)
            return -EBADMSG;
        memcpy(into, (const uint8_t *)data + step->k, sizeof *into);
        return 0;
    case BPF_IMM:
        *into = step->k;
        return 0;
    case BPF_LEN:
        *into = sizeof *data;
        return 0;
    case BPF_MEM:
        if (step->k >= BPF_MEMWORDS)
            return -EBADMSG;
        *into = machine->memory[step->k];
        return 0;
    default:
        return -EBADMSG;
    }
}

static bool jump_holds(uint16_t code, uint32_t accumulator, uint32_t operand)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return accumulator == operand;
    case BPF_JGT:
        return accumulator > operand;
    case BPF_JGE:
        return accumulator >= operand;
    default:
        return accumulator & operand; /* BPF_JSET */
    }
}

/* By how many steps it jumps, all of them ahead. */
static size_t jump_run(const struct sock_filter *step, uint32_t accumulator, uint32_t operand)
{
    if (BPF_OP(step->code) == BPF_JA)
        return step->k;
    return jump_holds(step->code, accumulator, operand) ? step->jt : step->jf;
}

static int store_run(const struct sock_filter *step, uint32_t value, struct machine *machine)
{
    if (step->k >= BPF_MEMWORDS)
        return -EBADMSG;
    machine->memory[step->k] = value;
    return 0;
}

static void move_run(uint16_t code, struct machine *machine)
{
    if (BPF_MISCOP(code) == BPF_TAX)
        machine->index = machine->accumulator;
    else
        machine->accumulator = machine->index;
}

int seccomp_run(const struct sock_filter *program, size_t length, const struct seccomp_data *data,
                uint32_t *ret)
{
    struct machine machine = { 0 };
    int error = 0;
    for (size_t at = 0; at < length && !error; at++) {
        const struct sock_filter *step = &program[at];
        uint32_t operand = BPF_SRC(step->code) == BPF_X ? machine.index : step->k;
        switch (BPF_CLASS(step->code)) {
        case BPF_LD:
            error = load_run(step, data, &machine, &machine.accumulator);
            break;
        case BPF_LDX:
            error = load_run(step, data, &machine, &machine.index);
            break;
        case BPF_ST:
            error = store_run(step, machine.accumulator, &machine);
            break;
        case BPF_STX:
            error = store_run(step, machine.index, &machine);
            break;
        case BPF_ALU:
            error = alu_run(step->code, operand, &machine.accumulator);
            break;
        case BPF_JMP:
            at += jump_run(step, machine.accumulator, operand);
            break;
        case BPF_MISC:
            move_run(step->code, &machine);
            break;
        case BPF_RET:
            *ret = BPF_RVAL(step->code) == BPF_A ? machine.accumulator : step->k;
            return 0;
        }
    }
    return -EBADMSG;
}

static int calls_check(const struct sock_filter *program, size_t length,
                       const struct seccomp_call *calls, size_t count,
                       const struct seccomp_call **ret_refused)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t answer;
        struct seccomp_data data = { .nr = calls[i].number, .arch = native_arch.audit };
        memcpy(data.args, calls[i].arguments, sizeof data.args);
        int error = seccomp_run(program, length, &data, &answer);
        if (error)
            return error;
        answer &= SECCOMP_RET_ACTION_FULL;
        if (answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG)
            continue;
        *ret_refused = &calls[i];
        return -EACCES;
    }
    return 0;
}

int seccomp_check(const struct pause *pause, const struct seccomp_call *calls, size_t count,
                  const struct seccomp_call **ret_refused)
{
    AUTO_FREE struct sock_filter *program = calloc(BPF_MAXINSNS, sizeof *program);
    if (!program)
        return -ENOMEM;
    for (uintptr_t i = 0; i < FILTERS_MOST; i++) {
        long length = ptrace(PTRACE_SECCOMP_GET_FILTER, pause->tid, (void *)i, program);
        if (length < 0)
            return errno == ENOENT && i > 0 ? 0 : -EPERM;
        int error = calls_check(program, (size_t)length, calls, count, ret_refused);
        if (error)
            return error;
    }
    return -EBADMSG;
}
