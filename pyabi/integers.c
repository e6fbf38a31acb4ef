/* Python ints: sign and magnitude, digits of 30 bits (Include/cpython/longintrepr.h, on 64-bit
 * machines). */
#include "pyabi/integers.h"

#include "pyabi/field.h"

#include <limits.h>

enum { DIGIT_BITS = 30, DIGIT_MAX = 3 };

struct integer_head {
    bool negative;
    uint64_t count; /* of digits */
};

static int head_decode(const struct py_layout *layout, uint64_t word, struct integer_head *ret)
{
    unsigned sign = word & 3; /* 0 positive, 1 zero, 2 negative */
    switch (layout->integers) {
    case INTEGER_OB_SIZE:
        ret->negative = (int64_t)word < 0;
        ret->count = ret->negative ? -word : word;
        return 0;
    case INTEGER_TAG:
        ret->negative = sign == 2;
        ret->count = word >> 3;
        return sign == 3 || (sign == 1) != (ret->count == 0) ? -EBADMSG : 0;
    }
    return -EBADMSG;
}

static int value_compose(const struct integer_head *head, const uint32_t *digits, int64_t *ret)
{
    unsigned __int128 magnitude = 0;
    for (size_t i = head->count; i-- > 0;) {
        if (digits[i] >> DIGIT_BITS)
            return -EBADMSG;
        magnitude = magnitude << DIGIT_BITS | digits[i];
    }
    unsigned __int128 most = head->negative ? (unsigned __int128)1 << 63 : UINT64_MAX;
    if (magnitude > most)
        return -ERANGE;
    *ret = (int64_t)(head->negative ? -(uint64_t)magnitude : (uint64_t)magnitude);
    return 0;
}

int integer_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                 int64_t *ret_value)
{
    struct {
        uint64_t word;
        uint32_t digits[DIGIT_MAX];
    } copy;
    if (!object_plausible(object))
        return -EBADMSG;
    size_t size = sizeof(copy.word) + sizeof(copy.digits);
    long got = remote_read_some(memory, object + offset_of(layout->integer.tag), &copy, size);
    if (got < 0)
        return (int)got;
    if ((size_t)got < sizeof(copy.word))
        return -EFAULT;
    struct integer_head head = { 0 };
    int error = head_decode(layout, copy.word, &head);
    if (error)
        return error;
    if (head.count > DIGIT_MAX)
        return -ERANGE;
    if ((size_t)got < sizeof(copy.word) + head.count * sizeof(copy.digits[0]))
        return -EFAULT;
    return value_compose(&head, copy.digits, ret_value);
}
