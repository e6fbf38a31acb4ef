#include "output/model/regions.h"

#include "output/model/source_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A name may have so many bytes in front of it. Longer ones are made to be long. */
enum { QUALIFIER_LIMIT = 1000 };

/* The blocks around a block, itself among them; BLOCK_NONE where there is none. */
struct surroundings {
    int32_t loop, def, class, function; /* the innermost of each; `function`: or async, or class */
    int32_t outer; /* the outermost loop or if since the innermost function, else that */
};

static bool block_is_definition(enum block_kind kind)
{
    return kind == BLOCK_DEF || kind == BLOCK_ASYNC_DEF || kind == BLOCK_CLASS;
}

static bool block_is_loop(enum block_kind kind)
{
    return kind == BLOCK_LOOP || kind == BLOCK_ASYNC_LOOP;
}

static void surroundings_add(struct surroundings *around, const struct source_block *blocks,
                             int32_t i)
{
    enum block_kind kind = blocks[i].kind;
    bool is_definition = block_is_definition(kind);
    bool may_open = around->outer == BLOCK_NONE || block_is_definition(blocks[around->outer].kind);

    if (is_definition)
        around->function = i;
    if (kind == BLOCK_LOOP)
        around->loop = i;
    if (kind == BLOCK_DEF)
        around->def = i;
    if (kind == BLOCK_CLASS)
        around->class = i;
    if (is_definition || (may_open && (block_is_loop(kind) || kind == BLOCK_IF)))
        around->outer = i;
}

static void surroundings_fill(const struct source_blocks *blocks, struct surroundings *around)
{
    static const struct surroundings NOTHING = { BLOCK_NONE, BLOCK_NONE, BLOCK_NONE, BLOCK_NONE,
                                                 BLOCK_NONE };
    for (size_t i = 0; i < blocks->count; i++) {
        int32_t parent = blocks->items[i].parent;
        around[i] = parent == BLOCK_NONE ? NOTHING : around[parent];
        surroundings_add(&around[i], blocks->items, (int32_t)i);
    }
}

static struct line_range line_loop(const struct source_blocks *blocks, struct line_range line,
                                   bool is_blank, int32_t innermost, int32_t outer)
{
    const struct source_block *block = &blocks->items[innermost];
    if (outer != BLOCK_NONE && block_is_loop(blocks->items[outer].kind))
        return blocks->items[outer].lines;
    bool is_header =
        block_is_definition(block->kind) || block->kind == BLOCK_IF || block->kind == BLOCK_WITH;
    return is_header && !is_blank ? block->lines : line;
}

/* What a line in this innermost block belongs to. */
static struct line_regions line_find(const struct source_blocks *blocks,
                                     const struct surroundings *around, int32_t innermost,
                                     uint32_t number, bool is_blank)
{
    struct line_range line = { number, number };
    struct line_regions found = { .region = line, .loop = line };
    if (innermost == BLOCK_NONE)
        return found;

    const struct surroundings *here = &around[innermost];
    int32_t region = here->loop;
    if (region == BLOCK_NONE)
        region = here->def;
    if (region == BLOCK_NONE)
        region = here->class;
    if (region != BLOCK_NONE)
        found.region = blocks->items[region].lines;
    found.loop = line_loop(blocks, line, is_blank, innermost, here->outer);
    if (here->function != BLOCK_NONE)
        found.function = blocks->items[here->function].lines;
    return found;
}

static bool text_is_blank(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || (*text >= '\t' && *text <= '\r')))
        text++;
    return text == end;
}

static const char *line_end(const char *text, const char *end)
{
    const char *found = memchr(text, '\n', (size_t)(end - text));
    return found ? found : end;
}

static size_t line_count(const char *text, size_t size)
{
    size_t count = 0;
    for (const char *end = text + size; text < end; count++)
        text = line_end(text, end) + 1;
    return count;
}

/* Line by line, with the innermost block at hand: a chain of 100,000 elifs is passed once. */
static int lines_fill(struct source_regions *regions, const struct source_blocks *blocks,
                      const char *text, const char *end)
{
    AUTO_FREE struct surroundings *around = calloc(blocks->count + 1, sizeof *around);
    int32_t innermost = BLOCK_NONE;
    size_t next = 0;

    if (!around)
        return -ENOMEM;
    surroundings_fill(blocks, around);
    for (uint32_t number = 1; number <= regions->line_count; number++) {
        const char *stop = line_end(text, end);
        while (next < blocks->count && blocks->items[next].lines.first <= number)
            innermost = (int32_t)next++;
        while (innermost != BLOCK_NONE && blocks->items[innermost].lines.last < number)
            innermost = blocks->items[innermost].parent;
        regions->lines[number - 1] =
            line_find(blocks, around, innermost, number, text_is_blank(text, stop));
        text = stop + 1;
    }
    return 0;
}

