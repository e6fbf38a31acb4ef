#include "symbols/symbol_table.h"

#include "sampler/base/error.h"
#include "symbols/demangle.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    SYMBOL_LIMIT = 1 << 23, /* of one object; the largest libraries have a million */
    LOOK_BACK = 8,          /* functions that may begin inside another one's range */
    SIZELESS_REACH = 4096,
};

static bool symbol_is_code(const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

/* Typed before untyped (assembler labels), then global, weak, local. */
static unsigned symbol_rank(const GElf_Sym *symbol)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    unsigned visible = binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
    return (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ? 0 : 4) + visible;
}

static bool symbol_is_label(const struct symbol *symbol)
{
    return symbol->rank < 4;
}

static int table_reserve(struct symbol_table *table, size_t more)
{
    if (more > SYMBOL_LIMIT - table->count)
        return -EBADMSG;
    if (table->count + more <= table->room)
        return 0;
    struct symbol *list = realloc(table->list, (table->count + more) * sizeof *list);
    if (!list)
        return -ENOMEM;
    table->list = list;
    table->room = table->count + more;
    return 0;
}

static int section_add(struct symbol_table *table, Elf *elf, Elf_Scn *section,
                       const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data ? data->d_size / sizeof(Elf64_Sym) : 0;
    int error = table_reserve(table, count);
    if (error)
        return error;
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || !symbol_is_code(&symbol))
            continue;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        /* $x, $d and their like mark code and data for the linker. */
        if (!name || !name[0] || name[0] == '$')
            continue;
        table->list[table->count++] = (struct symbol){
            .start = symbol.st_value,
            .size = symbol.st_size,
            .mangled = name,
            .rank = symbol_rank(&symbol),
        };
    }
    return 0;
}

int symbol_table_add(struct symbol_table *table, Elf *elf)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) ||
            (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            continue;
        if (section_add(table, elf, section, &header) == -ENOMEM)
            return -ENOMEM;
    }
    return 0;
}

static int symbol_compare(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return strcmp(a->mangled, b->mangled);
}

/* One symbol an address, and no labels inside of functions. */
void symbol_table_sort(struct symbol_table *table)
{
    size_t kept = 0;
    const struct symbol *function = NULL;
    if (table->count)
        qsort(table->list, table->count, sizeof *table->list, symbol_compare);
    for (size_t i = 0; i < table->count; i++) {
        const struct symbol symbol = table->list[i];
        bool repeated = kept && table->list[kept - 1].start == symbol.start;
        bool inside = function && symbol.start - function->start < function->size;
        if (repeated || (symbol_is_label(&symbol) && inside))
            continue;
        table->list[kept] = symbol;
        if (!symbol_is_label(&symbol))
            function = &table->list[kept];
        kept++;
    }
    table->count = kept;
    struct symbol *list = kept ? realloc(table->list, kept * sizeof *list) : NULL;
    if (list) { /* half of what a file names is data, or named twice */
        table->list = list;
        table->room = kept;
    }
}

/* Without a size a symbol reaches to the next one, but not across what a stripped table leaves out.
 */
static bool symbol_holds(const struct symbol *symbol, uint64_t address, bool nearest)
{
    uint64_t size = symbol->size || !nearest ? symbol->size : SIZELESS_REACH;
    return address - symbol->start < size;
}

struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t back = 0; back < LOOK_BACK && back < low; back++) {
        struct symbol *symbol = &table->list[low - 1 - back];
        if (symbol_holds(symbol, address, back == 0))
            return symbol;
    }
    return NULL;
}

const char *symbol_readable(struct symbol *symbol)
{
    if (!symbol->readable)
        symbol->readable = symbol_demangle(symbol->mangled);
    return symbol->readable ? symbol->readable : symbol->mangled;
}

void symbol_table_done(struct symbol_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->list[i].readable);
    free(table->list);
    *table = (struct symbol_table){ 0 };
}
