/* Stacks, frames, functions, libraries and files of a profile for the Firefox Profiler: a table
 * each, in columns. */
#include "output/export/gecko_profile.h"

#include "sampler/base/error.h"

#include <string.h>

/* A column that says the same of everything. */
static void column_of(struct json_document *json, yyjson_mut_val *table, const char *key,
                      size_t count, yyjson_mut_val *(*make)(yyjson_mut_doc *doc))
{
    yyjson_mut_val *list = json_list(json, table, key);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, make(json->doc));
}

static yyjson_mut_val *minus_one(yyjson_mut_doc *doc)
{
    return yyjson_mut_int(doc, -1);
}

static yyjson_mut_val *zero(yyjson_mut_doc *doc)
{
    return yyjson_mut_int(doc, 0);
}

static yyjson_mut_val *one(yyjson_mut_doc *doc)
{
    return yyjson_mut_int(doc, 1);
}

static void number_or_null(struct json_document *json, yyjson_mut_val *list, int64_t number)
{
    if (number)
        yyjson_mut_arr_add_int(json->doc, list, number);
    else
        yyjson_mut_arr_add_null(json->doc, list);
}

static yyjson_mut_val *table_begin(struct gecko *gecko, yyjson_mut_val *shared, const char *key,
                                   size_t count)
{
    yyjson_mut_val *table = json_object(&gecko->json, shared, key);
    yyjson_mut_obj_add_uint(gecko->json.doc, table, "length", count);
    return table;
}

static void stacks_write(struct gecko *gecko, yyjson_mut_val *shared)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_val *table = table_begin(gecko, shared, "stackTable", gecko->nodes.count);
    yyjson_mut_val *prefixes = json_list(json, table, "prefix");
    yyjson_mut_val *frames = json_list(json, table, "frame");
    for (size_t i = 0; i < gecko->nodes.count; i++) {
        const uint64_t *node = gecko->nodes.keys[i].part;
        if (node[0])
            yyjson_mut_arr_add_uint(json->doc, prefixes, node[0] - 1);
        else
            yyjson_mut_arr_add_null(json->doc, prefixes);
        yyjson_mut_arr_add_uint(json->doc, frames, node[1]);
    }
}

static void frames_write(struct gecko *gecko, yyjson_mut_val *shared)
{
    struct json_document *json = &gecko->json;
    const struct frame_table *from = &gecko->frames;
    size_t count = from->location_index.count;
    yyjson_mut_val *table = table_begin(gecko, shared, "frameTable", count);
    yyjson_mut_val *functions = json_list(json, table, "func");
    yyjson_mut_val *lines = json_list(json, table, "line");
    yyjson_mut_val *categories = json_list(json, table, "category");
    for (uint32_t i = 0; i < count; i++) {
        const struct frame_place *place = &from->places[from->locations[i].place];
        bool native = from->functions[place->function].native;
        yyjson_mut_arr_add_uint(json->doc, functions, place->function);
        number_or_null(json, lines, place->line);
        yyjson_mut_arr_add_int(json->doc, categories, native ? CATEGORY_NATIVE : CATEGORY_PYTHON);
    }
    /* Where an instruction is in its library is not known, only how far behind its symbol. */
    column_of(json, table, "address", count, minus_one);
    column_of(json, table, "inlineDepth", count, zero);
    column_of(json, table, "subcategory", count, zero);
    column_of(json, table, "nativeSymbol", count, yyjson_mut_null);
    column_of(json, table, "innerWindowID", count, yyjson_mut_null);
    column_of(json, table, "column", count, yyjson_mut_null);
}

/* The number of the function's file among those of its kind. */
static int64_t file_find(struct gecko *gecko, struct key_index *files, const char *file)
{
    int64_t number = key_index_add(files, (struct key){ { (uintptr_t)file } });
    gecko->json.is_short |= number < 0;
    return number < 0 ? 0 : number;
}