static bool name_starts(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* The name that an import gives is the last word of an item: `import a as profile`, `from a import
 * profile, b`. */
static bool import_gives_profile(const char *text)
{
    static const char word[] = " profile";
    for (const char *at = text; (at = strstr(at, word)); at++)
        if (at[sizeof word - 1] == ',' || !at[sizeof word - 1])
            return true;
    return false;
}

/* Whoever makes or imports a profile, without looking first whether there is one (in a try, an if),
 * means that and not ours. */
static bool profile_is_own(const struct source_blocks *blocks)
{
    for (size_t i = 0; i < blocks->definition_count; i++)
        if (strcmp(blocks->definitions[i].name, "profile") == 0 &&
            blocks->items[blocks->definitions[i].block].parent == BLOCK_NONE)
            return true;
    for (size_t i = 0; i < blocks->import_count; i++) {
        const struct source_import *import = &blocks->imports[i];
        if (import->is_top && import_gives_profile(import->text) &&
            !name_starts(import->text, "from scalene") &&
            !name_starts(import->text, "from builtins "))
            return true;
    }
    return false;
}

/* profile, scalene.profile, scalene.scalene_profiler.profile */
static bool decorators_profile(const struct text_list *decorators, bool profile_is_ours)
{
    for (size_t i = 0; i < decorators->count; i++) {
        const char *text = decorators->items[i];
        const char *dot = strrchr(text, '.');
        if (strcmp(dot ? dot + 1 : text, "profile") == 0 &&
            (dot ? name_starts(text, "scalene") : profile_is_ours))
            return true;
    }
    return false;
}

/* Owners come first, so theirs is known. */
static const char *name_qualify(struct arena *arena, const struct source_blocks *blocks,
                                const char **names, size_t index)
{
    const struct source_definition *definition = &blocks->definitions[index];
    int32_t owner = blocks->items[definition->block].owner;
    if (owner < 0 || definition->is_global || strlen(names[owner]) > QUALIFIER_LIMIT)
        return definition->name;

    int32_t owner_block = blocks->definitions[owner].block;
    const char *link = blocks->items[owner_block].kind == BLOCK_CLASS ? "." : ".<locals>.";
    size_t size = strlen(names[owner]) + strlen(link) + strlen(definition->name) + 1;
    char *name = arena_take(arena, size);
    if (name)
        snprintf(name, size, "%s%s%s", names[owner], link, definition->name);
    return name;
}

static int functions_fill(struct source_regions *regions, const struct source_blocks *blocks)
{
    AUTO_FREE const char **names = calloc(blocks->definition_count + 1, sizeof *names);
    bool profile_is_ours = !profile_is_own(blocks);
    regions->functions =
        arena_take(&regions->arena, blocks->definition_count * sizeof *regions->functions);
    if (!names || !regions->functions)
        return -ENOMEM;

    for (size_t i = 0; i < blocks->definition_count; i++) {
        const struct source_definition *definition = &blocks->definitions[i];
        const struct source_block *block = &blocks->items[definition->block];
        names[i] = name_qualify(&regions->arena, blocks, names, i);
        if (!names[i])
            return -ENOMEM;
        if (block->kind == BLOCK_CLASS)
            continue;
        regions->functions[regions->function_count++] = (struct source_function){
            .qualified_name = names[i],
            .name = definition->name,
            .lines = block->lines,
            .first_line = definition->first_line,
            .decorators = definition->decorators,
            .is_coroutine = block->kind == BLOCK_ASYNC_DEF,
            .is_profiled = decorators_profile(&definition->decorators, profile_is_ours),
        };
    }
    return 0;
}

static int imports_fill(struct source_regions *regions, const struct source_blocks *blocks)
{
    size_t size = blocks->import_count * sizeof *regions->imports;
    regions->imports = arena_take(&regions->arena, size);
    if (!regions->imports)
        return -ENOMEM;
    if (size)
        memcpy(regions->imports, blocks->imports, size);
    regions->import_count = blocks->import_count;
    return 0;
}

DEFINE_CLEANUP(struct source_blocks *, source_blocks_done)

int source_regions_new(const char *text, size_t size, struct source_regions **ret)
{
    AUTO_REGIONS struct source_regions *regions = calloc(1, sizeof *regions);
    struct source_blocks blocks = { 0 };
    CLEANUP(source_blocks_donep) struct source_blocks *guard = &blocks;
    if (!regions)
        return -ENOMEM;

    int error = 0;
    if (size <= REGIONS_SIZE_LIMIT)
        error = source_blocks_read(text, size, &regions->arena, guard);
    regions->line_count = line_count(text, size);
    regions->lines = arena_take(&regions->arena, regions->line_count * sizeof *regions->lines);
    if (!regions->lines)
        error = -ENOMEM;
    if (!error)
        error = lines_fill(regions, &blocks, text, text + size);
    if (!error)
        error = functions_fill(regions, &blocks);
    if (!error)
        error = imports_fill(regions, &blocks);
    if (!error)
        *ret = TAKE_PTR(regions);
    return error;
}

void source_regions_free(struct source_regions *regions)
{
    arena_done(&regions->arena);
    free(regions);
}
