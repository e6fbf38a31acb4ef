/* File names as code objects have them, made comparable. */
#pragma once

#include <stddef.h>

/*
 * Absolute, without `.`, `..` and doubled slashes, by the text alone. A name like <string>, and a
 * relative one without `cwd`, stay as they are. What does not fit is cut.
 */
void source_path_write(const char *file, const char *cwd, char *path, size_t size);
