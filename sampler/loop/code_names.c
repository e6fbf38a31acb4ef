#include "sampler/loop/code_names.h"

#include "pyabi/lines.h"
#include "sampler/base/arena.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "sampler/base/intern.h"
#include "sampler/base/utf8.h"

#include <string.h>

enum { LINES_CACHED = 1 << 13, UNKNOWN = 0 };

struct code {
    const char *name, *file;
    const uint8_t *table;
    const struct py_layout *layout; /* NULL: a release that nobody knows */
    uint32_t table_size;
    int32_t first_line;
    uint64_t hash;
};

struct process_codes {
    pid_t pid;
    uint32_t *numbers; /* by the process's id: 1 + the number of the code, or UNKNOWN */
    size_t count;
};

struct found_line {
    uint32_t code; /* 1 + its number */
    int32_t offset, line;
};

struct code_names {
    struct intern *texts;
    struct arena tables;
    size_t tables_size;
    struct code *codes;
    uint32_t *slots; /* hashed by content: 1 + a number, or 0 */
    size_t count, room, slot_count;
    struct process_codes *processes; /* by pid */
    size_t process_count, process_room;
    struct found_line lines[LINES_CACHED];
};

int code_names_new(struct code_names **ret)
{
    struct code_names *names = calloc(1, sizeof *names);
    if (!names)
        return -ENOMEM;
    if (intern_new(&names->texts)) {
        free(names);
        return -ENOMEM;
    }
    *ret = names;
    return 0;
}

void code_names_free(struct code_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->process_count; i++)
        free(names->processes[i].numbers);
    free(names->processes);
    free(names->codes);
    free(names->slots);
    arena_done(&names->tables);
    intern_free(names->texts);
    free(names);
}

/* ---- processes ---- */

