/* One line a stack: its frames, outermost first, with semicolons between them, and how often it was
 * hit. */
#include "output/export/export.h"

#include "output/export/frame_table.h"
#include "output/export/ledger.h"
#include "output/model/array.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "sampler/base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* The same text, whatever instructions its native frames were at. */
struct line {
    uint32_t thread, stack; /* the first stack that has it */
    uint64_t hits;
};

struct collapsed {
    FILE *into;
    struct frame_table frames;
    struct ledger ledger;
    struct key_index nodes; /* {1 + the parent, place}: a tree of places */
    struct key_index line_index;
    struct line *lines;
    size_t line_room;
    bool names_threads;
};

/* What stands for itself: nearly all there is. */
static size_t plain_length(const char *text)
{
    size_t length = 0;
    while (text[length] >= ' ' && text[length] != ';' && text[length] != 0x7F)
        length++;
    return length;
}

/* What would part frames or lines, or is no text, is replaced. */
static size_t put_character(FILE *into, const char *text)
{
    uint32_t character;
    size_t size = utf8_decode(text, &character);
    if (!size)
        fputs(UTF8_REPLACEMENT, into);
    else if (character == ';')
        putc(':', into);
    else if (character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x2028 ||
             character == 0x2029)
        putc(' ', into);
    else
        fwrite(text, 1, size, into);
    return size ? size : 1;
}

static void put_clean(FILE *into, const char *text)
{
    while (*text) {
        size_t length = plain_length(text);
        fwrite_unlocked(text, 1, length, into);
        text += length;
        if (*text)
            text += put_character(into, text);
    }
}

static int put_thread(const struct collapsed *collapsed, uint32_t number)
{
    const struct ledger_thread *thread = &collapsed->ledger.threads[number];
    FILE *into = collapsed->into;
    if (!collapsed->names_threads || thread->pid < 0)
        return 0;
    AUTO_FREE char *command = ledger_command(thread);
    if (!command)
        return -ENOMEM;
    fprintf(into, "process %" PRId64 " \"", thread->pid);
    put_clean(into, command);
    fprintf(into, "\";thread %" PRId64 " \"", thread->tid);
    put_clean(into, thread->name);
    fputs("\";", into);
    return 0;
}

static void put_place(const struct collapsed *collapsed, uint32_t number)
{
    const struct frame_place *place = &collapsed->frames.places[number];
    const struct frame_function *function = &collapsed->frames.functions[place->function];
    put_clean(collapsed->into, function->name);
    if (!*function->file)
        return;
    fputs(" (", collapsed->into);
    put_clean(collapsed->into, function->file);
    if (place->line)
        fprintf(collapsed->into, ":%" PRId64, place->line);
    putc(')', collapsed->into);
}

static int put_line(const struct collapsed *collapsed, const struct line *line)
{
    const struct frame_stack *stack = &collapsed->frames.stacks[line->stack];
    if (put_thread(collapsed, line->thread))
        return -ENOMEM;
    for (size_t i = 0; i < stack->count; i++) {
        fputs(i ? ";" : "", collapsed->into);
        put_place(collapsed, collapsed->frames.locations[stack->locations[i]].place);
    }
    fprintf(collapsed->into, " %" PRIu64 "\n", line->hits);
    return 0;
}

/* The number of the node where the stack ends, 0 for an empty one. */
static int64_t node_find(struct collapsed *collapsed, const struct frame_stack *stack)
{
    int64_t node = 0;
    for (size_t i = 0; i < stack->count && node >= 0; i++) {
        uint32_t place = collapsed->frames.locations[stack->locations[i]].place;
        node = key_index_add(&collapsed->nodes, (struct key){ { (uint64_t)node, place } });
        node += node >= 0;
    }
    return node;
}

static int entry_add(struct collapsed *collapsed, const struct ledger_entry *entry)
{
    size_t count = collapsed->line_index.count;
    int64_t node = node_find(collapsed, &collapsed->frames.stacks[entry->stack]);
    if (node < 0 || ARRAY_GROW(collapsed->lines, count, collapsed->line_room))
        return -ENOMEM;
    int64_t number =
        key_index_add(&collapsed->line_index, (struct key){ { entry->thread, (uint64_t)node } });
    if (number < 0)
        return -ENOMEM;
    if (number == (int64_t)count)
        collapsed->lines[number] = (struct line){ entry->thread, entry->stack, 0 };
    collapsed->lines[number].hits += entry->hits;
    return 0;
}

static int lines_write(struct collapsed *collapsed)
{
    const struct ledger *ledger = &collapsed->ledger;
    for (size_t i = 0; i < ledger->entry_count; i++) {
        const struct ledger_entry *entry = &ledger->entries[i];
        bool tells = entry->hits && collapsed->frames.stacks[entry->stack].count;
        if (tells && entry_add(collapsed, entry))
            return -ENOMEM;
    }
    int error = 0;
    for (size_t i = 0; i < collapsed->line_index.count && !error; i++)
        error = put_line(collapsed, &collapsed->lines[i]);
    return error;
}

int collapsed_write(const struct report *report, FILE *into)
{
    struct collapsed collapsed = {
        .into = into,
        .names_threads = report->threads.count > 1 || report->processes.count > 1,
    };
    int error = frame_table_init(&collapsed.frames, report);
    if (!error)
        error = ledger_init(&collapsed.ledger, report);
    if (!error)
        error = lines_write(&collapsed);
    frame_table_done(&collapsed.frames);
    ledger_done(&collapsed.ledger);
    key_index_done(&collapsed.nodes);
    key_index_done(&collapsed.line_index);
    free(collapsed.lines);
    return error;
}
