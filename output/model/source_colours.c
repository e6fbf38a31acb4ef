#include "output/model/source_colours.h"

#include "output/model/array.h"
#include "output/model/regions.h"
#include "output/model/source_parser.h"
#include "sampler/base/cleanup.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

DEFINE_CLEANUP(TSTree *, ts_tree_delete)

/* The grammar's names of leaves, and of what is one part with all that is in it. */
static const struct {
    const char *name;
    enum source_part part;
} PARTS[] = {
    { "comment", SOURCE_COMMENT },        { "string_start", SOURCE_STRING },
    { "string_content", SOURCE_STRING },  { "string_end", SOURCE_STRING },
    { "escape_sequence", SOURCE_STRING }, { "integer", SOURCE_CONSTANT },
    { "float", SOURCE_CONSTANT },         { "true", SOURCE_CONSTANT },
    { "false", SOURCE_CONSTANT },         { "none", SOURCE_CONSTANT },
    { "ellipsis", SOURCE_CONSTANT },      { "decorator", SOURCE_DECORATOR },
    { "is not", SOURCE_KEYWORD },         { "not in", SOURCE_KEYWORD },
};

enum { MAX_SYMBOLS = 1024 };

struct walk {
    struct source_colours *colours;
    size_t count, room;
    uint32_t line_done; /* lines that have their start */
};

/* Asking the grammar takes as long as parsing a small file: once. */
static struct {
    uint8_t parts[MAX_SYMBOLS];
    TSFieldId name_field;
} grammar;
static pthread_once_t grammar_read = PTHREAD_ONCE_INIT;

/* What is a word and no name is a keyword. */
static enum source_part symbol_part(const TSLanguage *language, TSSymbol symbol)
{
    const char *name = ts_language_symbol_name(language, symbol);
    for (size_t i = 0; name && i < sizeof PARTS / sizeof *PARTS; i++)
        if (strcmp(name, PARTS[i].name) == 0)
            return PARTS[i].part;
    bool is_word = name && isalpha((unsigned char)*name) &&
                   ts_language_symbol_type(language, symbol) == TSSymbolTypeAnonymous;
    return is_word ? SOURCE_KEYWORD : SOURCE_PLAIN;
}

static void grammar_fill(void)
{
    const TSLanguage *language = tree_sitter_python();
    uint32_t count = ts_language_symbol_count(language);
    for (TSSymbol symbol = 0; symbol < count && symbol < MAX_SYMBOLS; symbol++)
        grammar.parts[symbol] = (uint8_t)symbol_part(language, symbol);
    grammar.name_field = ts_language_field_id_for_name(language, "name", 4);
}

/* ---- spans ---- */

static int span_add(struct walk *walk, uint32_t line, uint32_t first, uint32_t end,
                    enum source_part part)
{
    struct source_colours *colours = walk->colours;
    if (first >= end || line >= colours->line_count)
        return 0;
    while (walk->line_done <= line)
        colours->starts[walk->line_done++] = (uint32_t)walk->count;
    if (ARRAY_GROW(colours->items, walk->count, walk->room))
        return -ENOMEM;
    colours->items[walk->count++] = (struct source_span){ first, end, part };
    return 0;
}

/* A part may reach over several lines. */
static int node_add(struct walk *walk, TSNode node, enum source_part part)
{
    TSPoint start = ts_node_start_point(node), end = ts_node_end_point(node);
    int error = 0;
    for (uint32_t line = start.row; line <= end.row && !error; line++) {
        uint32_t first = line == start.row ? start.column : 0;
        uint32_t last = line == end.row ? end.column : UINT32_MAX;
        error = span_add(walk, line, first, last, part);
    }
    return error;
}

/* The name that a def or a class defines. */
static bool is_defined_name(const TSTreeCursor *cursor)
{
    if (ts_tree_cursor_current_field_id(cursor) != grammar.name_field)
        return false;
    TSTreeCursor parent = ts_tree_cursor_copy(cursor);
    bool found = ts_tree_cursor_goto_parent(&parent);
    const char *type = found ? ts_node_type(ts_tree_cursor_current_node(&parent)) : "";
    found = strcmp(type, "function_definition") == 0 || strcmp(type, "class_definition") == 0;
    ts_tree_cursor_delete(&parent);
    return found;
}

/* Whether what is in the node need not be looked at. */
static int node_take(struct walk *walk, const TSTreeCursor *cursor, bool *ret_whole)
{
    TSNode node = ts_tree_cursor_current_node(cursor);
    TSSymbol symbol = ts_node_symbol(node); /* an error's is beyond the table */
    enum source_part part = symbol < MAX_SYMBOLS ? grammar.parts[symbol] : SOURCE_PLAIN;
    if (part == SOURCE_PLAIN && is_defined_name(cursor))
        part = SOURCE_DEFINED;
    *ret_whole = part != SOURCE_PLAIN;
    return part == SOURCE_PLAIN ? 0 : node_add(walk, node, part);
}

static int tree_walk(struct walk *walk, TSTree *tree)
{
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    bool going = true;
    int error = 0;
    while (going && !error) {
        bool whole;
        error = node_take(walk, &cursor, &whole);
        if (!whole && ts_tree_cursor_goto_first_child(&cursor))
            continue;
        while (!ts_tree_cursor_goto_next_sibling(&cursor) && going)
            going = ts_tree_cursor_goto_parent(&cursor);
    }
    ts_tree_cursor_delete(&cursor);
    return error;
}

/* ---- the whole ---- */

static size_t line_length(const char *line)
{
    return line ? strcspn(line, "\r\n") : 0;
}

/* One text of all lines; NULL when it is too large, or out of memory. */
static char *text_join(const char *const *lines, size_t count, size_t *ret_size)
{
    size_t size = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        size += line_length(lines[i]) + 1;
    char *text = size <= REGIONS_SIZE_LIMIT ? malloc(size + 1) : NULL;
    for (size_t i = 0; text && i < count; i++) {
        size_t length = line_length(lines[i]);
        memcpy(text + used, lines[i] ? lines[i] : "", length);
        used += length;
        text[used++] = '\n';
    }
    *ret_size = size;
    return text;
}

int source_colours_read(const char *const *lines, size_t count, struct source_colours *ret)
{
    struct walk walk = { .colours = ret };
    size_t size;
    *ret = (struct source_colours){ .line_count = count };
    AUTO_FREE char *text = text_join(lines, count, &size);
    ret->starts = calloc(count + 1, sizeof *ret->starts);
    if (!ret->starts || (!text && size <= REGIONS_SIZE_LIMIT))
        return -ENOMEM;
    if (!text)
        return 0;
    CLEANUP(ts_tree_deletep) TSTree *tree = source_parse(text, size);
    if (!tree)
        return -ENOMEM;
    pthread_once(&grammar_read, grammar_fill);
    int error = tree_walk(&walk, tree);
    while (walk.line_done <= count)
        ret->starts[walk.line_done++] = (uint32_t)walk.count;
    return error;
}

void source_colours_done(struct source_colours *colours)
{
    free(colours->items);
    free(colours->starts);
}

enum source_part source_colours_find(const struct source_colours *colours, size_t line,
                                     uint32_t byte, uint32_t *at)
{
    if (line >= colours->line_count)
        return SOURCE_PLAIN;
    uint32_t end = colours->starts[line + 1];
    if (*at < colours->starts[line])
        *at = colours->starts[line];
    while (*at < end && colours->items[*at].end <= byte)
        ++*at;
    return *at < end && colours->items[*at].first <= byte ? colours->items[*at].part : SOURCE_PLAIN;
}
