/*
 * A part is where a jump from the function leads that is no tail call, and from where another jump
 * leads back into the function's middle. Jumps are looked for at every byte: what only looks like
 * one fails the second test.
 */
#include "symbols/function_parts.h"

#include "sampler/base/cleanup.h"

#include <string.h>

enum { CODE_LIMIT = 1 << 20, JUMP_SIZE = 6 };

struct code {
    struct code_range range;
    unsigned char *bytes;
};

struct jump {
    remote_addr to;
    bool conditional; /* then it is no tail call */
};

static bool range_holds(struct code_range range, remote_addr address)
{
    return address >= range.start && address < range.end;
}

static int code_read(struct remote *memory, struct code_range range, struct code *ret)
{
    size_t size = range.end - range.start;
    if (range.end <= range.start || size > CODE_LIMIT || size < JUMP_SIZE)
        return -1;
    AUTO_FREE unsigned char *bytes = malloc(size);
    if (!bytes || remote_read(memory, range.start, bytes, size))
        return -1;
    *ret = (struct code){ range, TAKE_PTR(bytes) };
    return 0;
}

/* x86-64: E9 and 0F 80 to 0F 8F take a signed 32-bit distance from their own end. */
static bool jump_decode(const struct code *code, size_t at, struct jump *ret)
{
#if defined(__x86_64__)
    const unsigned char *bytes = code->bytes + at;
    bool conditional = bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
    size_t opcode_size = conditional ? 2 : 1;
    int32_t distance;
    if (!conditional && bytes[0] != 0xe9)
        return false;
    memcpy(&distance, bytes + opcode_size, sizeof distance);
    ret->to =
        code->range.start + at + opcode_size + sizeof distance + (remote_addr)(int64_t)distance;
    ret->conditional = conditional;
    return true;
#else
    (void)code, (void)at, (void)ret;
    return false;
#endif
}

static bool code_jumps_into(const struct code *code, struct code_range function)
{
    struct jump jump;
    for (size_t at = 0; at + JUMP_SIZE <= code->range.end - code->range.start; at++)
        if (jump_decode(code, at, &jump) && jump.to != function.start &&
            range_holds(function, jump.to))
            return true;
    return false;
}

static bool part_is_sound(struct remote *memory, struct code_range part, struct code_range function)
{
    struct code code;
    if (range_holds(function, part.start) || code_read(memory, part, &code))
        return false;
    bool sound = code_jumps_into(&code, function);
    free(code.bytes);
    return sound;
}

static bool jump_is_known(remote_addr to, struct code_range function,
                          const struct code_range *parts, size_t count)
{
    bool known = range_holds(function, to);
    for (size_t i = 0; i < count && !known; i++)
        known = range_holds(parts[i], to);
    return known;
}

size_t function_parts_find(struct remote *memory, const struct unwind_table *table,
                           struct code_range function, struct code_range *ret, size_t capacity)
{
    struct code code;
    size_t count = 0;
    if (code_read(memory, function, &code))
        return 0;
    for (size_t at = 0; at + JUMP_SIZE <= function.end - function.start && count < capacity; at++) {
        struct jump jump;
        struct table_function found;
        if (jump_decode(&code, at, &jump) && jump.to >= table->start && jump.to < table->end &&
            !jump_is_known(jump.to, function, ret, count) &&
            unwind_table_function(table, memory, jump.to, &found) &&
            (jump.conditional || jump.to != found.start) &&
            part_is_sound(memory, (struct code_range){ found.start, found.end }, function))
            ret[count++] = (struct code_range){ found.start, found.end };
    }
    free(code.bytes);
    return count;
}
