/*
 * Dict tables (Objects/dictobject.c of CPython 3.8 to 3.15): a combined table has values beside its
 * keys, a split one shares the keys and has values of its own. Hashes are seeded in the target, so
 * a key is found by comparing texts, many in one read. Sizes come from memory that may change under
 * us: all are checked.
 */
#include "pyabi/dicts.h"

#include "pyabi/field.h"
#include "pyabi/strings.h"
#include "sampler/base/cleanup.h"

#include <string.h>

enum {
    KEYS_HEAD_MAX = 128,
    KEY_BATCH = 256,
    TRIES = 4,
};

/* Where entries stand: `values` is 0 in a combined table. */
struct table {
    remote_addr keys, values;
};

struct entry {
    remote_addr key, value;
    size_t index; /* its place among live and dead ones */
};

struct entries {
    struct entry *list;
    size_t count;
};

static void entries_done(struct entries *entries)
{
    free(entries->list);
}

/* What a keys object says about the array of entries behind it. */
struct keys_shape {
    remote_addr entries;
    size_t count;
    size_t stride;
};

static int word_read(struct remote *memory, remote_addr address, remote_addr *ret)
{
    return remote_read(memory, address, ret, sizeof(*ret));
}

static int table_read(struct remote *memory, const struct py_layout *layout, remote_addr dict,
                      struct table *ret)
{
    if (!object_plausible(dict))
        return -EBADMSG;
    const struct remote_piece pieces[] = {
        { dict + offset_of(layout->dict.keys), &ret->keys, sizeof(ret->keys) },
        { dict + offset_of(layout->dict.values), &ret->values, sizeof(ret->values) },
    };
    return remote_read_all(memory, pieces, 2);
}

/* Until 3.10 the width of an index follows from their number. */
static uint64_t index_bytes(uint64_t slots)
{
    return slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= UINT32_MAX ? 4 : 8);
}

static int keys_decode(const struct py_layout *layout, remote_addr keys, const void *head,
                       struct keys_shape *ret)
{
    const struct keys_layout *at = &layout->keys;
    uint64_t slots, indices, count = field_u64(head, at->entry_count);
    bool unicode = offset_present(at->kind) && field_u8(head, at->kind);
    if (offset_present(at->log2_size)) {
        unsigned log2_size = field_u8(head, at->log2_size);
        unsigned log2_bytes = field_u8(head, at->log2_index_bytes);
        if (log2_size > 32 || log2_bytes < log2_size || log2_bytes > log2_size + 3)
            return -EBADMSG;
        slots = (uint64_t)1 << log2_size;
        indices = (uint64_t)1 << log2_bytes;
    } else {
        slots = field_u64(head, at->index_count);
        if (slots == 0 || slots > (uint64_t)1 << 32 || slots & (slots - 1))
            return -EBADMSG;
        indices = index_bytes(slots);
    }
    if (count > slots || count > DICT_ENTRIES_MAX)
        return -EBADMSG;
    ret->entries = keys + offset_of(at->indices) + indices;
    ret->count = count;
    ret->stride = (unicode ? 2 : 3) * sizeof(remote_addr); /* a general entry begins with a hash */
    return 0;
}

static int keys_read(struct remote *memory, const struct py_layout *layout, remote_addr keys,
                     struct keys_shape *ret)
{
    uint64_t head[KEYS_HEAD_MAX / sizeof(uint64_t)];
    size_t size = offset_of(layout->keys.indices);
    if (!object_plausible(keys) || size > sizeof(head))
        return -EBADMSG;
    int error = remote_read(memory, keys, head, size);
    return error ? error : keys_decode(layout, keys, head, ret);
}

static size_t pack_live(const struct keys_shape *shape, const uint8_t *raw,
                        const remote_addr *values, struct entry *into)
{
    size_t live = 0;
    for (size_t i = 0; i < shape->count; i++) {
        remote_addr pair[2]; /* key, value: an entry ends with them */
        memcpy(pair, raw + (i + 1) * shape->stride - sizeof(pair), sizeof(pair));
        if (values)
            pair[1] = values[i];
        if (pair[0] && pair[1])
            into[live++] = (struct entry){ pair[0], pair[1], i };
    }
    return live;
}

/*
 * Reads all entries of a table. `dict`, if not 0, is what pointed to the table: it is read again
 * after the entries, in the same vector, and must still point there.
 */
