/*
 * The separate file in which a distribution keeps an object's symbols and DWARF: found by build id
 * or by .gnu_debuglink, below the target's root and then our own, and taken only when its build id
 * is the object's.
 */
#pragma once

#include "symbols/elf_file.h"

/* 0, -ENOENT when there is none (or the object has no build id to prove it by), -ENOMEM. */
int debug_file_open(int proc_fd, const char *object_path, const struct elf_file *object,
                    struct elf_file **ret);
