/* The help on a terminal: verbs, then options, each section under its heading, in the width there
 * is. */
#include "sampler/app/document.h"

#include "output/cli/screen_width.h"
#include "output/cli/style.h"
#include "sampler/app/option_value.h"

#include <string.h>

enum { NAME_COLUMNS = 34, HELP_COLUMNS_MIN = 24, WIDTH_MAX = 110 };

struct help {
    FILE *out;
    bool coloured;
    size_t width;
};

static struct help help_begin(FILE *out)
{
    size_t width = screen_width(out);
    return (struct help){ out, style_wanted(out), width < WIDTH_MAX ? width : WIDTH_MAX };
}

/* Words from column `at` on, which stay behind column `indent`. */
static void text_write(const struct help *help, const char *text, size_t at, size_t indent)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        if (at + 1 + length > help->width && at > indent) {
            fprintf(help->out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', help->out);
            at++;
        }
        fprintf(help->out, "%.*s", (int)length, text);
        at += length;
        text += length + strspn(text + length, " ");
    }
    fputc('\n', help->out);
}

/* The explanation beside what stands up to column `at`, or below where that is too wide. */
static void beside_write(const struct help *help, const char *text, size_t at)
{
    size_t indent = NAME_COLUMNS;
    if (indent + HELP_COLUMNS_MIN > help->width)
        indent = 8;
    if (at + 1 > indent) {
        fputc('\n', help->out);
        at = 0;
    }
    fprintf(help->out, "%*s", (int)(indent - at), "");
    text_write(help, text, indent, indent);
}

static size_t print(const struct help *help, enum style style, const char *text)
{
    style_print(help->out, help->coloured, style, text);
    return strlen(text);
}

static void option_write(const struct help *help, const struct option_row *row)
{
    char name[64];
    size_t at = 2;
    fputs("  ", help->out);
    snprintf(name, sizeof name, "-%c", row->letter);
    if (row->letter) {
        print(help, STYLE_SHORT_OPTION, name);
        fputs(", ", help->out);
    } else {
        fputs("    ", help->out);
    }
    at += 4;
    snprintf(name, sizeof name, row->type == TYPE_SWITCH ? "--[no-]%s" : "--%s", row->name);
    at += print(help, STYLE_LONG_OPTION, name);
    if (row->metavar) {
        fputc(' ', help->out);
        at += 1 + print(help, STYLE_METAVAR, row->metavar);
    }
    beside_write(help, row->help, at);
}

static bool row_is_shown(const struct option_row *row, enum verb verb, bool advanced)
{
    return option_goes_with(row, verb) && (advanced || row->level == LEVEL_BASIC);
}

/* NULL is of all sections, under a heading that goes with any. */
static void section_write(const struct help *help, const struct option_section *section,
                          enum verb verb, bool advanced)
{
    bool any = false;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if ((section && option_section_of(row) != section) || !row_is_shown(row, verb, advanced))
            continue;
        if (!any) {
            fputc('\n', help->out);
            print(help, STYLE_HEADING, section ? section->title : "options");
            print(help, STYLE_HEADING, ":");
            fputc('\n', help->out);
        }
        any = true;
        option_write(help, row);
    }
}

static void usage_write(const struct help *help, enum verb verb)
{
    bool first = true;
    print(help, STYLE_HEADING, "usage:");
    for (size_t i = 1; i < VERB_COUNT; i++) {
        if (verb != VERB_NONE && verb != i)
            continue;
        fputs(first ? " " : "       ", help->out);
        size_t at = 8 + print(help, STYLE_PROGRAM, "scalene-attach");
        fprintf(help->out, " %s", verb_rows[i].synopsis);
        at += strlen(verb_rows[i].synopsis);
        if (at < 58 && help->width >= 58 + HELP_COLUMNS_MIN) {
            fprintf(help->out, "%*s", (int)(58 - at), "");
            text_write(help, verb_rows[i].help, 58, 58);
        } else {
            fprintf(help->out, "\n%*s", NAME_COLUMNS, "");
            text_write(help, verb_rows[i].help, NAME_COLUMNS, NAME_COLUMNS);
        }
        first = false;
    }
}

void help_write(FILE *out, enum verb verb, bool advanced)
{
    const struct help help = help_begin(out);
    usage_write(&help, verb);
    if (verb == VERB_NONE)
        fputs("\nLooks into a running CPython (3.8 to 3.15) from outside.\n", out);
    for (size_t i = 0; verb == VERB_NONE && i < option_section_count; i++)
        section_write(&help, &option_sections[i], verb, advanced);
    if (verb != VERB_NONE)
        section_write(&help, NULL, verb, advanced);
    if (advanced)
        text_write(
            &help,
            "\nWhat is true or false also has a --no- form, which undoes what a --config file "
            "says.",
            0, 0);
}
