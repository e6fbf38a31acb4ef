#include "sampler/app/options.h"

#include "output/cli/style.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_type {
    TYPE_FLAG,
    TYPE_SWITCH,
    TYPE_PIDS,
    TYPE_NUMBER,
    TYPE_COUNT,
    TYPE_BYTES,
    TYPE_TEXT,
    TYPE_METHOD
};
enum option_level { LEVEL_BASIC, LEVEL_ADVANCED };

/* Which verbs take an option. */
enum {
    DUMP = 1 << VERB_DUMP,
    RUN = 1 << VERB_RUN,
    PROFILE = 1 << VERB_ATTACH | 1 << VERB_LAUNCH | RUN,
    VIEW = 1 << VERB_VIEW,
    STATUS = 1 << VERB_STATUS,
    STEER = 1 << VERB_ON | 1 << VERB_OFF | 1 << VERB_FLUSH | 1 << VERB_STOP | STATUS,
    ALL = ~0,
};

struct option_row {
    size_t member;
    enum option_type type;
    const char *name;
    char letter;
    const char *metavar;
    int verbs;
    enum option_level level;
    const char *help;
};

static const struct option_row rows[] = {
#define OPTION(member, type, value, name, letter, metavar, verbs, level, help)                     \
    { offsetof(struct options, member),                                                            \
      TYPE_##type,                                                                                 \
      name,                                                                                        \
      letter,                                                                                      \
      metavar,                                                                                     \
      verbs,                                                                                       \
      LEVEL_##level,                                                                               \
      help },
#include "sampler/app/options.def"
#undef OPTION
};
static const size_t row_count = sizeof rows / sizeof *rows;

static const struct verb_row {
    const char *word; /* NULL: no word of its own */
    const char *synopsis, *help;
} verbs[VERB_COUNT] = {
    [VERB_ATTACH] = { NULL, "[options] --pid N", "profile a running Python" },
    [VERB_LAUNCH] = { NULL, "[options] -- COMMAND ARGS...",
                      "start a command and profile its Pythons" },
    [VERB_RUN] = { "run", "run [options] prog.py [args]", "start a Python program and profile it" },
    [VERB_VIEW] = { "view", "view [profile.json] --cli [-r]", "show a profile" },
    [VERB_DUMP] = { "dump", "dump --pid N [--native] [--json]", "the stacks of all threads, once" },
    [VERB_ON] = { "on", "on --pid N", "tell the profiler of N to sample" },
    [VERB_OFF] = { "off", "off --pid N", "tell it to rest until `on`" },
    [VERB_FLUSH] = { "flush", "flush --pid N", "tell it to write the profile now and go on" },
    [VERB_STOP] = { "stop", "stop --pid N", "tell it to write the profile and end" },
    [VERB_STATUS] = { "status", "status --pid N [--json]", "tell it to say how it is doing" },
};

static const char *const method_names[] = { "symbol", "section", "cookie", "scan" };

static void *member_of(struct options *options, const struct option_row *row)
{
    return (char *)options + row->member;
}

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
    const char *nearest = verbs[VERB_RUN].word;
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (verbs[i].word && word_distance(name, verbs[i].word) < word_distance(name, nearest))
            nearest = verbs[i].word;
    return nearest;
}

/* ---- values ---- */

static int pid_store(const char *text, struct pid_list *list)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value <= 0 || value > INT_MAX || list->count == PIDS_MAX)
        return -EINVAL;
    list->items[list->count++] = (pid_t)value;
    return 0;
}

static int number_store(const char *text, double *ret)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0)
        return -EINVAL;
    *ret = value;
    return 0;
}

static int count_store(const char *text, int64_t least, int64_t *ret)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least)
        return -EINVAL;
    *ret = value;
    return 0;
}

