#include "sampler/app/formats.h"

#include "output/html/page.h"
#include "output/json/profile_json.h"
#include "sampler/base/error.h"

#include <string.h>

const struct format formats[] = {
    { "json", ".json", FORMAT_TEXT, "the profile itself", "profile", profile_json_write },
    { "cli", "", FORMAT_TEXT, "the table for a terminal", "table", NULL },
    { "html", ".html .htm", FORMAT_TEXT, "a page, with its style and script beside it", "page",
      page_write_beside },
    { "standalone", ".standalone.html", FORMAT_TEXT, "a page with all in it", "page",
      page_write_standalone },
#define FORMAT(name, extensions, content, title)                                                   \
    { #name, extensions, FORMAT_##content, title, "profile", name##_write },
#include "output/export/formats.def"
#undef FORMAT
};
const size_t format_count = sizeof formats / sizeof *formats;

const struct format *format_find(const char *name)
{
    for (size_t i = 0; i < format_count; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* How much of the path's end is one of the format's extensions. */
static size_t extension_match(const struct format *format, const char *path)
{
    size_t length = strlen(path), best = 0;
    for (const char *at = format->extensions; *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        if (size < length && strncmp(path + length - size, at, size) == 0 && size > best)
            best = size;
        at += size;
    }
    return best;
}

/* The longest extension tells: .speedscope.json is no .json. */
const struct format *format_of_path(const char *path)
{
    const struct format *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < format_count; i++) {
        size_t match = extension_match(&formats[i], path);
        if (match > longest)
            found = &formats[i];
        longest = match > longest ? match : longest;
    }
    return found;
}

const struct format *format_choose(const char *name, const char *path)
{
    const struct format *found = name ? format_find(name) : path ? format_of_path(path) : NULL;
    return found ? found : &formats[0];
}

void format_names(char *into, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < format_count && used < size; i++)
        used += (size_t)snprintf(into + used, size - used, "%s%s",
                                 i == 0                  ? ""
                                 : i + 1 == format_count ? " or "
                                                         : ", ",
                                 formats[i].name);
}

void format_usual_file(const struct format *format, char *into, size_t size)
{
    const char *extension = *format->extensions ? format->extensions : ".txt";
    snprintf(into, size, "scalene-profile%.*s", (int)strcspn(extension, " "), extension);
}

bool format_has_assets(const struct format *format)
{
    return format->write == page_write_beside;
}

int format_write(const struct format *format, const struct report *report,
                 const struct table_settings *table, FILE *into)
{
    int error =
        format->write ? format->write(report, into) : profile_table_write(into, report, table);
    return error ? error : ferror(into) ? -EIO : 0;
}
