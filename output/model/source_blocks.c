#include "output/model/source_blocks.h"

#include "output/model/array.h"
#include "output/model/source_parser.h"

#include <errno.h>
#include <string.h>

enum symbol_kind {
    SYMBOL_OTHER, /* expressions, clauses, punctuation */
    SYMBOL_STATEMENT,
    SYMBOL_LOOP,
    SYMBOL_IF,
    SYMBOL_ELIF,
    SYMBOL_WITH,
    SYMBOL_DEF,
    SYMBOL_CLASS,
    SYMBOL_IMPORT,
    SYMBOL_GLOBAL,
    SYMBOL_DECORATED,
    SYMBOL_DECORATOR,
    SYMBOL_BLANK, /* no part of any statement, wherever it stands */
};

static const struct {
    const char *name;
    enum symbol_kind kind;
} SYMBOLS[] = {
    { "assert_statement", SYMBOL_STATEMENT },
    { "break_statement", SYMBOL_STATEMENT },
    { "continue_statement", SYMBOL_STATEMENT },
    { "delete_statement", SYMBOL_STATEMENT },
    { "exec_statement", SYMBOL_STATEMENT },
    { "expression_statement", SYMBOL_STATEMENT },
    { "global_statement", SYMBOL_GLOBAL },
    { "match_statement", SYMBOL_STATEMENT },
    { "nonlocal_statement", SYMBOL_STATEMENT },
    { "pass_statement", SYMBOL_STATEMENT },
    { "print_statement", SYMBOL_STATEMENT },
    { "raise_statement", SYMBOL_STATEMENT },
    { "return_statement", SYMBOL_STATEMENT },
    { "try_statement", SYMBOL_STATEMENT },
    { "type_alias_statement", SYMBOL_STATEMENT },
    { "for_statement", SYMBOL_LOOP },
    { "while_statement", SYMBOL_LOOP },
    { "if_statement", SYMBOL_IF },
    { "elif_clause", SYMBOL_ELIF },
    { "with_statement", SYMBOL_WITH },
    { "function_definition", SYMBOL_DEF },
    { "class_definition", SYMBOL_CLASS },
    { "import_statement", SYMBOL_IMPORT },
    { "import_from_statement", SYMBOL_IMPORT },
    { "future_import_statement", SYMBOL_IMPORT },
    { "decorated_definition", SYMBOL_DECORATED },
    { "decorator", SYMBOL_DECORATOR },
    { "comment", SYMBOL_BLANK },
    { "line_continuation", SYMBOL_BLANK },
};

/* More names in one function's `global` than this are not looked at. */
enum { MAX_SYMBOLS = 1024, MAX_GLOBALS = 100 };

/* A block whose end is not reached yet, or an elif, which lasts as long as its if. */
struct open_block {
    int32_t block;
    uint32_t depth;
};

struct walk {
    const char *text;
    struct arena *arena;
    struct source_blocks *blocks;
    uint8_t kinds[MAX_SYMBOLS]; /* enum symbol_kind by the grammar's number */
    struct open_block *open;
    size_t open_count, open_room, block_room, definition_room, import_room;
    struct {
        uint32_t depth, first_line; /* 0: none are waiting for their definition */
        struct text_list texts;
    } decorators;
    bool in_global;
    struct {
        char *text; /* NULL: not in an import; room for twice the statement */
        size_t size;
        bool after_keyword, after_comma;
    } import;
};

static void kinds_fill(struct walk *walk, const TSLanguage *language)
{
    uint32_t count = ts_language_symbol_count(language);
    for (TSSymbol symbol = 0; symbol < count && symbol < MAX_SYMBOLS; symbol++) {
        const char *name = ts_language_symbol_name(language, symbol);
        for (size_t i = 0; name && i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++)
            if (strcmp(name, SYMBOLS[i].name) == 0)
                walk->kinds[symbol] = (uint8_t)SYMBOLS[i].kind;
    }
}