static int method_store(const char *text, unsigned *ret)
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
    void *member = member_of(options, row);
    switch (row->type) {
    case TYPE_PIDS:
        if (pid_store(text, member))
            return failure_set(why, -EINVAL, "--%s wants a process id, and '%s' is none", row->name,
                               text);
        return 0;
    case TYPE_NUMBER:
        if (number_store(text, member))
            return failure_set(why, -EINVAL, "--%s wants a number that is not negative, not '%s'",
                               row->name, text);
        return 0;
    case TYPE_COUNT:
        if (count_store(text, 0, member))
            return failure_set(why, -EINVAL,
                               "--%s wants a whole number that is not negative, not '%s'",
                               row->name, text);
        return 0;
    case TYPE_BYTES:
        if (count_store(text, 1, member))
            return failure_set(why, -EINVAL, "--%s wants a number of bytes, 1 at least, not '%s'",
                               row->name, text);
        return 0;
    case TYPE_METHOD:
        if (method_store(text, member))
            return failure_set(why, -EINVAL, "--%s wants symbol, section, cookie or scan, not '%s'",
                               row->name, text);
        return 0;
    default:
        *(const char **)member = text;
        return 0;
    }
}

/* ---- words ---- */

static bool row_goes_with(const struct option_row *row, enum verb verb)
{
    return verb == VERB_NONE || row->verbs >> verb & 1;
}

/* A row of the verb, if there is one; else of any, so that the error can say so. */
static const struct option_row *row_find(enum verb verb, const char *name, size_t length)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < row_count; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0 &&
            (!found || row_goes_with(&rows[i], verb)))
            found = &rows[i];
    return found;
}

static const struct option_row *row_find_letter(enum verb verb, char letter)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < row_count; i++)
        if (letter && rows[i].letter == letter && (!found || row_goes_with(&rows[i], verb)))
            found = &rows[i];
    return found;
}

/* `value` stands behind "=" or the letter; NULL if nothing does. Returns words used beyond the
 * option's own. */
static int option_take(const struct option_row *row, const char *value, const char *next,
                       struct options *options, struct failure *why)
{
    if (!row_goes_with(row, options->verb))
        return failure_set(why, -EINVAL, "--%s does not go with %s", row->name,
                           verbs[options->verb].word ? verbs[options->verb].word : "profiling");
    if (row->type == TYPE_FLAG || row->type == TYPE_SWITCH) {
        if (value)
            return failure_set(why, -EINVAL, "--%s takes no value", row->name);
        *(bool *)member_of(options, row) = true;
        return 0;
    }
    if (!value && !next)
        return failure_set(why, -EINVAL, "--%s needs a value: --%s %s", row->name, row->name,
                           row->metavar);
    int error = value_store(row, value ? value : next, options, why);
    return error ? error : !value;
}

/* "--no-x" of a switch. 1: taken, 0: there is none. */
static int switch_off(const char *name, struct options *options)
{
    if (strncmp(name, "no-", 3) != 0)
        return 0;
    const struct option_row *row = row_find(options->verb, name + 3, strlen(name + 3));
    if (!row || row->type != TYPE_SWITCH || !row_goes_with(row, options->verb))
        return 0;
    *(bool *)member_of(options, row) = false;
    return 1;
}

static int word_take(const char *word, const char *next, struct options *options,
                     struct failure *why)
{
    if (strncmp(word, "--", 2) == 0) {
        const char *name = word + 2;
        size_t length = strcspn(name, "=");
        const struct option_row *row = row_find(options->verb, name, length);
        if (!row && switch_off(name, options))
            return 0;
        if (!row)
            return failure_set(why, -EINVAL, "unknown option '%s'; the nearest is --%s", word,
                               nearest_option(name));
        return option_take(row, name[length] ? name + length + 1 : NULL, next, options, why);
    }
    const struct option_row *row = row_find_letter(options->verb, word[1]);
    if (!row)
        return failure_set(why, -EINVAL, "unknown option '%s'; scalene-attach -h lists them", word);
    return option_take(row, word[2] ? word + 2 : NULL, next, options, why);
}

static enum verb verb_find(const char *word)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (verbs[i].word && strcmp(word, verbs[i].word) == 0)
            return (enum verb)i;
    return VERB_NONE;
}

/* Does the option take the next word for its value? */
static bool word_wants_next(const char *word)
{
    const struct option_row *row = NULL;
    if (strncmp(word, "--", 2) == 0)
        row = strchr(word, '=') ? NULL : row_find(VERB_NONE, word + 2, strlen(word + 2));
    else if (word[0] == '-' && word[1] && !word[2])
        row = row_find_letter(VERB_NONE, word[1]);
    return row && row->metavar;
}

