#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/codes.h"

#include "sampler/shim/space.h"

#include <stdatomic.h>

enum {
    CHAINS = 1 << 12,
    CODES = 1 << 17,
    TEXT_MAX = 4096, /* of a name or a path */
    TABLE_MAX = RING_RECORD_SLOTS * RING_SLOT_ROOM,
    END = 32, /* bytes at each end of a text or a table that tell it from others */
};

struct code {
    const void *address, *name, *file, *table;
    int32_t first_line;
    uint32_t contents;     /* of the texts and the table, which may follow others at their places */
    uint32_t next;         /* of its chain; 0: the last */
    _Atomic uint32_t told; /* in which telling */
};

static _Atomic uint32_t chains[CHAINS]; /* ids, newest first; only ever added to */
static _Atomic(struct code *) codes;    /* by id */
static _Atomic uint32_t code_count = 1; /* the next id */
static _Atomic uint32_t telling = 1;

/* ---- text ---- */

static size_t character_encode(uint32_t c, char *into)
{
    if (c == 0)
        c = 0x2400; /* as everywhere else in this house: a text has no NUL */
    else if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
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

struct text {
    const uint8_t *data; /* NULL: it cannot be read */
    uint64_t length;     /* in characters */
    unsigned width;      /* of one, in bytes */
    bool ascii;
};

static struct text text_find(const struct ring_python *layout, struct field_reader *reader,
                             const uint8_t *object)
{
    if (!object)
        return (struct text){ .data = NULL };
    uint32_t state = field_u32(reader, object + layout->unicode_state);
    bool compact = state >> layout->unicode_compact_shift & 1;
    struct text text = {
        .length = field_u64(reader, object + layout->unicode_length),
        .width = state >> layout->unicode_kind_shift & 7,
        .ascii = state >> layout->unicode_ascii_shift & 1,
    };
    text.data = object + (text.ascii ? layout->unicode_ascii_data : layout->unicode_compact_data);
    if (!compact)
        text.data = field_pointer(reader, object + layout->unicode_any);
    if (text.width != 1 && text.width != 2 && text.width != 4)
        text.data = NULL;
    return text;
}

static uint32_t character_at(struct field_reader *reader, const struct text *text, size_t index)
{
    const uint8_t *at = text->data + text->width * index;
    if (text->width == 1)
        return field_u8(reader, at);
    return text->width == 2 ? field_u16(reader, at) : field_u32(reader, at);
}

struct text_buffer {
    char *at;
    size_t left;
};

static void text_read(const struct ring_python *layout, struct field_reader *reader,
                      const uint8_t *object, struct text_buffer *buffer, const char **ret,
                      size_t *ret_size)
{
    *ret = "";
    *ret_size = 0;
    struct text text = text_find(layout, reader, object);
    if (!text.data)
        return;
    if (text.ascii) {
        size_t size = text.length < TEXT_MAX ? (size_t)text.length : TEXT_MAX;
        *ret = (const char *)text.data;
        *ret_size = field_holds(reader, text.data, size) ? size : 0;
        return;
    }
    char *end = buffer->at;
    for (size_t i = 0; i < text.length && buffer->left >= 4; i++) {
        size_t size = character_encode(character_at(reader, &text, i), end);
        end += size;
        buffer->left -= size;
    }
    *ret = buffer->at;
    *ret_size = (size_t)(end - buffer->at);
    buffer->at = end;
}

static const void *code_name(const struct ring_python *layout, struct field_reader *reader,
                             const uint8_t *code)
{
    uint32_t at = layout->code_qualname != RING_ABSENT ? layout->code_qualname : layout->code_name;
    return field_pointer(reader, code + at);
}

void code_text_read(const struct ring_python *layout, struct field_reader *reader, const void *code,
                    char *buffer, size_t size, struct code_text *ret)
{
    const uint8_t *bytes = code;
    struct text_buffer name = { buffer, size / 2 }, file = { buffer + size / 2, size / 2 };
    *ret = (struct code_text){ .first_line =
                                   (int32_t)field_u32(reader, bytes + layout->code_firstlineno) };
    text_read(layout, reader, code_name(layout, reader, bytes), &name, &ret->name, &ret->name_size);
    text_read(layout, reader, field_pointer(reader, bytes + layout->code_filename), &file,
              &ret->file, &ret->file_size);
    const uint8_t *table = field_pointer(reader, bytes + layout->code_line_table);
    if (!table)
        return;
    uint64_t table_size = field_u64(reader, table + layout->bytes_length);
    if (table_size > TABLE_MAX || !field_holds(reader, table + layout->bytes_data, table_size))
        return;
    ret->table = table + layout->bytes_data;
    ret->table_size = (size_t)table_size;
}

/* ---- ids ---- */

static uint64_t word_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 32;
}

static uint64_t bytes_mix(struct field_reader *reader, const uint8_t *at, size_t size, uint64_t sum)
{
    if (!field_holds(reader, at, size))
        return sum;
    for (uint64_t word; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        __builtin_memcpy(&word, at, sizeof word);
        sum = word_mix(sum, word);
    }
    for (; size; at++, size--)
        sum = word_mix(sum, *at);
    return sum;
}

