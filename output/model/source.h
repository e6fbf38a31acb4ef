/* Source text comes from whoever may read files; the model asks for it once a file. */
#pragma once

#include <stddef.h>

struct source {
    char *bytes; /* as in the file, in any encoding; malloc'ed, the asker frees it */
    size_t size;
    double modified_s; /* Unix time; 0: unknown */
};

struct source_reader {
    /* 0 or -ENOENT, … `file` is absolute, or a name like <string>. */
    int (*read)(struct source_reader *self, const char *file, struct source *ret);
};