/* The verb's word may stand behind options; without one, a command behind "--" is launched and
 * everything else attaches.
 * `*ret_at` is where the word stands, 0 if there is none. */
static enum verb verb_look(int argc, char *const *argv, int *ret_at)
{
    *ret_at = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return VERB_LAUNCH;
        if (verb_find(argv[i]) != VERB_NONE) {
            *ret_at = i;
            return verb_find(argv[i]);
        }
        if (argv[i][0] != '-')
            break;
        i += word_wants_next(argv[i]);
    }
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return VERB_LAUNCH;
    return argc > 1 ? VERB_ATTACH : VERB_NONE;
}

/* Where the words begin that are not ours: a command, a program with its arguments, a file. */
static int words_take(int at, char *const *argv, struct options *options, struct failure *why)
{
    const char *word = argv[at];
    bool ends = strcmp(word, "--") == 0 || strcmp(word, "---") == 0;
    options->words = argv + at + ends;
    if (options->verb == VERB_LAUNCH && !ends)
        return failure_set(why, -EINVAL, "'%s' stands before the -- that begins the command", word);
    if (options->verb == VERB_ATTACH)
        return failure_set(why, -EINVAL, "unknown command '%s'; the nearest is %s", word,
                           nearest_verb(word));
    if (options->verb == VERB_DUMP || verb_steers(options->verb))
        return failure_set(why, -EINVAL, "'%s' is one word too many", word);
    if (options->verb == VERB_LAUNCH && !*options->words)
        return failure_set(why, -EINVAL,
                           "behind -- comes the command to profile, and there is none");
    return 0;
}

/* Behind the name of a file, view takes options still; a program's arguments are the program's. */
static int options_take(int verb_at, int argc, char *const *argv, struct options *options,
                        struct failure *why)
{
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (at == verb_at)
            continue;
        /* run -m mod is Python's own word */
        bool python_word = options->verb == VERB_RUN && strcmp(word, "-m") == 0;
        bool ours = word[0] == '-' && word[1] && strcmp(word, "--") != 0 &&
                    strcmp(word, "---") != 0 && !python_word;
        if (!ours && options->verb == VERB_VIEW && !options->words) {
            options->words = argv + at;
            continue;
        }
        if (!ours)
            return words_take(at, argv, options, why);
        int used = word_take(word, at + 1 < argc ? argv[at + 1] : NULL, options, why);
        if (used < 0)
            return used;
        at += used;
    }
    return 0;
}

/* Rows that share a member give it the same value. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct options defaults = {
#define OPTION(member, type, value, ...) .member = value,
#include "sampler/app/options.def"
#undef OPTION
};
#pragma GCC diagnostic pop

int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why)
{
    int verb_at = 0;
    *ret = defaults;
    ret->verb = verb_look(argc, argv, &verb_at);
    return options_take(verb_at, argc, argv, ret, why);
}

/* ---- help ---- */

static void help_option(FILE *out, bool coloured, const struct option_row *row)
{
    char letter[8] = "    ", name[48];
    snprintf(name, sizeof name, row->type == TYPE_SWITCH ? "--[no-]%s" : "--%s", row->name);
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
    fprintf(out, "%*s%s\n", columns < 26 ? (int)(28 - columns) : 2, "", row->help);
}

void options_write_help(FILE *out, bool advanced)
{
    bool coloured = style_wanted(out);
    style_print(out, coloured, STYLE_HEADING, "usage:");
    for (size_t i = 1; i < VERB_COUNT; i++) {
        fputs(i == 1 ? " " : "       ", out);
        style_print(out, coloured, STYLE_PROGRAM, "scalene-attach");
        fprintf(out, " %-34s %s\n", verbs[i].synopsis, verbs[i].help);
    }
    fputs("\nLooks into a running CPython (3.8 to 3.15) from outside.\n\n", out);
    style_print(out, coloured, STYLE_HEADING, "options:");
    fputc('\n', out);
    for (size_t i = 0; i < row_count; i++)
        if (advanced || rows[i].level == LEVEL_BASIC)
            help_option(out, coloured, &rows[i]);
}