static uint64_t ends_mix(struct field_reader *reader, const uint8_t *at, uint64_t size,
                         uint64_t sum)
{
    sum = word_mix(sum, size);
    if (size <= 2 * END)
        return bytes_mix(reader, at, size, sum);
    return bytes_mix(reader, at + size - END, END, bytes_mix(reader, at, END, sum));
}

static uint64_t text_mix(const struct ring_python *layout, struct field_reader *reader,
                         const uint8_t *object, uint64_t sum)
{
    struct text text = text_find(layout, reader, object);
    return text.data ? ends_mix(reader, text.data, text.length * text.width, sum) : sum;
}

static uint32_t contents_mix(const struct ring_python *layout, struct field_reader *reader,
                             const uint8_t *code)
{
    const uint8_t *table = field_pointer(reader, code + layout->code_line_table);
    uint64_t sum = text_mix(layout, reader, code_name(layout, reader, code), 0);
    sum = text_mix(layout, reader, field_pointer(reader, code + layout->code_filename), sum);
    if (table)
        sum = ends_mix(reader, table + layout->bytes_data,
                       field_u64(reader, table + layout->bytes_length), sum);
    return (uint32_t)sum;
}

static void code_read(const struct ring_python *layout, struct field_reader *reader,
                      const uint8_t *address, struct code *ret)
{
    *ret = (struct code){
        .address = address,
        .name = field_pointer(reader, address + layout->code_name),
        .file = field_pointer(reader, address + layout->code_filename),
        .table = field_pointer(reader, address + layout->code_line_table),
        .first_line = (int32_t)field_u32(reader, address + layout->code_firstlineno),
        .contents = contents_mix(layout, reader, address),
    };
}

static bool code_equal(const struct code *a, const struct code *b)
{
    return a->address == b->address && a->name == b->name && a->file == b->file &&
           a->table == b->table && a->first_line == b->first_line && a->contents == b->contents;
}

/* CPython: Python/specialize.c, 3.12+: its name is its file, and it has no lines. */
static bool code_is_internal(const struct ring_python *layout, struct field_reader *reader,
                             const struct code *code)
{
    return code->name == code->file && code->table &&
           field_u64(reader, (const uint8_t *)code->table + layout->bytes_length) <= 1;
}

static struct code *codes_open(void)
{
    struct code *found = atomic_load_explicit(&codes, memory_order_acquire);
    if (found)
        return found;
    struct code *mapped = space_reserve(CODES * sizeof *mapped);
    if (!mapped)
        return NULL;
    if (atomic_compare_exchange_strong(&codes, &found, mapped))
        return mapped;
    space_return(mapped, CODES * sizeof *mapped);
    return found;
}

/* Two threads that meet the same code at once may give it two ids: both are told. */
static uint32_t code_add(struct code *all, _Atomic uint32_t *chain, const struct code *code)
{
    if (atomic_load_explicit(&code_count, memory_order_relaxed) >= CODES)
        return 0;
    uint32_t id = atomic_fetch_add_explicit(&code_count, 1, memory_order_relaxed);
    if (id >= CODES)
        return 0;
    struct code *added = &all[id];
    *added = *code;
    uint32_t first = atomic_load_explicit(chain, memory_order_relaxed);
    do
        added->next = first;
    while (!atomic_compare_exchange_weak_explicit(chain, &first, id, memory_order_release,
                                                  memory_order_relaxed));
    return id;
}

uint32_t code_identify(const struct ring_python *layout, struct field_reader *reader,
                       const void *address)
{
    struct code code, *all = codes_open();
    if (!all)
        return 0;
    code_read(layout, reader, address, &code);
    uint64_t mixed = (uint64_t)((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15u;
    _Atomic uint32_t *chain = &chains[(mixed >> 40) & (CHAINS - 1)];
    uint32_t id = atomic_load_explicit(chain, memory_order_acquire);
    /* older ones behind newer ones: all else is of a thread that was here when they were forgotten
     */
    for (uint32_t next; id; id = next < id ? next : 0) {
        if (code_equal(&all[id], &code))
            return id;
        next = all[id].next;
    }
    if (code_is_internal(layout, reader, &code))
        return CODE_INTERNAL;
    return reader->failed ? 0 : code_add(all, chain, &code);
}

bool code_is_told(uint32_t id)
{
    const struct code *all = atomic_load_explicit(&codes, memory_order_acquire);
    return atomic_load_explicit(&all[id].told, memory_order_relaxed) ==
           atomic_load_explicit(&telling, memory_order_relaxed);
}

void code_set_told(uint32_t id)
{
    struct code *all = atomic_load_explicit(&codes, memory_order_acquire);
    atomic_store_explicit(&all[id].told, atomic_load_explicit(&telling, memory_order_relaxed),
                          memory_order_relaxed);
}

bool codes_are_full(void)
{
    return atomic_load_explicit(&code_count, memory_order_relaxed) >= CODES;
}

void codes_forget(void)
{
    struct code *all = atomic_load(&codes);
    for (size_t i = 0; i < CHAINS; i++)
        atomic_store_explicit(&chains[i], 0, memory_order_relaxed);
    if (all)
        space_empty(all, CODES * sizeof *all);
    atomic_store(&code_count, 1);
}

void codes_untell(void)
{
    atomic_fetch_add(&telling, 1);
}
