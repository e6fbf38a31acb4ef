/* Every format that a profile can be written in: what -f takes, and what a file's extension says.
 */
#pragma once

#include "output/cli/profile_table.h"
#include "output/export/export.h"

#include <stdbool.h>

enum format_content { FORMAT_TEXT, FORMAT_BINARY };

struct format {
    const char *name, *extensions; /* "": none; the first is what a file is called by itself */
    enum format_content content;
    const char *title;
    const char *noun;     /* what a file of it is, to a person */
    export_writer *write; /* NULL: the table for a terminal */
};

extern const struct format formats[];
extern const size_t format_count;

/* NULL when there is no such format. */
const struct format *format_find(const char *name);

/* The format of which the path has the extension; NULL when there is none. */
const struct format *format_of_path(const char *path);

/* What was asked for by name, or by the path, either of which may be NULL: JSON where both tell
 * nothing. */
const struct format *format_choose(const char *name, const char *path);

/* "a, b or c": all there are. */
void format_names(char *into, size_t size);

/* What a file of the format is called by itself: scalene-profile, and the extension. */
void format_usual_file(const struct format *format, char *into, size_t size);

/* Does it want what page_file_assets saves? */
bool format_has_assets(const struct format *format);

/* 0, -ENOMEM or -EIO. `table` is how the table is to look. */
int format_write(const struct format *format, const struct report *report,
                 const struct table_settings *table, FILE *into);
