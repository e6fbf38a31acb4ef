#include "pyabi/code.h"

#include "pyabi/strings.h"
#include "sampler/base/cleanup.h"

#include <string.h>

enum {
    FIRST_SLOTS = 1 << 10,
    LINE_TABLE_LIMIT = 64 << 20,
    BYTECODE_LIMIT = 64 << 20,
};

struct code_cache {
    const struct py_layout *layout;
    struct intern *texts;
    struct code_entry **slots; /* open addressing by address */
    size_t slot_count;         /* a power of two */
    size_t count;
    uint64_t walk;              /* counts them */
    struct code_entry *retired; /* of this round; somebody may still hold them */
    remote_addr code_type; /* PyCode_Type, learnt from the first object whose type is named so */
};

static void entry_free(struct code_entry *entry)
{
    if (!entry)
        return;
    free(entry->calls);
    free(entry->line_table);
    free(entry);
}

DEFINE_CLEANUP(struct code_entry *, entry_free)

int code_cache_new(const struct py_layout *layout, struct intern *texts, struct code_cache **ret)
{
    struct code_cache *cache = calloc(1, sizeof *cache);
    struct code_entry **slots = calloc(FIRST_SLOTS, sizeof *slots);
    if (!cache || !slots) {
        free(cache);
        free(slots);
        return -ENOMEM;
    }
    cache->layout = layout;
    cache->texts = texts;
    cache->slots = slots;
    cache->slot_count = FIRST_SLOTS;
    *ret = cache;
    return 0;
}

void code_cache_start_round(struct code_cache *cache)
{
    while (cache->retired) {
        struct code_entry *entry = cache->retired;
        cache->retired = entry->next_retired;
        entry_free(entry);
    }
}

void code_cache_start_walk(struct code_cache *cache)
{
    cache->walk++;
}

static void entry_retire(struct code_cache *cache, struct code_entry *entry)
{
    entry->retired = true;
    entry->next_retired = cache->retired;
    cache->retired = entry;
}

void code_cache_empty(struct code_cache *cache)
{
    code_cache_start_round(cache);
    for (size_t i = 0; i < cache->slot_count; i++) {
        entry_free(cache->slots[i]);
        cache->slots[i] = NULL;
    }
    cache->count = 0;
}

void code_cache_free(struct code_cache *cache)
{
    if (!cache)
        return;
    code_cache_empty(cache);
    free(cache->slots);
    free(cache);
}

size_t code_cache_count(const struct code_cache *cache)
{
    return cache->count;
}

static struct code_entry **entry_slot(struct code_cache *cache, remote_addr address)
{
    size_t slot = (address >> 4) * 0x9E3779B97F4A7C15u >> 32 & (cache->slot_count - 1);
    while (cache->slots[slot] && cache->slots[slot]->address != address)
        slot = (slot + 1) & (cache->slot_count - 1);
    return &cache->slots[slot];
}