/* Where the process is, or would be. */
static size_t process_slot(const struct code_names *names, pid_t pid)
{
    size_t low = 0, high = names->process_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->processes[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct process_codes *process_find(const struct code_names *names, pid_t pid)
{
    size_t slot = process_slot(names, pid);
    return slot < names->process_count && names->processes[slot].pid == pid
               ? &names->processes[slot]
               : NULL;
}

bool code_names_knows(const struct code_names *names, pid_t pid)
{
    return process_find(names, pid) != NULL;
}

void code_names_forget(struct code_names *names, pid_t pid)
{
    struct process_codes *process = process_find(names, pid);
    if (!process)
        return;
    free(process->numbers);
    size_t behind = names->process_count - (size_t)(process - names->processes) - 1;
    memmove(process, process + 1, behind * sizeof *process);
    names->process_count--;
}

static int process_add(struct code_names *names, struct process_codes *added)
{
    if (names->process_count == names->process_room) {
        size_t room = names->process_room ? 2 * names->process_room : 16;
        struct process_codes *processes = realloc(names->processes, room * sizeof *processes);
        if (!processes)
            return -ENOMEM;
        names->processes = processes;
        names->process_room = room;
    }
    struct process_codes *at = &names->processes[process_slot(names, added->pid)];
    size_t behind = names->process_count - (size_t)(at - names->processes);
    memmove(at + 1, at, behind * sizeof *at);
    *at = *added;
    names->process_count++;
    return 0;
}

int code_names_begin(struct code_names *names, pid_t pid, pid_t parent, bool inherits)
{
    const struct process_codes *heir = inherits ? process_find(names, parent) : NULL;
    struct process_codes process = { .pid = pid };
    if (heir && heir->count) {
        process.numbers = malloc(heir->count * sizeof *process.numbers);
        if (!process.numbers)
            return -ENOMEM;
        memcpy(process.numbers, heir->numbers, heir->count * sizeof *process.numbers);
        process.count = heir->count;
    }
    code_names_forget(names, pid);
    bool is_room = names->process_count < NAMES_PROCESSES_MAX;
    int error = is_room ? process_add(names, &process) : 0;
    if (!is_room || error)
        free(process.numbers);
    return error;
}

static int number_set(struct process_codes *process, uint32_t id, uint32_t number)
{
    if (id >= NAMES_PER_PROCESS)
        return 0;
    if (id >= process->count) {
        size_t count = process->count ? process->count : 64;
        while (count <= id)
            count *= 2;
        uint32_t *numbers = realloc(process->numbers, count * sizeof *numbers);
        if (!numbers)
            return -ENOMEM;
        memset(numbers + process->count, 0, (count - process->count) * sizeof *numbers);
        process->numbers = numbers;
        process->count = count;
    }
    process->numbers[id] = number + 1;
    return 0;
}

/* ---- codes, by content ---- */

static uint64_t code_hash(const struct code *code)
{
    uint64_t hash = 0xCBF29CE484222325u ^ (uintptr_t)code->name; /* FNV-1a */
    hash = (hash ^ (uintptr_t)code->file) * 0x100000001B3u;
    hash = (hash ^ (uint32_t)code->first_line) * 0x100000001B3u;
    for (size_t i = 0; i < code->table_size; i++)
        hash = (hash ^ code->table[i]) * 0x100000001B3u;
    return hash ^ hash >> 32;
}

static bool code_is(const struct code *a, const struct code *b)
{
    return a->hash == b->hash && a->name == b->name && a->file == b->file &&
           a->layout == b->layout && a->first_line == b->first_line &&
           a->table_size == b->table_size && memcmp(a->table, b->table, a->table_size) == 0;
}

static uint32_t *code_slot(const struct code_names *names, const struct code *code)
{
    size_t mask = names->slot_count - 1, slot = code->hash & mask;
    while (names->slots[slot] && !code_is(&names->codes[names->slots[slot] - 1], code))
        slot = (slot + 1) & mask;
    return &names->slots[slot];
}

/* At most half of the slots are taken. */
static int codes_grow(struct code_names *names)
{
    size_t room = names->room ? 2 * names->room : 256;
    struct code *codes = realloc(names->codes, room * sizeof *codes);
    if (!codes)
        return -ENOMEM;
    names->codes = codes;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(names->slots);
    names->slots = slots;
    names->slot_count = 2 * room;
    names->room = room;
    for (size_t i = 0; i < names->count; i++)
        *code_slot(names, &codes[i]) = (uint32_t)i + 1;
    return 0;
}

static bool is_full(const struct code_names *names)
{
    return names->count >= NAMES_CODES_MAX ||
           names->tables_size + intern_size(names->texts) > NAMES_SIZE_MAX;
}

/* `code` with a table that is still the caller's. Its number, -ENOENT when there is no room, or
 * -ENOMEM. */
static int64_t code_intern(struct code_names *names, struct code *code)
{
    if (names->count == names->room && codes_grow(names))
        return -ENOMEM;
    code->hash = code_hash(code);
    uint32_t *slot = code_slot(names, code);
    if (*slot)
        return *slot - 1;
    if (is_full(names))
        return -ENOENT;
    uint8_t *table = arena_take(&names->tables, code->table_size);
    if (!table)
        return -ENOMEM;
    memcpy(table, code->table, code->table_size);
    code->table = table;
    names->tables_size += code->table_size;
    names->codes[names->count] = *code;
    *slot = (uint32_t)++names->count;
    return *slot - 1;
}

/* Bytes of a process as a text that can be shown; up to a NUL, which no name has. */
static int text_intern(struct code_names *names, const uint8_t *bytes, size_t size,
                       const char **ret)
{
    AUTO_FREE char *text = strndup((const char *)bytes, size);
    AUTO_FREE char *repaired = text && !utf8_is_valid(text) ? utf8_repair(text) : NULL;
    if (!text || (!repaired && !utf8_is_valid(text)))
        return -ENOMEM;
    *ret = intern_text(names->texts, repaired ?: text);
    return *ret ? 0 : -ENOMEM;
}

int code_names_add(struct code_names *names, const struct code_record *record)
{
    struct process_codes *process = process_find(names, (pid_t)record->head.pid);
    const uint8_t *body = (const uint8_t *)(record + 1);
    if (!process || is_full(names))
        return 0;
    struct code code = {
        .table = body + record->name_size + record->file_size,
        .table_size = record->table_size,
        .first_line = record->first_line > 0 ? record->first_line : 0,
        .layout = layout_find(record->major, record->minor, record->free_threaded),
    };
    int error = text_intern(names, body, record->name_size, &code.name);
    if (!error)
        error = text_intern(names, body + record->name_size, record->file_size, &code.file);
    int64_t number = error ? error : code_intern(names, &code);
    if (number < 0)
        return number == -ENOENT ? 0 : (int)number;
    return number_set(process, record->code_id, (uint32_t)number);
}

/* ---- frames ---- */

static int line_find(const struct code *code, int32_t offset)
{
    struct code_position position;
    if (!code->layout || lines_find(code->layout->lines, code->table, code->table_size,
                                    code->first_line, offset, &position))
        return code->first_line;
    return position.line;
}

/* Lines are looked up again and again at the same places. */
static int line_look(struct code_names *names, uint32_t number, int32_t offset)
{
    uint64_t hash = ((uint64_t)number << 32 | (uint32_t)offset) * 0x9E3779B97F4A7C15u;
    struct found_line *found = &names->lines[hash >> 51 & (LINES_CACHED - 1)];
    if (found->code != number + 1 || found->offset != offset)
        *found =
            (struct found_line){ number + 1, offset, line_find(&names->codes[number], offset) };
    return found->line;
}

bool code_names_find(struct code_names *names, pid_t pid, const struct record_frame *frame,
                     struct frame_event *ret)
{
    const struct process_codes *process = process_find(names, pid);
    if (!process || frame->code_id >= process->count || process->numbers[frame->code_id] == UNKNOWN)
        return false;
    uint32_t number = process->numbers[frame->code_id] - 1;
    const struct code *code = &names->codes[number];
    *ret = (struct frame_event){
        .kind = FRAME_PYTHON,
        .name = *code->name ? code->name : NULL,
        .file = *code->file ? code->file : NULL,
        .line = line_look(names, number, frame->offset),
        .first_line = code->first_line,
    };
    return true;
}