static int entries_read(struct remote *memory, const struct py_layout *layout, struct table table,
                        remote_addr dict, struct entries *ret)
{
    struct keys_shape shape;
    int error = keys_read(memory, layout, table.keys, &shape);
    if (error)
        return error;
    size_t count = shape.count ? shape.count : 1;
    AUTO_FREE uint8_t *raw = malloc(count * shape.stride);
    AUTO_FREE remote_addr *values = table.values ? malloc(count * sizeof(*values)) : NULL;
    AUTO_FREE struct entry *list = malloc(count * sizeof(*list));
    if (!raw || !list || (table.values && !values))
        return -ENOMEM;

    struct remote_piece pieces[3] = { { shape.entries, raw, shape.count * shape.stride } };
    size_t used = 1;
    remote_addr keys_now = table.keys;
    if (values)
        pieces[used++] = (struct remote_piece){ table.values + offset_of(layout->values.items),
                                                values, shape.count * sizeof(*values) };
    if (dict)
        pieces[used++] = (struct remote_piece){ dict + offset_of(layout->dict.keys), &keys_now,
                                                sizeof(keys_now) };
    error = remote_read_all(memory, pieces, used);
    if (error)
        return error;
    if (keys_now != table.keys)
        return -EAGAIN;
    ret->count = pack_live(&shape, raw, values, list);
    ret->list = TAKE_PTR(list);
    return 0;
}

/* A dict that grows frees its old table: whatever went wrong then is no statement about the dict.
 */
static int dict_read(struct remote *memory, const struct py_layout *layout, remote_addr dict,
                     struct entries *ret)
{
    int error = -EAGAIN;
    for (int i = 0; i < TRIES && error; i++) {
        struct table table, now;
        error = table_read(memory, layout, dict, &table);
        if (error)
            return error;
        error = entries_read(memory, layout, table, dict, ret);
        if (error != -EFAULT && error != -EBADMSG)
            continue;
        int failed = table_read(memory, layout, dict, &now);
        if (failed || now.keys == table.keys)
            return failed ? failed : error;
        error = -EAGAIN;
    }
    return error;
}

int dict_walk(struct remote *memory, const struct py_layout *layout, remote_addr dict,
              int (*entry)(void *context, remote_addr key, remote_addr value), void *context)
{
    CLEANUP(entries_done) struct entries entries = { 0 };
    int result = dict_read(memory, layout, dict, &entries);
    for (size_t i = 0; i < entries.count && !result; i++)
        result = entry(context, entries.list[i].key, entries.list[i].value);
    return result;
}

/* Is the copy, of as many bytes as a str of that text takes, such a str? */
static bool key_matches(const struct py_layout *layout, remote_addr key, const uint8_t *copy,
                        size_t size, const char *text, size_t length)
{
    struct string_plan plan;
    if (string_plan(layout, key, copy, size, &plan) || !plan.ascii || plan.size != length)
        return false;
    return plan.data == key + size - length && memcmp(copy + size - length, text, length) == 0;
}

/* Looks through `count` keys with as few reads as can be; a key that cannot be read is not the one.
 */
static int batch_find(struct remote *memory, const struct py_layout *layout, const char *text,
                      const struct entry *list, size_t count, uint8_t *copies,
                      const struct entry **ret)
{
    size_t length = strlen(text), size = string_head_size(layout) + length;
    struct remote_piece pieces[KEY_BATCH];
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct remote_piece){ list[i].key, copies + i * size, size };
    for (size_t next = 0; next < count; next++) {
        int whole = memory->read_pieces(memory, pieces + next, count - next, NULL);
        if (whole < 0)
            return whole;
        for (size_t end = next + (size_t)whole; next < end; next++) {
            if (key_matches(layout, list[next].key, pieces[next].into, size, text, length)) {
                *ret = &list[next];
                return 0;
            }
        }
    }
    return -ENOENT;
}

static int entries_find(struct remote *memory, const struct py_layout *layout,
                        const struct entries *entries, const char *text, const struct entry **ret)
{
    size_t size = string_head_size(layout) + strlen(text);
    AUTO_FREE uint8_t *copies = malloc(KEY_BATCH * size);
    if (!copies)
        return -ENOMEM;
    int error = -ENOENT;
    for (size_t at = 0; at < entries->count && error == -ENOENT; at += KEY_BATCH) {
        size_t left = entries->count - at;
        error = batch_find(memory, layout, text, entries->list + at,
                           left < KEY_BATCH ? left : KEY_BATCH, copies, ret);
    }
    return error;
}

int dict_find(struct remote *memory, const struct py_layout *layout, remote_addr dict,
              const char *key, remote_addr *ret_value)
{
    CLEANUP(entries_done) struct entries entries = { 0 };
    int error = dict_read(memory, layout, dict, &entries);
    const struct entry *found = NULL;
    if (!error)
        error = entries_find(memory, layout, &entries, key, &found);
    if (!error)
        *ret_value = found->value;
    return error;
}