static int slots_grow(struct code_cache *cache)
{
    size_t old_count = cache->slot_count;
    struct code_entry **old = cache->slots;
    struct code_entry **slots = calloc(2 * old_count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    cache->slots = slots;
    cache->slot_count = 2 * old_count;
    for (size_t i = 0; i < old_count; i++)
        if (old[i])
            *entry_slot(cache, old[i]->address) = old[i];
    free(old);
    return 0;
}

/* ---- what a code object's head says ---- */

static size_t identity_size(const struct py_layout *layout)
{
    return offset_of(layout->code.line_table) + 8 - offset_of(layout->code.argcount);
}

static uint64_t head_word(const struct py_layout *layout, const uint8_t *head,
                          struct py_offset field)
{
    uint64_t value;
    memcpy(&value, head + offset_of(field) - offset_of(layout->code.argcount), sizeof value);
    return value;
}

static int32_t head_int(const struct py_layout *layout, const uint8_t *head, struct py_offset field)
{
    return (int32_t)head_word(layout, head, field);
}

/* Names are compared by content where code objects carry no version: length, hash and first bytes.
 * What is unreadable is nobody's name. */
static bool names_fetch(const struct code_cache *cache, struct view *view, struct remote *source,
                        const uint8_t *head, uint8_t (*ret_names)[NAME_BYTES])
{
    const struct py_layout *layout = cache->layout;
    const remote_addr objects[2] = { head_word(layout, head, layout->code.name),
                                     head_word(layout, head, layout->code.filename) };
    for (unsigned i = 0; i < 2 && !offset_present(layout->code.version); i++) {
        int error = 0;
        if (!objects[i])
            continue;
        remote_addr at = objects[i] + offset_of(layout->unicode.length);
        const void *now = view_fetch(view, source, PIECE_CODE, at, NAME_BYTES, &error);
        if (!now)
            return false;
        memcpy(ret_names[i], now, NAME_BYTES);
    }
    return true;
}

/* Is it the same object now as the one whose head and names were read before? Asked of the memory
 * itself, in one read. */
static bool identity_stands(const struct code_cache *cache, struct page_cache *pages,
                            remote_addr address, const uint8_t *head,
                            const uint8_t (*names)[NAME_BYTES])
{
    const struct py_layout *layout = cache->layout;
    const remote_addr objects[2] = { head_word(layout, head, layout->code.name),
                                     head_word(layout, head, layout->code.filename) };
    uint8_t head_now[IDENTITY_BYTES], names_now[2][NAME_BYTES] = { 0 };
    struct remote_piece pieces[3] = { { address + offset_of(layout->code.argcount), head_now,
                                        identity_size(layout) } };
    size_t count = 1;
    for (unsigned i = 0; i < 2 && !offset_present(layout->code.version); i++)
        if (objects[i])
            pieces[count++] = (struct remote_piece){ objects[i] + offset_of(layout->unicode.length),
                                                     names_now[i], NAME_BYTES };
    return remote_read_all(page_cache_source(pages), pieces, count) == 0 &&
           memcmp(head_now, head, identity_size(layout)) == 0 &&
           memcmp(names_now, names, sizeof names_now) == 0;
}

/* ---- reading one for the first time ---- */

static int type_check(struct code_cache *cache, struct remote *source, remote_addr address)
{
    const struct py_layout *layout = cache->layout;
    remote_addr type = 0, name = 0;
    char text[8] = "";
    int error = remote_read(source, address + offset_of(layout->object.type), &type, sizeof type);
    if (error)
        return error;
    if (cache->code_type)
        return type == cache->code_type ? 0 : -EBADMSG;
    if (remote_read(source, type + offset_of(layout->type.name), &name, sizeof name) ||
        remote_read(source, name, text, 5) || strcmp(text, "code") != 0)
        return -EBADMSG;
    cache->code_type = type;
    return 0;
}

/* The interpreter's own trampolines have no names, or one text for both and a line table that says
 * "none" (0 or 1 byte: _Py_InitCleanup in Python/specialize.c of 3.12 and 3.13). */
static bool is_trampoline(const struct py_layout *layout, struct remote *source,
                          const uint8_t *head)
{
    remote_addr name = head_word(layout, head, layout->code.name);
    remote_addr filename = head_word(layout, head, layout->code.filename);
    remote_addr lines = head_word(layout, head, layout->code.line_table);
    uint64_t length = UINT64_MAX;
    if (!name || !filename)
        return true;
    return name == filename &&
           remote_read(source, lines + offset_of(layout->bytes.length), &length, 8) == 0 &&
           length <= 1;
}

static int texts_read(struct code_cache *cache, struct remote *source, const uint8_t *head,
                      struct code_entry *entry)
{
    const struct py_layout *layout = cache->layout;
    struct py_offset name_field =
        offset_present(layout->code.qualname) ? layout->code.qualname : layout->code.name;
    remote_addr name = head_word(layout, head, name_field);
    remote_addr filename = head_word(layout, head, layout->code.filename);
    AUTO_FREE char *name_text = NULL;
    AUTO_FREE char *filename_text = NULL;

    if (is_trampoline(layout, source, head)) {
        entry->internal = true;
        return 0;
    }
    int error = string_read(source, layout, name, &name_text);
    if (!error)
        error = string_read(source, layout, filename, &filename_text);
    if (error)
        return error;
    entry->name = intern_text(cache->texts, name_text);
    entry->filename = intern_text(cache->texts, filename_text);
    return entry->name && entry->filename ? 0 : -ENOMEM;
}

static uint32_t frame_words(const struct py_layout *layout, const uint8_t *head)
{
    if (offset_present(layout->code.framesize))
        return (uint32_t)head_int(layout, head, layout->code.framesize);
    if (offset_present(layout->code.nlocalsplus))
        return (uint32_t)(head_int(layout, head, layout->code.nlocalsplus) +
                          head_int(layout, head, layout->code.stacksize)) +
               offset_of(layout->frame.localsplus) / 8;
    return 0;
}

static bool opcode_is_call(const struct py_layout *layout, uint8_t opcode)
{
    for (const struct opcode_range *range = layout->call_opcodes; range->last; range++)
        if (opcode >= range->first && opcode <= range->last)
            return true;
    return false;
}

/* Specialisation turns a call into another call, so the bits stay true. */
static void calls_mark(const struct py_layout *layout, const uint8_t *bytecode, size_t size,
                       struct code_entry *entry)
{
    entry->bytecode_size = size;
    entry->calls = calloc(size / 16 + 1, 1);
    for (size_t unit = 0; entry->calls && unit < size / 2; unit++)
        if (opcode_is_call(layout, bytecode[2 * unit]))
            entry->calls[unit / 8] |= (uint8_t)(1 << unit % 8);
}

static int bytecode_read(const struct py_layout *layout, struct remote *source, remote_addr address,
                         struct code_entry *entry)
{
    AUTO_FREE uint8_t *bytecode = NULL;
    size_t size = 0;
    int error;
    if (offset_present(layout->code.bytecode_inline)) {
        uint64_t units = 0;
        error = remote_read(source, address + offset_of(layout->object.var_size), &units, 8);
        if (error || units > BYTECODE_LIMIT / 2)
            return error ? error : -EBADMSG;
        size = 2 * (size_t)units;
        bytecode = malloc(size + 1);
        if (!bytecode)
            return -ENOMEM;
        error =
            remote_read(source, address + offset_of(layout->code.bytecode_inline), bytecode, size);
    } else {
        remote_addr object = 0;
        error = remote_read(source, address + offset_of(layout->code.bytecode), &object, 8);
        if (!error)
            error = bytes_read(source, layout, object, BYTECODE_LIMIT, &bytecode, &size);
    }
    if (!error)
        calls_mark(layout, bytecode, size, entry);
    return error;
}

static int entry_read(struct code_cache *cache, struct remote *source, remote_addr address,
                      const uint8_t *head, struct code_entry **ret)
{
    const struct py_layout *layout = cache->layout;
    CLEANUP(entry_freep) struct code_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return -ENOMEM;
    int error = type_check(cache, source, address);
    if (!error)
        error = texts_read(cache, source, head, entry);
    if (!error && !entry->internal)
        error = bytes_read(source, layout, head_word(layout, head, layout->code.line_table),
                           LINE_TABLE_LIMIT, &entry->line_table, &entry->line_table_size);
    if (!error && !entry->internal)
        error = bytecode_read(layout, source, address, entry);
    if (error)
        return error;
    entry->address = address;
    entry->first_line = head_int(layout, head, layout->code.firstlineno);
    entry->frame_words = frame_words(layout, head);
    memcpy(entry->identity, head, identity_size(layout));
    for (size_t i = 0; i < sizeof entry->recent / sizeof *entry->recent; i++)
        entry->recent[i].offset = INT64_MIN;
    *ret = TAKE_PTR(entry);
    return 0;
}

static bool entry_is_current(const struct code_cache *cache, struct view *view,
                             struct remote *source, const struct code_entry *entry,
                             const uint8_t *head)
{
    uint8_t names[2][NAME_BYTES] = { 0 };
    return memcmp(entry->identity, head, identity_size(cache->layout)) == 0 &&
           names_fetch(cache, view, source, head, names) &&
           memcmp(entry->names, names, sizeof names) == 0;
}

/* Brings the pages in which all that belongs to it begins, in one read. */
static void parts_fetch(const struct py_layout *layout, struct remote *source, remote_addr address,
                        const uint8_t *head)
{
    const struct py_offset fields[] = { layout->code.name, layout->code.filename,
                                        layout->code.line_table, layout->code.qualname,
                                        layout->code.bytecode };
    uint8_t first;
    struct remote_piece pieces[sizeof fields / sizeof *fields + 1] = { { address, &first, 1 } };
    size_t count = 1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t at = offset_of(fields[i]) - offset_of(layout->code.argcount);
        if (offset_present(fields[i]) && at < identity_size(layout))
            pieces[count++] =
                (struct remote_piece){ head_word(layout, head, fields[i]), &first, 1 };
    }
    source->read_pieces(source, pieces, count, NULL); /* what cannot be read shows later */
}

