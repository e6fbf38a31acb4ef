/*
 * str and bytes: PEP 393's forms, by the layout's shifts and offsets. Threads of the target may be
 * running: a str that dies meanwhile shows as implausible or as other text, so callers check who
 * pointed to it.
 */
#include "pyabi/strings.h"

#include "pyabi/field.h"
#include "sampler/base/cleanup.h"

#include <string.h>

/* Names, paths and most line tables fit, and a read of this size costs what one of 64 bytes does.
 */
#define FIRST_READ 512

size_t string_head_size(const struct py_layout *layout)
{
    return offset_of(layout->unicode.ascii_data);
}

/* Not compact: a subclass of str, or one made by the old C API (until 3.11), keeps its data
 * elsewhere. */
static int plan_indirect(const struct py_layout *layout, remote_addr object, const void *head,
                         size_t size, struct string_plan *plan)
{
    struct py_offset any = layout->unicode.any;
    plan->pointer = object + offset_of(any);
    if (size < offset_of(any) + sizeof(remote_addr))
        return 0;
    plan->data = field_address(head, any);
    plan->pointer = 0;
    return plan->data ? 0 : -EBADMSG;
}

int string_plan(const struct py_layout *layout, remote_addr object, const void *head, size_t size,
                struct string_plan *ret)
{
    if (!object_plausible(object) || size < string_head_size(layout))
        return -EBADMSG;
    uint64_t length = field_u64(head, layout->unicode.length);
    uint32_t state = field_u32(head, layout->unicode.state);
    unsigned width = state >> layout->unicode_kind_shift & 7;
    bool compact = state >> layout->unicode_compact_shift & 1;
    bool ascii = state >> layout->unicode_ascii_shift & 1;

    if ((width != 1 && width != 2 && width != 4) || (ascii && width != 1) ||
        length > STRING_SIZE_MAX / width)
        return -EBADMSG;
    struct string_plan plan = { .size = (uint32_t)length * width,
                                .width = (uint8_t)width,
                                .ascii = ascii };
    if (compact) {
        plan.data =
            object + offset_of(ascii ? layout->unicode.ascii_data : layout->unicode.compact_data);
    } else {
        int error = plan_indirect(layout, object, head, size, &plan);
        if (error)
            return error;
    }
    *ret = plan;
    return 0;
}

size_t string_text_size(const struct string_plan *plan)
{
    /* U+2400 takes three bytes wherever NUL took one to four. */
    static const uint8_t longest[] = { [1] = 3, [2] = 3, [4] = 4 };
    return (size_t)plan->size / plan->width * longest[plan->width] + 1;
}

static uint32_t character_at(const uint8_t *bytes, size_t index, unsigned width)
{
    uint16_t two;
    uint32_t four;
    switch (width) {
    case 1:
        return bytes[index];
    case 2:
        memcpy(&two, bytes + index * 2, sizeof(two));
        return two;
    default:
        memcpy(&four, bytes + index * 4, sizeof(four));
        return four;
    }
}

static size_t character_encode(uint32_t c, char *into)
{
    if (c == 0)
        c = 0x2400;
    else if (c >= 0xd800 && c <= 0xdfff)
        c = 0xfffd;
    if (c < 0x80) {
        into[0] = (char)c;
        return 1;
    }
    size_t tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = { 0, 0xc0, 0xe0, 0xf0 };
    into[0] = (char)(lead[tail] | c >> 6 * tail);
    for (size_t i = 1; i <= tail; i++)
        into[i] = (char)(0x80 | (c >> 6 * (tail - i) & 0x3f));
    return tail + 1;
}

long string_decode(const struct string_plan *plan, const void *bytes, char *into)
{
    size_t count = plan->size / plan->width;
    uint32_t highest = plan->ascii ? 0x7f : 0x10ffff;
    char *end = into;
    for (size_t i = 0; i < count; i++) {
        uint32_t c = character_at(bytes, i, plan->width);
        if (c > highest)
            return -EBADMSG;
        end += character_encode(c, end);
    }
    *end = '\0';
    return end - into;
}

/* The part of [address, address + size) that lies whole in a copy of the memory at `base`, or NULL.
 */
static const uint8_t *copy_find(const uint8_t *copy, remote_addr base, size_t copied,
                                remote_addr address, size_t size)
{
    if (address < base || address - base > copied || copied - (address - base) < size)
        return NULL;
    return copy + (address - base);
}

static int text_new(const struct string_plan *plan, const void *bytes, char **ret)
{
    AUTO_FREE char *text = malloc(string_text_size(plan));
    if (!text)
        return -ENOMEM;
    long length = string_decode(plan, bytes, text);
    if (length < 0)
        return (int)length;
    char *fitted = realloc(text, (size_t)length + 1);
    if (fitted)
        text = fitted;
    *ret = TAKE_PTR(text);
    return 0;
}

int string_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                char **ret_text)
{
    uint8_t first[FIRST_READ];
    if (!object_plausible(object))
        return -EBADMSG;
    long got = remote_read_some(memory, object, first, sizeof(first));
    if (got < 0)
        return (int)got;
    if ((size_t)got < string_head_size(layout))
        return -EFAULT;
    struct string_plan plan;
    int error = string_plan(layout, object, first, (size_t)got, &plan);
    if (!error && plan.pointer)
        error = remote_read(memory, plan.pointer, &plan.data, sizeof(plan.data));
    if (error)
        return error;
    const uint8_t *data = copy_find(first, object, (size_t)got, plan.data, plan.size);
    if (data)
        return text_new(&plan, data, ret_text);
    AUTO_FREE uint8_t *rest = malloc(plan.size ? plan.size : 1);
    if (!rest)
        return -ENOMEM;
    error = remote_read(memory, plan.data, rest, plan.size);
    return error ? error : text_new(&plan, rest, ret_text);
}

int bytes_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
               size_t limit, uint8_t **ret_data, size_t *ret_size)
{
    uint8_t first[FIRST_READ];
    size_t head = offset_of(layout->bytes.data);
    if (!object_plausible(object))
        return -EBADMSG;
    long got = remote_read_some(memory, object, first, sizeof(first));
    if (got < 0)
        return (int)got;
    if ((size_t)got < head)
        return -EFAULT;
    uint64_t size = field_u64(first, layout->bytes.length);
    if (size > limit || size > BYTES_SIZE_MAX)
        return -EBADMSG;
    AUTO_FREE uint8_t *data = malloc(size ? size : 1);
    if (!data)
        return -ENOMEM;
    size_t have = (size_t)got - head < size ? (size_t)got - head : size;
    memcpy(data, first + head, have);
    if (have < size) {
        int error = remote_read(memory, object + head + have, data + have, size - have);
        if (error)
            return error;
    }
    *ret_data = TAKE_PTR(data);
    *ret_size = size;
    return 0;
}
