/* x86-64. DWARF numbers: System V ABI, AMD64 supplement, "DWARF Register Number Mapping". */
#ifdef __x86_64__

#include "sampler/target/arch.h"

#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/user.h>

#define WORD(name) (offsetof(struct user_regs_struct, name) / sizeof(uint64_t))
#define WAIT(name, class) [SYS_##name] = WAIT_##class,

const struct arch native_arch = {
    .name = "x86-64",
    .audit = AUDIT_ARCH_X86_64,
    .set_words = sizeof(struct user_regs_struct) / sizeof(uint64_t),
    .register_count = 17,
    .register_words = { WORD(rax), WORD(rdx), WORD(rcx), WORD(rbx), WORD(rsi), WORD(rdi),
                        WORD(rbp), WORD(rsp), WORD(r8), WORD(r9), WORD(r10), WORD(r11),
                        WORD(r12), WORD(r13), WORD(r14), WORD(r15), WORD(rip) },
    .ip_word = WORD(rip),
    .sp_word = WORD(rsp),
    .fp_word = WORD(rbp),
    .call_word = WORD(orig_rax),
    .wait_classes = {
#include "sampler/target/syscalls.def"
        /* Forms that newer architectures never had. */
        WAIT(poll, POLL)
        WAIT(select, SELECT)
        WAIT(epoll_wait, IO)
        WAIT(open, IO)
        WAIT(stat, IO)
        WAIT(lstat, IO)
        WAIT(rename, IO)
        WAIT(unlink, IO)
        WAIT(mkdir, IO)
        WAIT(vfork, CHILD)
    },
};

#endif
