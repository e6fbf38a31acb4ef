#include "symbols/source_lines.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

enum {
    RANGE_LIMIT = 1 << 20, /* of all units together */
    LOOK_BACK = 8,         /* ranges may overlap in odd files */
    DEPTH_LIMIT = 64,      /* of scopes in scopes, */
    ENTRY_LIMIT = 1000000, /* and how many of a unit's entries are looked at, to find a call */
};

/* libdw loads every debug section at once. */
static const uint64_t size_limit = 64 << 20;

struct unit_range {
    uint64_t start, end;
    Dwarf_Die unit;
};

struct source_lines {
    Dwarf *dwarf;
    struct unit_range *ranges; /* sorted */
    size_t count, room;
};

void source_lines_close(struct source_lines *lines)
{
    if (!lines)
        return;
    dwarf_end(lines->dwarf);
    free(lines->ranges);
    free(lines);
}

DEFINE_CLEANUP(struct source_lines *, source_lines_close)

static bool lines_worth_loading(Elf *elf)
{
    size_t names;
    uint64_t total = 0;
    bool found = false;
    if (elf_getshdrstrndx(elf, &names))
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || header.sh_type == SHT_NOBITS || header.sh_size > size_limit)
            continue;
        if (strncmp(name, ".debug_", 7) == 0)
            total += header.sh_size;
        if (strcmp(name, ".debug_line") == 0)
            found = true;
    }
    return found && total <= size_limit;
}

static int range_add(struct source_lines *lines, uint64_t start, uint64_t end,
                     const Dwarf_Die *unit)
{
    if (lines->count == lines->room) {
        size_t room = lines->room ? 2 * lines->room : 256;
        struct unit_range *ranges =
            room > RANGE_LIMIT ? NULL : realloc(lines->ranges, room * sizeof *ranges);
        if (!ranges)
            return -ENOMEM;
        lines->ranges = ranges;
        lines->room = room;
    }
    lines->ranges[lines->count++] = (struct unit_range){ start, end, *unit };
    return 0;
}

static int unit_add(struct source_lines *lines, Dwarf_Die *unit)
{
    Dwarf_Addr base, start, end;
    int error = 0;
    for (ptrdiff_t at = 0; !error && (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;)
        if (start < end)
            error = range_add(lines, start, end, unit);
    return error;
}

static int range_compare(const void *left, const void *right)
{
    const struct unit_range *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

int source_lines_open(Elf *elf, struct source_lines **ret)
{
    if (!lines_worth_loading(elf))
        return -ENOENT;
    struct source_lines *lines CLEANUP(source_lines_closep) = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (!lines->dwarf)
        return -ENOENT;

    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    int error = 0;
    while (!error && dwarf_get_units(lines->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
        error = unit_add(lines, &die);
    if (lines->count)
        qsort(lines->ranges, lines->count, sizeof *lines->ranges, range_compare);
    *ret = TAKE_PTR(lines);
    return 0;
}

static struct unit_range *range_find(const struct source_lines *lines, uint64_t address)
{
    size_t low = 0, high = lines->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t back = 0; back < LOOK_BACK && back < low; back++)
        if (address < lines->ranges[low - 1 - back].end)
            return &lines->ranges[low - 1 - back];
    return NULL;
}

struct call_search {
    uint64_t address;
    size_t entries_left;
    Dwarf_Die call; /* the outermost one that was inlined where the address is */
};

/* What functions may stand in, by whatever language. */
static bool is_space(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_module;
}

static bool is_block(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
           tag == DW_TAG_catch_block;
}

static bool call_search_in(struct call_search *search, Dwarf_Die *scope, unsigned depth)
{
    Dwarf_Die entry;
    if (depth == DEPTH_LIMIT || dwarf_child(scope, &entry))
        return false;
    do {
        int tag = dwarf_tag(&entry);
        bool is_call = tag == DW_TAG_inlined_subroutine;
        if (is_space(tag) && call_search_in(search, &entry, depth + 1))
            return true;
        if ((is_call || is_block(tag)) && dwarf_haspc(&entry, search->address) > 0) {
            search->call = entry;
            return is_call || call_search_in(search, &entry, depth + 1);
        }
    } while (search->entries_left && search->entries_left-- &&
             dwarf_siblingof(&entry, &entry) == 0);
    return false;
}

static bool number_find(Dwarf_Die *entry, unsigned name, Dwarf_Word *ret)
{
    Dwarf_Attribute attribute;
    return dwarf_formudata(dwarf_attr(entry, name, &attribute), ret) == 0;
}

/*
 * What was inlined has no symbol, so its own file and line would stand beside the name of another
 * function: the one that has a symbol is where it calls.
 */
static bool call_find(Dwarf_Die *unit, uint64_t address, const char **ret_file, int *ret_line)
{
    struct call_search search = { .address = address, .entries_left = ENTRY_LIMIT };
    Dwarf_Files *files;
    Dwarf_Word file, line;
    size_t count;
    if (!call_search_in(&search, unit, 0) || !number_find(&search.call, DW_AT_call_file, &file) ||
        !number_find(&search.call, DW_AT_call_line, &line) || !line || line > INT_MAX ||
        dwarf_getsrcfiles(unit, &files, &count) || file >= count)
        return false;
    const char *name = dwarf_filesrc(files, file, NULL, NULL);
    if (!name)
        return false;
    *ret_file = name;
    *ret_line = (int)line;
    return true;
}

bool source_lines_find(struct source_lines *lines, uint64_t address, const char **ret_file,
                       int *ret_line)
{
    struct unit_range *range = range_find(lines, address);
    Dwarf_Line *line = range ? dwarf_getsrc_die(&range->unit, address) : NULL;
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;
    if (range && call_find(&range->unit, address, ret_file, ret_line))
        return true;
    if (!file || dwarf_lineno(line, &number) || number <= 0)
        return false;
    *ret_file = file;
    *ret_line = number;
    return true;
}
