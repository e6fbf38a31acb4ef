/* The man page, in roff with the macros of man(7). */
#include "output/model/columns.h"
#include "sampler/app/document.h"
#include "sampler/app/option_value.h"

#include <string.h>

/* A line of text: a leading dot or quote would be a request, and a bare - a hyphen. */
static void text_write(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            fputc('\\', out);
        fputc(*text == '\\' ? 'e' : *text, out);
    }
}

static void line_write(FILE *out, const char *text)
{
    text_write(out, text);
    fputc('\n', out);
}

static void paragraph_write(FILE *out, const char *text)
{
    fputs(".PP\n", out);
    line_write(out, text);
}

static void heading_write(FILE *out, const char *request, const char *title)
{
    fprintf(out, ".%s \"", request);
    for (; *title; title++)
        fputc(strcmp(request, "SH") == 0 && *title >= 'a' && *title <= 'z' ? *title - 'a' + 'A'
                                                                           : *title,
              out);
    fputs("\"\n", out);
}

static void synopsis_write(FILE *out)
{
    heading_write(out, "SH", "synopsis");
    for (size_t i = 1; i < VERB_COUNT; i++) {
        fputs(i == 1 ? ".B scalene\\-attach\n" : ".br\n.B scalene\\-attach\n", out);
        line_write(out, verb_rows[i].synopsis);
    }
}

static void verbs_write(FILE *out)
{
    heading_write(out, "SH", "commands");
    for (size_t i = 1; i < VERB_COUNT; i++) {
        fputs(".TP\n.B ", out);
        line_write(out, verb_rows[i].synopsis);
        line_write(out, verb_rows[i].help);
    }
}

static void option_write(FILE *out, const struct option_row *row)
{
    fputs(".TP\n", out);
    if (row->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", out);
    fputs(row->type == TYPE_SWITCH ? "[no\\-]" : "", out);
    text_write(out, row->name);
    fputs("\\fR", out);
    if (row->metavar)
        fprintf(out, " \\fI%s\\fR", row->metavar);
    fputc('\n', out);
    line_write(out, row->help);
}

static void options_write(FILE *out)
{
    heading_write(out, "SH", "options");
    for (size_t section = 0; section < option_section_count; section++) {
        heading_write(out, "SS", option_sections[section].title);
        for (size_t i = 0; i < OPTION_COUNT; i++)
            if (option_section_of(&option_rows[i]) == &option_sections[section])
                option_write(out, &option_rows[i]);
    }
}

/* What --sort takes, and what the keys of the JSON mean. */
static void columns_write(FILE *out)
{
    heading_write(out, "SH", "columns");
    line_write(
        out, "The numbers of a line or a function, by their keys in the JSON, which --sort takes:");
    for (size_t i = 0; i < column_count; i++) {
        fputs(".TP\n.B ", out);
        line_write(out, columns[i].key);
        line_write(out, columns[i].help);
    }
}

struct entry {
    const char *term, *text;
};

static void entries_write(FILE *out, const char *title, const struct entry *entries, size_t count)
{
    heading_write(out, "SH", title);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n.B ", out);
        line_write(out, entries[i].term);
        line_write(out, entries[i].text);
    }
}

#define ENTRIES(out, title, ...)                                                                   \
    entries_write(out, title, (const struct entry[]){ __VA_ARGS__ },                               \
                  sizeof((const struct entry[]){ __VA_ARGS__ }) / sizeof(struct entry))

static void configuration_write(FILE *out)
{
    heading_write(out, "SH", "configuration");
    line_write(out, "The file that --config names is YAML: one option a line, with the long names "
                    "above as keys. - and _ "
                    "mean the same inside a key.");
    line_write(out, "What the command line says beats the file, and the file beats what is usual. "
                    "Every option of "
                    "profiling may stand there; a key that is none, or a value of the wrong kind, "
                    "is an error.");
    fputs(".PP\n.nf\noutput: profiles/%h\\-%p.json\nrate: 200\nstacks: false\n"
          "profile\\-only: [shop, billing]\n.fi\n",
          out);
}

static void ending_write(FILE *out)
{
    ENTRIES(out, "exit status",
            { "0", "all went well; or the status of the launched program is 0" },
            { "2", "the command line, or the configuration, cannot be understood" },
            { "125", "it could not attach, nothing came out, or nothing could be written" },
            { "126, 127", "the command cannot be started; there is no such command" },
            { "128+n", "signal n ended the launched program" });
    ENTRIES(out, "environment", { "NO_COLOR", "when not empty: no colours" },
            { "CLICOLOR_FORCE", "when neither empty nor 0: colours in a pipe too, as for less -R" },
            { "COLUMNS", "how wide the output may be; else as wide as the terminal" });
    heading_write(out, "SH", "see also");
    fputs(".BR ptrace (2),\n.BR less (1)\n", out);
}

void man_page_write(FILE *out, const char *version)
{
    fprintf(out, ".TH SCALENE\\-ATTACH 1 \"\" \"scalene\\-attach %s\" \"User Commands\"\n",
            version);
    heading_write(out, "SH", "name");
    fputs("scalene\\-attach \\- profile a running Python from outside\n", out);
    synopsis_write(out);
    heading_write(out, "SH", "description");
    line_write(out, "Reads a running CPython through the kernel, and says of each line of the "
                    "program how much time and "
                    "memory it takes. The program needs no preparation and no restart, and nothing "
                    "of it is changed.");
    paragraph_write(out, "The profile is JSON, which Scalene's own viewers open too. Without a "
                         "word of its own, a command "
                         "line attaches to the process of --pid, or starts the command behind --.");
    verbs_write(out);
    options_write(out);
    columns_write(out);
    configuration_write(out);
    ending_write(out);
}
