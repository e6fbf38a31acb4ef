/*
 * Source lines of native code, from the DWARF of one ELF file, where it has any. Compilation units
 * are indexed once; a unit's line table is read when an address in it is first asked for.
 */
#pragma once

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct source_lines;

/* `elf` is borrowed until the close. -ENOENT: no line tables, or more DWARF than is worth loading.
 */
int source_lines_open(Elf *elf, struct source_lines **ret);

/* `address` as the ELF file numbers it: the place in the function that stands there by itself, not
 * in one that was inlined into it. The name lives until the close. */
bool source_lines_find(struct source_lines *lines, uint64_t address, const char **ret_file,
                       int *ret_line);

void source_lines_close(struct source_lines *lines);
