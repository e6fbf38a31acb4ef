#include "sampler/app/options.h"

#include "output/cli/style.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_type { TYPE_FLAG, TYPE_PID, TYPE_METHOD };
enum option_level { LEVEL_BASIC, LEVEL_ADVANCED };

struct option_row {
    size_t member;
    enum option_type type;
    const char *name;
    char letter;
    const char *metavar;
    enum option_level level;
    const char *help;
};

static const struct option_row rows[] = {
#define OPTION(member, type, name, letter, metavar, level, help)                                   \
    { offsetof(struct options, member), TYPE_##type, name, letter, metavar, LEVEL_##level, help },
#include "sampler/app/options.def"
#undef OPTION
};
static const size_t row_count = sizeof rows / sizeof *rows;

static const struct verb_row {
    const char *name, *synopsis, *help;
} verbs[VERB_COUNT] = {
    [VERB_DUMP] = { "dump", "dump --pid N [--native] [--json]", "the stacks of all threads, once" },
};

static const char *const method_names[] = { "symbol", "section", "cookie", "scan" };

/* ---- the nearest known word ---- */

enum { WORD_MAX = 32 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace) that turn one word into the other. */
static size_t word_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t length = smaller(strlen(b), WORD_MAX);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = smaller(replaced, smaller(row[j], diagonal) + 1);
        }
    }
    return row[length];
}

static const char *nearest_option(const char *name)
{
    const char *nearest = rows[0].name;
    for (size_t i = 0; i < row_count; i++)
        if (word_distance(name, rows[i].name) < word_distance(name, nearest))
            nearest = rows[i].name;
    return nearest;
}

static const char *nearest_verb(const char *name)
{
    const char *nearest = verbs[1].name;
    for (size_t i = 1; i < VERB_COUNT; i++)
        if (word_distance(name, verbs[i].name) < word_distance(name, nearest))
            nearest = verbs[i].name;
    return nearest;
}

/* ---- values ---- */

static int pid_parse(const char *text, pid_t *ret)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value <= 0 || value > INT_MAX)
        return -EINVAL;
    *ret = (pid_t)value;
    return 0;
}

static int method_parse(const char *text, unsigned *ret)
{
    for (unsigned i = 0; i < sizeof method_names / sizeof *method_names; i++) {
        if (strcmp(text, method_names[i]) == 0) {
            *ret = 1u << i;
            return 0;
        }
    }
    return -EINVAL;
}

static int value_store(const struct option_row *row, const char *text, struct options *options,
                       struct failure *why)
{
    void *member = (char *)options + row->member;
    if (row->type == TYPE_PID && pid_parse(text, member))
        return failure_set(why, -EINVAL, "--%s wants a process id, and '%s' is none", row->name, text);
    if (row->type == TYPE_METHOD && method_parse(text, member))
        return failure_set(why, -EINVAL, "--%s wants symbol, section, cookie or scan, not '%s'",
                           row->name, text);
    return 0;
}

/* ---- words ---- */

static const struct option_row *row_find(const char *name, size_t length)
{
    for (size_t i = 0; i < row_count; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

static const struct option_row *row_find_letter(char letter)
{
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

/* `value` is what stands behind "=" or the letter, NULL if nothing does. Returns words used beyond the option's. */
static int option_take(const struct option_row *row, const char *value, const char *next,
                       struct options *options, struct failure *why)
{
    if (row->type == TYPE_FLAG) {
        if (value)
            return failure_set(why, -EINVAL, "--%s takes no value", row->name);
        *(bool *)((char *)options + row->member) = true;
        return 0;
    }
    if (!value && !next)
        return failure_set(why, -EINVAL, "--%s needs a value: --%s %s", row->name, row->name,
                           row->metavar);
    int error = value_store(row, value ? value : next, options, why);
    return error ? error : !value;
}

static int word_take(const char *word, const char *next, struct options *options, struct failure *why)
{
    if (strncmp(word, "--", 2) == 0) {
        const char *name = word + 2;
        size_t length = strcspn(name, "=");
        const struct option_row *row = row_find(name, length);
        if (!row)
            return failure_set(why, -EINVAL, "unknown option '%s'; the nearest is --%s", word,
                               nearest_option(name));
        return option_take(row, name[length] ? name + length + 1 : NULL, next, options, why);
    }
    const struct option_row *row = row_find_letter(word[1]);
    if (!row)
        return failure_set(why, -EINVAL, "unknown option '%s'; scalene-attach -h lists them", word);
    return option_take(row, word[2] ? word + 2 : NULL, next, options, why);
}

static int verb_take(const char *word, struct options *options, struct failure *why)
{
    if (options->verb != VERB_NONE)
        return failure_set(why, -EINVAL, "'%s' is one word too many", word);
    for (size_t i = 1; i < VERB_COUNT; i++)
        if (strcmp(word, verbs[i].name) == 0)
            options->verb = (enum verb)i;
    if (options->verb == VERB_NONE)
        return failure_set(why, -EINVAL, "unknown command '%s'; the nearest is %s", word,
                           nearest_verb(word));
    return 0;
}

int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why)
{
    *ret = (struct options){ .verb = VERB_NONE };
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int used = argv[i][0] == '-' && argv[i][1] ? word_take(argv[i], next, ret, why)
                                                   : verb_take(argv[i], ret, why);
        if (used < 0)
            return used;
        i += used;
    }
    return 0;
}

/* ---- help ---- */

static void help_option(FILE *out, bool coloured, const struct option_row *row)
{
    char letter[8] = "    ", name[40];
    snprintf(name, sizeof name, "--%s", row->name);
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    fputs("  ", out);
    style_print(out, coloured, STYLE_SHORT_OPTION, letter);
    style_print(out, coloured, STYLE_LONG_OPTION, name);
    size_t columns = strlen(name);
    if (row->metavar) {
        fputc(' ', out);
        style_print(out, coloured, STYLE_METAVAR, row->metavar);
        columns += 1 + strlen(row->metavar);
    }
    fprintf(out, "%*s%s\n", columns < 18 ? (int)(20 - columns) : 2, "", row->help);
}

void options_write_help(FILE *out, bool advanced)
{
    bool coloured = style_wanted(out);
    style_print(out, coloured, STYLE_HEADING, "usage:");
    for (size_t i = 1; i < VERB_COUNT; i++) {
        fputs(i == 1 ? " " : "       ", out);
        style_print(out, coloured, STYLE_PROGRAM, "scalene-attach");
        fprintf(out, " %s\n", verbs[i].synopsis);
    }
    fputs("\nLooks into a running CPython (3.8 to 3.15) from outside.\n\n", out);
    style_print(out, coloured, STYLE_HEADING, "commands:");
    fputc('\n', out);
    for (size_t i = 1; i < VERB_COUNT; i++) {
        fputs("  ", out);
        style_print(out, coloured, STYLE_LONG_OPTION, verbs[i].name);
        fprintf(out, "%*s%s\n", (int)(24 - strlen(verbs[i].name)), "", verbs[i].help);
    }
    fputc('\n', out);
    style_print(out, coloured, STYLE_HEADING, "options:");
    fputc('\n', out);
    for (size_t i = 0; i < row_count; i++)
        if (advanced || rows[i].level == LEVEL_BASIC)
            help_option(out, coloured, &rows[i]);
}
