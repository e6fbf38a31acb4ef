/*
 * Native addresses to names: symbol tables of the mapped objects (.symtab, .dynsym, separate debug
 * files), demangled, and source lines where DWARF has them. Objects are read when first asked for
 * and kept while mapped. Reads files and, for the vdso, target memory; the target runs on.
 */
#pragma once

#include "sampler/base/remote.h"
#include "symbols/maps.h"

#include <stdbool.h>

struct native_symbol {
    const char *name;    /* demangled; NULL if unknown */
    const char *mangled; /* as the object has it */
    const char *module;  /* path of the mapped object, "[vdso]", or NULL */
    uint64_t offset;     /* from the symbol, or from the module's start */
    const char *file;    /* source file and line where DWARF has them */
    int line;
}; /* its texts live until the next native_symbols_set_maps or native_symbols_close */

struct native_symbols;

int native_symbols_open(struct remote *memory, int proc_fd, struct native_symbols **ret);

/* Source lines, wanted at first, cost tens of milliseconds for each object that has them. */
void native_symbols_want_lines(struct native_symbols *symbols, bool wanted);

/* What is read of files is shared with others that have this list; called before any address is
 * asked for. It is borrowed until the close; without one it is the symbols' own. */
struct object_list;
void native_symbols_share(struct native_symbols *symbols, struct object_list *objects);

/* `maps` is borrowed until the next call. Objects that are still mapped keep what was read of them.
 */
int native_symbols_set_maps(struct native_symbols *symbols, const struct maps *maps);

/* Always fills what it can; 0, or -ENOENT for an address in no mapping. */
int native_symbols_find(struct native_symbols *symbols, remote_addr ip, struct native_symbol *ret);

/* Is that CPython's evaluation loop: _PyEval_EvalFrameDefault with its outlined parts, or a
 * tail-call handler? */
bool native_symbols_is_evaluator(struct native_symbols *symbols, remote_addr ip);

void native_symbols_close(struct native_symbols *symbols);
