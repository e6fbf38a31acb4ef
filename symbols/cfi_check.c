#include "symbols/cfi_check.h"

#include <string.h>

enum {
    RECORD_LIMIT = 1 << 16, /* the longest of CPython's have 2 KiB */
    REMEMBER_LIMIT = 64,
#if defined(__aarch64__)
    REGISTER_LIMIT = 97, /* as many as libunwind's own tables have columns */
#else
    REGISTER_LIMIT = 17,
#endif
    /* DWARF 5, 7.24 */
    ADVANCE = 1,
    OFFSET = 2,
    RESTORE = 3,
    DEF_CFA = 0x0c,
    DEF_CFA_EXPRESSION = 0x0f,
    DEF_CFA_SF = 0x12,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    OPCODES = 0x30,
};

/* Operands of each instruction: r register, n number (LEB128), b block, 1 2 4 bytes, p pointer as
 * the CIE encodes it. An instruction that libunwind 1.6 does not know has no entry. */
static const char *const operands[OPCODES] = {
    [0x00] = "",   [0x01] = "p", [0x02] = "1",  [0x03] = "2",  [0x04] = "4",  [0x05] = "rn",
    [0x06] = "r",  [0x07] = "r", [0x08] = "r",  [0x09] = "rr", [0x0a] = "",   [0x0b] = "",
    [0x0c] = "rn", [0x0d] = "r", [0x0e] = "n",  [0x0f] = "b",  [0x10] = "rb", [0x11] = "rn",
    [0x12] = "rn", [0x13] = "n", [0x16] = "rb", [0x2d] = "",   [0x2e] = "n",  [0x2f] = "rn",
};

/* A record's bytes, read from the front; `bad` once anything did not fit. */
struct record {
    unsigned char bytes[RECORD_LIMIT];
    size_t at, size;
    bool bad;
};

static void skip(struct record *record, uint64_t count)
{
    if (count > record->size - record->at)
        record->bad = true;
    else
        record->at += count;
}

static unsigned byte_read(struct record *record)
{
    size_t at = record->at;
    skip(record, 1);
    return record->bad ? 0 : record->bytes[at];
}

static uint64_t number_read(struct record *record)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = byte_read(record);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    record->bad = true;
    return 0;
}

static void register_check(struct record *record, uint64_t number)
{
    if (number >= REGISTER_LIMIT)
        record->bad = true;
}

struct cie {
    bool augmented;        /* data of known length may follow the fixed fields of an FDE */
    uint64_t pointer_size; /* 0: of variable length */
    bool has_stack_rule;
};

static void operand_skip(struct record *record, char kind, const struct cie *cie)
{
    if (kind == 'r')
        register_check(record, number_read(record));
    else if (kind == 'n')
        number_read(record);
    else if (kind == 'b')
        skip(record, number_read(record));
    else if (kind == 'p')
        skip(record, cie->pointer_size ? cie->pointer_size : RECORD_LIMIT);
    else
        skip(record, (uint64_t)(kind - '0'));
}

static void instruction_check(struct record *record, struct cie *cie, unsigned *remembered)
{
    unsigned opcode = byte_read(record), high = opcode >> 6;
    if (high == ADVANCE)
        return;
    if (high == OFFSET || high == RESTORE) {
        register_check(record, opcode & 0x3f);
        if (high == OFFSET)
            number_read(record);
        return;
    }
    if (opcode >= OPCODES || !operands[opcode]) {
        record->bad = true;
        return;
    }
    for (const char *kind = operands[opcode]; *kind; kind++)
        operand_skip(record, *kind, cie);
    if (opcode == DEF_CFA || opcode == DEF_CFA_EXPRESSION || opcode == DEF_CFA_SF)
        cie->has_stack_rule = true;
    /* one that restores takes the last remembered away: the evaluation loop has hundreds, by turns
     */
    if (opcode == RESTORE_STATE && *remembered > 0)
        --*remembered;
    if (opcode == REMEMBER_STATE && ++*remembered > REMEMBER_LIMIT)
        record->bad = true;
}

static bool program_check(struct record *record, struct cie *cie)
{
    unsigned remembered = 0;
    while (!record->bad && record->at < record->size)
        instruction_check(record, cie, &remembered);
    return !record->bad;
}

/* Length, then that many bytes, of which the first four tell what it is. */
static bool record_read(struct remote *memory, remote_addr address, struct record *record,
                        uint32_t *ret_id)
{
    uint32_t length;
    record->at = 0;
    record->bad = false;
    if (remote_read(memory, address, &length, sizeof length) || length < sizeof *ret_id ||
        length > RECORD_LIMIT ||
        remote_read(memory, address + sizeof length, record->bytes, length))
        return false;
    record->size = length;
    memcpy(ret_id, record->bytes, sizeof *ret_id);
    skip(record, sizeof *ret_id);
    return true;
}

static uint64_t pointer_size(unsigned encoding)
{
    static const unsigned char sizes[16] = {
        [0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8
    };
    return sizes[encoding & 0xf];
}

/* The augmentation's letters say what its data are, in order; of interest is how an FDE writes
 * pointers. */
static void augmentation_read(struct record *record, const char *letters, struct cie *cie)
{
    size_t size = number_read(record), start = record->at;
    for (letters++; *letters && !record->bad; letters++) {
        if (*letters == 'R') {
            cie->pointer_size = pointer_size(byte_read(record));
        } else if (*letters == 'P') {
            uint64_t personality = pointer_size(byte_read(record));
            skip(record, personality ? personality : RECORD_LIMIT);
        } else if (*letters == 'L') {
            byte_read(record);
        } else if (*letters != 'S' && *letters != 'B') {
            record->bad = true;
        }
    }
    record->at = start;
    skip(record, size);
}

static bool cie_check(struct remote *memory, remote_addr address, struct record *record,
                      struct cie *cie)
{
    uint32_t id;
    *cie = (struct cie){ .pointer_size = 8 };
    if (!record_read(memory, address, record, &id) || id != 0)
        return false;
    unsigned version = byte_read(record);
    const char *letters = (const char *)record->bytes + record->at;
    size_t length = strnlen(letters, record->size - record->at);
    skip(record, length + 1);
    if (record->bad || (version != 1 && version != 3))
        return false;
    number_read(record); /* code alignment */
    number_read(record); /* data alignment */
    register_check(record, version == 1 ? byte_read(record) : number_read(record));
    cie->augmented = letters[0] == 'z';
    if (cie->augmented)
        augmentation_read(record, letters, cie);
    return (cie->augmented || length == 0) && program_check(record, cie);
}

bool cfi_is_sound(struct remote *memory, remote_addr fde)
{
    struct record record;
    struct cie cie;
    uint32_t distance;
    /* An FDE names its CIE by the distance back from the field that says so. */
    if (!record_read(memory, fde, &record, &distance) || distance == 0 ||
        !cie_check(memory, fde + sizeof distance - distance, &record, &cie) || !cie.pointer_size ||
        !record_read(memory, fde, &record, &distance))
        return false;
    skip(&record, 2 * cie.pointer_size); /* start and length of the code */
    if (cie.augmented)
        skip(&record, number_read(&record));
    return program_check(&record, &cie) && cie.has_stack_rule;
}