static int type_learn(struct remote *memory, const struct py_layout *layout, remote_addr object,
                      struct attribute_memo *memo)
{
    remote_addr type;
    int error = object_plausible(object)
                    ? word_read(memory, object + offset_of(layout->object.type), &type)
                    : -EBADMSG;
    if (error || type == memo->type)
        return error;
    if (!object_plausible(type))
        return -EBADMSG;
    struct attribute_memo now = { .type = type };
    const struct remote_piece pieces[] = {
        { type + offset_of(layout->type.flags), &now.flags, sizeof(now.flags) },
        { type + offset_of(layout->type.basicsize), &now.basicsize, sizeof(now.basicsize) },
        { type + offset_of(layout->type.dictoffset), &now.dictoffset, sizeof(now.dictoffset) },
        { type + offset_of(layout->type.cached_keys), &now.cached_keys, sizeof(now.cached_keys) },
    };
    /* Only types made at run time reach as far as the last one, and only theirs are asked for it.
     */
    int whole = memory->read_pieces(memory, pieces, 4, NULL);
    if (whole < 3)
        return whole < 0 ? whole : -EFAULT;
    *memo = now;
    return 0;
}

static int locate_dict(struct remote *memory, const struct py_layout *layout, remote_addr dict,
                       struct table *ret)
{
    return dict ? table_read(memory, layout, dict, ret) : -ENOENT;
}

/* 3.13+: values stand in the object for as long as they say that they are valid; a dict goes first.
 */
static int locate_inline(struct remote *memory, const struct py_layout *layout, remote_addr object,
                         const struct attribute_memo *memo, struct table *ret)
{
    remote_addr dict, values = object + (uint64_t)memo->basicsize;
    int error = word_read(memory, object - layout->managed_dict_words * sizeof(dict), &dict);
    if (error || dict || !(memo->flags & layout->type_has_inline_values))
        return error ? error : locate_dict(memory, layout, dict, ret);
    uint8_t valid;
    error = remote_read(memory, values + offset_of(layout->values.valid), &valid, sizeof(valid));
    if (error || valid != 1)
        return error ? error : -ENOENT;
    *ret = (struct table){ memo->cached_keys, values };
    return 0;
}

static int locate_before(struct remote *memory, const struct py_layout *layout, remote_addr object,
                         const struct attribute_memo *memo, struct table *ret)
{
    remote_addr words[2]; /* 4 and 3 words before the object */
    int error = remote_read(memory, object - 4 * sizeof(words[0]), words, sizeof(words));
    if (error)
        return error;
    bool tagged = layout->instance == INSTANCE_TAGGED_BEFORE;
    remote_addr values = !tagged ? words[0] : words[1] & 1 ? words[1] + 1 : 0;
    if (!values)
        return locate_dict(memory, layout, words[1], ret);
    *ret = (struct table){ memo->cached_keys, values };
    return 0;
}

static int instance_locate(struct remote *memory, const struct py_layout *layout,
                           remote_addr object, const struct attribute_memo *memo, struct table *ret)
{
    if (memo->flags & layout->type_has_managed_dict) {
        if (layout->instance == INSTANCE_VALUES_INLINE)
            return locate_inline(memory, layout, object, memo, ret);
        return locate_before(memory, layout, object, memo, ret);
    }
    remote_addr dict;
    if (memo->dictoffset <= 0)
        return -ENOENT;
    int error = word_read(memory, object + (uint64_t)memo->dictoffset, &dict);
    return error ? error : locate_dict(memory, layout, dict, ret);
}

static int table_find(struct remote *memory, const struct py_layout *layout, struct table table,
                      const char *attribute, struct attribute_memo *memo, remote_addr *ret_value)
{
    CLEANUP(entries_done) struct entries entries = { 0 };
    int error = entries_read(memory, layout, table, 0, &entries);
    const struct entry *found = NULL;
    if (!error)
        error = entries_find(memory, layout, &entries, attribute, &found);
    if (error)
        return error;
    if (table.values) {
        memo->keys = table.keys;
        memo->index = found->index;
    }
    *ret_value = found->value;
    return 0;
}

int instance_find_next(struct remote *memory, const struct py_layout *layout, remote_addr object,
                       const char *attribute, struct attribute_memo *memo, remote_addr *ret_value)
{
    struct table table;
    int error = type_learn(memory, layout, object, memo);
    if (!error)
        error = instance_locate(memory, layout, object, memo, &table);
    if (error)
        return error;
    if (!table.values || table.keys != memo->keys)
        return table_find(memory, layout, table, attribute, memo, ret_value);
    remote_addr value, items = table.values + offset_of(layout->values.items);
    error = word_read(memory, items + memo->index * sizeof(value), &value);
    if (!error && !value)
        error = -ENOENT;
    if (!error)
        *ret_value = value;
    return error;
}

int instance_find(struct remote *memory, const struct py_layout *layout, remote_addr object,
                  const char *attribute, remote_addr *ret_value)
{
    struct attribute_memo memo = { 0 };
    return instance_find_next(memory, layout, object, attribute, &memo, ret_value);
}

int type_name_read(struct remote *memory, const struct py_layout *layout, remote_addr object,
                   char *into, size_t size)
{
    remote_addr type, name;
    if (!object_plausible(object))
        return -EBADMSG;
    int error = word_read(memory, object + offset_of(layout->object.type), &type);
    if (!error)
        error = word_read(memory, type + offset_of(layout->type.name), &name);
    return error ? error : remote_read_text(memory, name, into, size);
}