static enum symbol_kind node_kind(const struct walk *walk, TSNode node)
{
    TSSymbol symbol = ts_node_symbol(node); /* an error's is beyond the table */
    return symbol < MAX_SYMBOLS ? walk->kinds[symbol] : SYMBOL_OTHER;
}

static uint32_t node_first_line(TSNode node)
{
    return ts_node_start_point(node).row + 1;
}

static const char *node_text(const struct walk *walk, TSNode node)
{
    uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);
    char *text = arena_take(walk->arena, (size_t)(end - start) + 1);
    if (text)
        memcpy(text, walk->text + start, end - start);
    return text;
}

static bool node_is_async(TSNode node)
{
    TSNode first = ts_node_child(node, 0);
    return !ts_node_is_null(first) && strcmp(ts_node_type(first), "async") == 0;
}

static enum block_kind node_block_kind(enum symbol_kind kind, TSNode node)
{
    switch (kind) {
    case SYMBOL_LOOP:
        return node_is_async(node) ? BLOCK_ASYNC_LOOP : BLOCK_LOOP;
    case SYMBOL_DEF:
        return node_is_async(node) ? BLOCK_ASYNC_DEF : BLOCK_DEF;
    case SYMBOL_WITH: /* Scalene has no word for the other one */
        return node_is_async(node) ? BLOCK_STATEMENT : BLOCK_WITH;
    case SYMBOL_IF:
    case SYMBOL_ELIF:
        return BLOCK_IF;
    case SYMBOL_CLASS:
        return BLOCK_CLASS;
    default:
        return BLOCK_STATEMENT;
    }
}

static int text_add(struct arena *arena, struct text_list *list, const char *text)
{
    if (!text)
        return -ENOMEM;
    if ((list->count & (list->count - 1)) == 0) { /* full: doubled */
        const char **items = arena_take(arena, (list->count ? list->count * 2 : 1) * sizeof *items);
        if (!items)
            return -ENOMEM;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
    }
    list->items[list->count++] = text;
    return 0;
}

/* One decorator more; its text is the expression behind the @. */
static int decorator_add(struct walk *walk, TSNode node, uint32_t depth)
{
    TSNode expression = ts_node_named_child(node, 0);
    if (ts_node_is_null(expression))
        return 0;
    if (walk->decorators.depth != depth)
        memset(&walk->decorators, 0, sizeof walk->decorators);
    walk->decorators.depth = depth;
    if (!walk->decorators.first_line)
        walk->decorators.first_line = node_first_line(node);
    return text_add(walk->arena, &walk->decorators.texts, node_text(walk, expression));
}

/* The name in one `global` more: a definition of that name is qualified by nothing. */
static int global_add(struct walk *walk, TSNode name)
{
    const struct source_block *block = &walk->blocks->items[walk->open[walk->open_count - 1].block];
    if (block->owner < 0)
        return 0;
    struct text_list *globals = &walk->blocks->definitions[block->owner].globals;
    if (globals->count >= MAX_GLOBALS)
        return 0;
    return text_add(walk->arena, globals, node_text(walk, name));
}

