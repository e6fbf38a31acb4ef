#include "symbols/native_symbols.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "symbols/elf_file.h"
#include "symbols/function_parts.h"
#include "symbols/object_symbols.h"

#include <string.h>

enum {
    ANSWER_COUNT = 1 << 13, /* addresses remembered; a newer one takes an older one's place */
    VDSO_LIMIT = 1 << 20,
    EVALUATOR_RANGES = 8,
};

static const char evaluator_name[] = "_PyEval_EvalFrameDefault";

/* An executable mapping and the object behind it, read when an address in it is first asked for. */
struct module {
    struct mapping mapping;        /* `path` is our own copy */
    struct object_symbols *object; /* NULL: none, or not readable */
    remote_addr bias;
    /* In an object without local symbols: the evaluation loop, then the parts of it that have no
     * name. */
    struct code_range evaluator[EVALUATOR_RANGES];
    size_t evaluator_ranges;
    struct module *next;
};

struct answer {
    remote_addr ip; /* 0: free */
    struct native_symbol symbol;
    bool is_evaluator;
};

struct native_symbols {
    struct remote *memory;
    int proc_fd;
    const struct maps *maps;
    struct unwind_tables tables;
    bool wants_lines;
    struct object_list own, *objects; /* ours, unless others share theirs */
    struct module *modules;
    struct answer answers[ANSWER_COUNT];
};

static void module_free(struct native_symbols *symbols, struct module *module)
{
    object_symbols_close(symbols->objects, module->object);
    free((char *)module->mapping.path);
    free(module);
}

/* The vdso is in no file, but an object like any other. */
static bool mapping_is_object(const struct mapping *mapping)
{
    return mapping->inode || strcmp(mapping->path, "[vdso]") == 0;
}

static int module_open_memory(struct native_symbols *symbols, struct module *module)
{
    size_t size = module->mapping.end - module->mapping.start;
    if (size > VDSO_LIMIT)
        return -ENOENT;
    AUTO_FREE void *bytes = malloc(size);
    if (!bytes)
        return -ENOMEM;
    int error = remote_read(symbols->memory, module->mapping.start, bytes, size);
    return error ? error
                 : object_symbols_open_bytes(TAKE_PTR(bytes), size, symbols->wants_lines,
                                             &module->object);
}

static void module_find_evaluator(struct native_symbols *symbols, struct module *module)
{
    uint64_t value, size;
    if (elf_file_find_exported(module->object->file, evaluator_name, &value, &size))
        return;
    struct code_range loop = { module->bias + value, module->bias + value + size };
    const struct unwind_table *table =
        unwind_tables_find(&symbols->tables, symbols->memory, module->mapping.start);
    module->evaluator[0] = loop;
    module->evaluator_ranges = 1;
    if (table)
        module->evaluator_ranges += function_parts_find(
            symbols->memory, table, loop, module->evaluator + 1, EVALUATOR_RANGES - 1);
}

static void module_load(struct native_symbols *symbols, struct module *module)
{
    const struct mapping *mapping = &module->mapping;
    int error = mapping->inode ? object_symbols_open(symbols->objects, symbols->proc_fd, mapping,
                                                     symbols->wants_lines, &module->object)
                               : module_open_memory(symbols, module);
    if (error)
        return;
    if (elf_file_bias(module->object->file, mapping, &module->bias)) {
        object_symbols_close(symbols->objects, TAKE_PTR(module->object));
        return;
    }
    if (module->object->stripped && !module->object->debug)
        module_find_evaluator(symbols, module);
}

static bool mapping_same(const struct mapping *a, const struct mapping *b)
{
    return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
           a->device == b->device && a->inode == b->inode && strcmp(a->path, b->path) == 0;
}

static struct module *module_new(struct native_symbols *symbols, const struct mapping *mapping)
{
    struct module *module = calloc(1, sizeof *module);
    const char *path = strdup(mapping->path);
    if (!module || !path) {
        free(module);
        free((char *)path);
        return NULL;
    }
    module->mapping = *mapping;
    module->mapping.path = path;
    module_load(symbols, module);
    module->next = symbols->modules;
    symbols->modules = module;
    return module;
}

static struct module *module_find(struct native_symbols *symbols, const struct mapping *mapping)
{
    for (struct module *module = symbols->modules; module; module = module->next)
        if (module->mapping.start == mapping->start)
            return module;
    return module_new(symbols, mapping);
}

static bool name_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Compilers add ".cold", ".isra.0", ".lto_priv.1" and the like to the pieces of one function.
 * CPython 3.14+ built with tail calls has one function for each instruction
 * (Python/ceval_macros.h). */