/*
 * A new entry. The thread may be running, even where the caller hoped that it is not: what is read
 * here is of one object only if that was there before and is there afterwards. Pages that were kept
 * can be older than the head.
 */
static int entry_add(struct code_cache *cache, struct view *view, struct page_cache *pages,
                     remote_addr address, const uint8_t *head)
{
    const struct py_layout *layout = cache->layout;
    struct remote *source = page_cache_remote(pages);
    CLEANUP(entry_freep) struct code_entry *entry = NULL;
    uint8_t names[2][NAME_BYTES] = { 0 };
    int error = 2 * cache->count >= cache->slot_count ? slots_grow(cache) : 0;
    if (error)
        return error;
    if (!names_fetch(cache, view, source, head, names))
        return -EFAULT;
    page_cache_forget(pages);
    parts_fetch(layout, source, address, head);
    error = entry_read(cache, source, address, head, &entry);
    if (!error && !identity_stands(cache, pages, address, head, names))
        error = -EAGAIN;
    if (error)
        return error;
    memcpy(entry->names, names, sizeof names);
    struct code_entry **slot = entry_slot(cache, address);
    if (*slot)
        entry_retire(cache, *slot);
    else
        cache->count++;
    *slot = TAKE_PTR(entry);
    return 0;
}

int code_cache_find(struct code_cache *cache, struct view *view, struct page_cache *pages,
                    remote_addr address, uint64_t generation, struct code_entry **ret)
{
    const struct py_layout *layout = cache->layout;
    struct remote *source = page_cache_remote(pages);
    struct code_entry *entry = *entry_slot(cache, address);
    /* the bytes of one walk are read once: a caller that was its own callee needs no other look */
    bool is_proven = entry && cache->walk && entry->walk == cache->walk;
    if (is_proven || (entry && generation && entry->generation == generation)) {
        *ret = entry;
        return 0;
    }
    int error = -EBADMSG;
    if (!address || identity_size(layout) > IDENTITY_BYTES)
        return error;
    uint8_t head[IDENTITY_BYTES];
    const void *now =
        view_fetch(view, source, PIECE_CODE, address + offset_of(layout->code.argcount),
                   identity_size(layout), &error);
    if (!now)
        return error;
    memcpy(head, now, identity_size(layout));

    if (!entry || !entry_is_current(cache, view, source, entry, head)) {
        error = entry_add(cache, view, pages, address, head);
        if (error)
            return error;
        entry = *entry_slot(cache, address);
    }
    entry->generation = generation;
    entry->walk = cache->walk;
    *ret = entry;
    return 0;
}

bool code_is_call(const struct code_entry *code, int64_t offset)
{
    if (!code->calls || offset < 0 || (uint64_t)offset >= code->bytecode_size)
        return false;
    return code->calls[offset / 16] >> (offset / 2 % 8) & 1;
}

struct code_position code_find_position(const struct py_layout *layout, struct code_entry *code,
                                        int64_t offset)
{
    size_t memo = (size_t)(offset / 2) % (sizeof code->recent / sizeof *code->recent);
    if (code->recent[memo].offset == offset)
        return code->recent[memo].position;

    struct code_position position = { 0 };
    if (lines_find(layout->lines, code->line_table, code->line_table_size, code->first_line, offset,
                   &position))
        position = (struct code_position){ 0 };
    code->recent[memo].offset = offset;
    code->recent[memo].position = position;
    return position;
}