static bool text_list_has(const struct text_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

/* Decorators stand beside their definition. */
static int definition_add(struct walk *walk, TSNode node, struct source_block *block,
                          uint32_t depth)
{
    struct source_blocks *blocks = walk->blocks;
    TSNode name = ts_node_child_by_field_name(node, "name", 4);
    struct source_definition definition = { .block = (int32_t)blocks->count,
                                            .first_line = block->lines.first };
    if (walk->decorators.first_line && walk->decorators.depth == depth) {
        definition.first_line = walk->decorators.first_line;
        definition.decorators = walk->decorators.texts;
    }
    memset(&walk->decorators, 0, sizeof walk->decorators);
    definition.name = ts_node_is_null(name) ? "" : node_text(walk, name);
    if (!definition.name)
        return -ENOMEM;
    definition.is_global =
        block->owner >= 0 &&
        text_list_has(&blocks->definitions[block->owner].globals, definition.name);

    if (ARRAY_GROW(blocks->definitions, blocks->definition_count, walk->definition_room))
        return -ENOMEM;
    block->definition = (int32_t)blocks->definition_count;
    blocks->definitions[blocks->definition_count++] = definition;
    return 0;
}

static int block_open(struct walk *walk, TSNode node, enum symbol_kind kind, uint32_t depth)
{
    struct source_blocks *blocks = walk->blocks;
    uint32_t line = node_first_line(node);
    struct source_block block = { .kind = node_block_kind(kind, node),
                                  .parent = BLOCK_NONE,
                                  .definition = -1,
                                  .owner = -1,
                                  .lines = { line, line } };
    if (walk->open_count) {
        block.parent = walk->open[walk->open_count - 1].block;
        const struct source_block *parent = &blocks->items[block.parent];
        block.owner = parent->definition >= 0 ? parent->definition : parent->owner;
    }
    if (kind == SYMBOL_DEF || kind == SYMBOL_CLASS) {
        int error = definition_add(walk, node, &block, depth);
        if (error)
            return error;
    }

    if (ARRAY_GROW(walk->open, walk->open_count, walk->open_room) ||
        ARRAY_GROW(blocks->items, blocks->count, walk->block_room))
        return -ENOMEM;
    walk->open[walk->open_count++] =
        (struct open_block){ .block = (int32_t)blocks->count, .depth = depth };
    blocks->items[blocks->count++] = block;
    return 0;
}

/* The node at this depth ends, and whatever is open in it. */
static void blocks_close(struct walk *walk, uint32_t depth)
{
    struct source_block *items = walk->blocks->items;
    while (walk->open_count && walk->open[walk->open_count - 1].depth >= depth) {
        const struct source_block *closed = &items[walk->open[--walk->open_count].block];
        if (closed->parent != BLOCK_NONE && items[closed->parent].lines.last < closed->lines.last)
            items[closed->parent].lines.last = closed->lines.last;
    }
}

static int import_open(struct walk *walk, TSNode node)
{
    struct source_blocks *blocks = walk->blocks;
    size_t span = ts_node_end_byte(node) - ts_node_start_byte(node);
    memset(&walk->import, 0, sizeof walk->import);
    walk->import.text = arena_take(walk->arena, 2 * span + 1); /* a space for each byte at most */
    if (!walk->import.text || ARRAY_GROW(blocks->imports, blocks->import_count, walk->import_room))
        return -ENOMEM;
    blocks->imports[blocks->import_count++] = (struct source_import){ .text = walk->import.text,
                                                                      .line = node_first_line(node),
                                                                      .is_top = !walk->open_count };
    return 0;
}

static bool token_is_keyword(TSNode token)
{
    const char *type = ts_node_type(token);
    return !ts_node_is_named(token) &&
           (strcmp(type, "import") == 0 || strcmp(type, "from") == 0 || strcmp(type, "as") == 0);
}

/* One token more of an import: `from .a import (b as c,)` becomes `from .a import b as c`. */
static void import_add(struct walk *walk, TSNode token)
{
    const char *bytes = walk->text + ts_node_start_byte(token);
    size_t size = ts_node_end_byte(token) - ts_node_start_byte(token);
    bool is_keyword = token_is_keyword(token);
    char *text = walk->import.text;

    if (*bytes == '(' || *bytes == ')')
        return;
    if (*bytes == ',') { /* the last one may be followed by nothing */
        walk->import.after_comma = true;
        return;
    }
    if (walk->import.after_comma)
        text[walk->import.size++] = ',';
    if (walk->import.size && (is_keyword || walk->import.after_keyword || walk->import.after_comma))
        text[walk->import.size++] = ' ';
    memcpy(text + walk->import.size, bytes, size);
    walk->import.size += size;
    walk->import.after_keyword = is_keyword;
    walk->import.after_comma = false;
}

/* A token stretches the block that it stands in. */
static int token_add(struct walk *walk, TSNode token)
{
    if (ts_node_start_byte(token) == ts_node_end_byte(token)) /* one that the parser made up */
        return 0;
    TSPoint end = ts_node_end_point(token);
    uint32_t last = end.row + (end.column > 0); /* what ends with a line end is not on the next */
    if (walk->open_count) {
        struct source_block *block = &walk->blocks->items[walk->open[walk->open_count - 1].block];
        if (block->lines.last < last)
            block->lines.last = last;
    }
    if (walk->import.text)
        import_add(walk, token);
    return walk->in_global && ts_node_is_named(token) ? global_add(walk, token) : 0;
}

/* An elif whose `if` is broken is a clause like any other. */
static bool elif_has_if(const struct walk *walk, uint32_t depth)
{
    if (!walk->open_count)
        return false;
    struct open_block top = walk->open[walk->open_count - 1];
    return walk->blocks->items[top.block].kind == BLOCK_IF &&
           (top.depth == depth || top.depth + 1 == depth);
}

static int node_enter(struct walk *walk, TSNode node, uint32_t depth)
{
    enum symbol_kind kind = node_kind(walk, node);
    int error = 0;
    switch (kind) {
    case SYMBOL_BLANK:
    case SYMBOL_DECORATED:
        return 0;
    case SYMBOL_DECORATOR:
        return decorator_add(walk, node, depth);
    case SYMBOL_OTHER:
        return ts_node_child_count(node) == 0 ? token_add(walk, node) : 0;
    case SYMBOL_IMPORT:
        error = import_open(walk, node);
        break;
    case SYMBOL_GLOBAL:
        walk->in_global = true;
        break;
    case SYMBOL_ELIF:
        if (!elif_has_if(walk, depth))
            return 0;
        break;
    default:
        break;
    }
    return error ? error : block_open(walk, node, kind, depth);
}

static void node_leave(struct walk *walk, TSNode node, uint32_t depth)
{
    switch (node_kind(walk, node)) {
    case SYMBOL_OTHER:
    case SYMBOL_BLANK:
    case SYMBOL_DECORATOR:
    case SYMBOL_ELIF:
        return;
    case SYMBOL_DECORATED: /* its definition is not always there to take them */
        memset(&walk->decorators, 0, sizeof walk->decorators);
        return;
    case SYMBOL_IMPORT:
        walk->import.text = NULL;
        break;
    case SYMBOL_GLOBAL:
        walk->in_global = false;
        break;
    default:
        break;
    }
    blocks_close(walk, depth);
}

/* Every node, without recursion: how deep a source nests is not ours to bound. */
static int tree_walk(struct walk *walk, TSTreeCursor *cursor)
{
    uint32_t depth = 0;
    for (;;) {
        int error = node_enter(walk, ts_tree_cursor_current_node(cursor), depth);
        if (error)
            return error;
        if (ts_tree_cursor_goto_first_child(cursor)) {
            depth++;
            continue;
        }
        node_leave(walk, ts_tree_cursor_current_node(cursor), depth);
        while (!ts_tree_cursor_goto_next_sibling(cursor)) {
            if (!ts_tree_cursor_goto_parent(cursor))
                return 0;
            depth--;
            node_leave(walk, ts_tree_cursor_current_node(cursor), depth);
        }
    }
}

DEFINE_CLEANUP(TSTree *, ts_tree_delete)

int source_blocks_read(const char *text, size_t size, struct arena *arena,
                       struct source_blocks *ret)
{
    struct walk walk = { .text = text, .arena = arena, .blocks = ret };
    CLEANUP(ts_tree_deletep) TSTree *tree = source_parse(text, size);

    memset(ret, 0, sizeof *ret);
    if (!tree)
        return -ENOMEM;
    kinds_fill(&walk, ts_tree_language(tree));
    CLEANUP(ts_tree_cursor_delete)
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    int error = tree_walk(&walk, &cursor);
    free(walk.open);
    return error;
}

void source_blocks_done(struct source_blocks *blocks)
{
    free(blocks->items);
    free(blocks->definitions);
    free(blocks->imports);
}