static bool name_is_evaluator(const char *name)
{
    if (name_begins(name, evaluator_name))
        return name[sizeof evaluator_name - 1] == '\0' || name[sizeof evaluator_name - 1] == '.';
    return name_begins(name, "_TAIL_CALL_");
}

static void answer_from_symbol(struct answer *answer, struct symbol *symbol, uint64_t address)
{
    answer->symbol.mangled = symbol->mangled;
    answer->symbol.name = symbol_readable(symbol);
    answer->symbol.offset = address - symbol->start;
    answer->is_evaluator = name_is_evaluator(symbol->mangled);
}

static void answer_from_evaluator(struct answer *answer, const struct module *module)
{
    for (size_t i = 0; i < module->evaluator_ranges; i++) {
        const struct code_range *range = &module->evaluator[i];
        if (answer->ip < range->start || answer->ip >= range->end)
            continue;
        answer->symbol.mangled = i ? "_PyEval_EvalFrameDefault.cold" : evaluator_name;
        answer->symbol.name = answer->symbol.mangled;
        answer->symbol.offset = answer->ip - range->start;
        answer->is_evaluator = true;
    }
}

static void answer_fill(struct answer *answer, struct module *module, remote_addr ip)
{
    uint64_t address = ip - module->bias;
    *answer = (struct answer){
        .ip = ip,
        .symbol.module = module->mapping.path,
        .symbol.offset = ip - module->mapping.start + module->mapping.file_offset,
    };
    if (!module->object)
        return;
    struct symbol *symbol = symbol_table_find(&module->object->symbols, address);
    if (symbol)
        answer_from_symbol(answer, symbol, address);
    else
        answer_from_evaluator(answer, module);
    if (module->object->lines)
        source_lines_find(module->object->lines, address, &answer->symbol.file,
                          &answer->symbol.line);
}

/* NULL for an address in no mapping. What anonymous memory holds may change: it is not remembered.
 */
static const struct answer *answer_find(struct native_symbols *symbols, remote_addr ip)
{
    static const struct answer nameless;
    size_t slot = (ip * 0x9E3779B97F4A7C15u) >> (64 - 13);
    struct answer *answer = &symbols->answers[slot];
    if (ip && answer->ip == ip)
        return answer;
    const struct mapping *mapping = symbols->maps ? maps_find(symbols->maps, ip) : NULL;
    if (!mapping)
        return NULL;
    struct module *module = mapping_is_object(mapping) ? module_find(symbols, mapping) : NULL;
    if (!module)
        return &nameless;
    answer_fill(answer, module, ip);
    return answer;
}

int native_symbols_find(struct native_symbols *symbols, remote_addr ip, struct native_symbol *ret)
{
    const struct answer *answer = answer_find(symbols, ip);
    *ret = answer ? answer->symbol : (struct native_symbol){ 0 };
    return answer ? 0 : -ENOENT;
}

bool native_symbols_is_evaluator(struct native_symbols *symbols, remote_addr ip)
{
    const struct answer *answer = answer_find(symbols, ip);
    return answer && answer->is_evaluator;
}

int native_symbols_set_maps(struct native_symbols *symbols, const struct maps *maps)
{
    bool dropped = false;
    int error = unwind_tables_set_maps(&symbols->tables, maps);
    if (error < 0)
        return error;
    symbols->maps = maps;
    for (struct module **link = &symbols->modules; *link;) {
        struct module *module = *link;
        const struct mapping *mapping = maps_find(maps, module->mapping.start);
        if (mapping && mapping_same(mapping, &module->mapping)) {
            link = &module->next;
            continue;
        }
        *link = module->next;
        module_free(symbols, module);
        dropped = true;
    }
    if (dropped)
        memset(symbols->answers, 0, sizeof symbols->answers);
    return 0;
}

int native_symbols_open(struct remote *memory, int proc_fd, struct native_symbols **ret)
{
    struct native_symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return -ENOMEM;
    symbols->memory = memory;
    symbols->proc_fd = proc_fd;
    symbols->wants_lines = true;
    symbols->objects = &symbols->own;
    *ret = symbols;
    return 0;
}

void native_symbols_want_lines(struct native_symbols *symbols, bool wanted)
{
    symbols->wants_lines = wanted;
}

void native_symbols_share(struct native_symbols *symbols, struct object_list *objects)
{
    symbols->objects = objects;
}

void native_symbols_close(struct native_symbols *symbols)
{
    if (!symbols)
        return;
    while (symbols->modules) {
        struct module *module = symbols->modules;
        symbols->modules = module->next;
        module_free(symbols, module);
    }
    unwind_tables_done(&symbols->tables);
    free(symbols);
}
