/* aarch64. DWARF numbers: "DWARF for the Arm 64-bit Architecture", table of register names. */
#ifdef __aarch64__

#include "sampler/target/arch.h"

#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/user.h>

#define WORD(name) (offsetof(struct user_regs_struct, name) / sizeof(uint64_t))
#define WAIT(name, class) [SYS_##name] = WAIT_##class,

const struct arch native_arch = {
    .name = "aarch64",
    .audit = AUDIT_ARCH_AARCH64,
    .set_words = sizeof(struct user_regs_struct) / sizeof(uint64_t),
    .register_count = 33,
    .register_words = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                        11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                        22, 23, 24, 25, 26, 27, 28, 29, 30, WORD(sp), WORD(pc) },
    .ip_word = WORD(pc),
    .sp_word = WORD(sp),
    .fp_word = 29,
    .call_word = 0xff,
    .wait_classes = {
#include "sampler/target/syscalls.def"
    },
};

#endif