/* The filter "JavaScript" of the profiler is Python's. */
static void functions_write(struct gecko *gecko, yyjson_mut_val *shared, struct key_index *sources,
                            struct key_index *libraries)
{
    struct json_document *json = &gecko->json;
    size_t count = gecko->frames.function_index.count;
    yyjson_mut_val *table = table_begin(gecko, shared, "funcTable", count);
    yyjson_mut_val *names = json_list(json, table, "name");
    yyjson_mut_val *scripted = json_list(json, table, "isJS");
    yyjson_mut_val *resources = json_list(json, table, "resource");
    yyjson_mut_val *files = json_list(json, table, "source");
    for (size_t i = 0; i < count; i++) {
        const struct frame_function *function = &gecko->frames.functions[i];
        bool in_library = function->native && *function->file;
        yyjson_mut_arr_add_int(json->doc, names, text_table_add(&gecko->texts, function->name));
        yyjson_mut_arr_add_bool(json->doc, scripted, !function->native);
        yyjson_mut_arr_add_int(json->doc, resources,
                               in_library ? file_find(gecko, libraries, function->file) : -1);
        if (function->native || !*function->file)
            yyjson_mut_arr_add_null(json->doc, files);
        else
            yyjson_mut_arr_add_int(json->doc, files, file_find(gecko, sources, function->file));
    }
    column_of(json, table, "relevantForJS", count, yyjson_mut_false);
    column_of(json, table, "lineNumber", count, yyjson_mut_null);
    column_of(json, table, "columnNumber", count, yyjson_mut_null);
}

static const char *file_at(const struct key_index *files, size_t number)
{
    return (const char *)(uintptr_t)files->keys[number].part[0];
}

static void sources_write(struct gecko *gecko, yyjson_mut_val *shared,
                          const struct key_index *sources)
{
    struct json_document *json = &gecko->json;
    yyjson_mut_val *table = table_begin(gecko, shared, "sources", sources->count);
    yyjson_mut_val *names = json_list(json, table, "filename");
    for (size_t i = 0; i < sources->count; i++)
        yyjson_mut_arr_add_int(json->doc, names,
                               text_table_add(&gecko->texts, file_at(sources, i)));
    column_of(json, table, "id", sources->count, yyjson_mut_null);
    column_of(json, table, "startLine", sources->count, one);
    column_of(json, table, "startColumn", sources->count, one);
    column_of(json, table, "sourceMapURL", sources->count, yyjson_mut_null);
}

static const char *library_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void libraries_write(struct gecko *gecko, yyjson_mut_val *shared,
                            const struct key_index *libraries)
{
    enum { IS_LIBRARY = 1 };
    struct json_document *json = &gecko->json;
    yyjson_mut_val *all = json_list(json, json->root, "libs");
    yyjson_mut_val *table = table_begin(gecko, shared, "resourceTable", libraries->count);
    yyjson_mut_val *numbers = json_list(json, table, "lib");
    yyjson_mut_val *names = json_list(json, table, "name");
    yyjson_mut_val *types = json_list(json, table, "type");
    for (size_t i = 0; i < libraries->count; i++) {
        const char *path = file_at(libraries, i), *name = library_name(path);
        yyjson_mut_val *library = json_item(json, all);
        const char *const texts[][2] = {
            { "arch", "" },        { "name", name },      { "path", path },
            { "debugName", name }, { "debugPath", path }, { "breakpadId", "" },
        };
        for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
            yyjson_mut_obj_add_str(json->doc, library, texts[n][0], texts[n][1]);
        yyjson_mut_obj_add_null(json->doc, library, "codeId");
        yyjson_mut_arr_add_uint(json->doc, numbers, i);
        yyjson_mut_arr_add_int(json->doc, names, gecko_text(gecko, name));
        yyjson_mut_arr_add_int(json->doc, types, IS_LIBRARY);
    }
    column_of(json, table, "host", libraries->count, yyjson_mut_null);
}

static void symbols_write(struct gecko *gecko, yyjson_mut_val *shared)
{
    static const char *const columns[] = { "libIndex", "address", "name", "functionSize" };
    yyjson_mut_val *table = table_begin(gecko, shared, "nativeSymbols", 0);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        json_list(&gecko->json, table, columns[i]);
}

void gecko_shared_write(struct gecko *gecko)
{
    struct json_document *json = &gecko->json;
    struct key_index sources = { 0 }, libraries = { 0 };
    yyjson_mut_val *shared = json_object(json, json->root, "shared");
    stacks_write(gecko, shared);
    frames_write(gecko, shared);
    functions_write(gecko, shared, &sources, &libraries);
    sources_write(gecko, shared, &sources);
    libraries_write(gecko, shared, &libraries);
    symbols_write(gecko, shared);
    yyjson_mut_val *texts = json_list(json, shared, "stringArray");
    for (size_t i = 0; i < gecko->texts.index.count; i++)
        yyjson_mut_arr_add_str(json->doc, texts, gecko->texts.texts[i]);
    key_index_done(&sources);
    key_index_done(&libraries);
}
