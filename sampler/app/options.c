#include "sampler/app/options.h"

#include "sampler/app/config.h"
#include "sampler/app/option_value.h"

#include <stdio.h>
#include <string.h>

/* One command line on its way into options. */
struct parse {
    int argc;
    char *const *argv;
    int verb_at; /* where the verb's word stands; 0: nowhere */
    struct option_set said;
    struct options *options;
    struct failure *why;
};

/* ---- options ---- */

static void option_said(struct parse *parse, const struct option_row *row)
{
    parse->said.has[row - option_rows] = true;
}

/* `value` stands behind "=" or the letter; NULL if nothing does. Returns words used beyond the
 * option's own. */
static int option_take(struct parse *parse, const struct option_row *row, const char *value,
                       const char *next)
{
    struct options *options = parse->options;
    char called[64];
    if (!option_goes_with(row, options->verb))
        return failure_set(parse->why, -EINVAL, "--%s does not go with %s", row->name,
                           verb_name(options->verb));
    option_said(parse, row);
    if (option_kind(row)->scalar == SCALAR_SWITCH) {
        if (value)
            return failure_set(parse->why, -EINVAL, "--%s takes no value", row->name);
        option_switch(row, true, options);
        return 0;
    }
    if (!value && !next)
        return failure_set(parse->why, -EINVAL, "--%s needs a value: --%s %s", row->name, row->name,
                           row->metavar);
    snprintf(called, sizeof called, "--%s", row->name);
    int error = option_store(row, called, value ? value : next, options, parse->why);
    return error ? error : !value;
}

/* "--no-x" of what is true or false. 1: taken, 0: there is none. */
static int switch_off(struct parse *parse, const char *name)
{
    if (strncmp(name, "no-", 3) != 0)
        return 0;
    const struct option_row *row = option_find(parse->options->verb, name + 3, strlen(name + 3));
    if (!row || !option_goes_with(row, parse->options->verb) || row->type == TYPE_ACTION ||
        option_kind(row)->scalar != SCALAR_SWITCH)
        return 0;
    option_said(parse, row);
    option_switch(row, false, parse->options);
    return 1;
}

static int option_word_take(struct parse *parse, const char *word, const char *next)
{
    enum verb verb = parse->options->verb;
    if (strncmp(word, "--", 2) == 0) {
        const char *name = word + 2;
        size_t length = strcspn(name, "=");
        const struct option_row *row = option_find(verb, name, length);
        if (!row && switch_off(parse, name))
            return 0;
        if (!row)
            return failure_set(parse->why, -EINVAL, "unknown option '%s'; the nearest is --%s",
                               word, option_nearest(verb, name, false));
        return option_take(parse, row, name[length] ? name + length + 1 : NULL, next);
    }
    const struct option_row *row = option_find_letter(verb, word[1]);
    if (!row)
        return failure_set(parse->why, -EINVAL, "unknown option '%s'; scalene-attach -h lists them",
                           word);
    return option_take(parse, row, word[2] ? word + 2 : NULL, next);
}

/* ---- the verb ---- */

/* Does the option take the next word for its value? */
static bool word_wants_next(const char *word)
{
    const struct option_row *row = NULL;
    if (strncmp(word, "--", 2) == 0)
        row = strchr(word, '=') ? NULL : option_find(VERB_NONE, word + 2, strlen(word + 2));
    else if (word[0] == '-' && word[1] && !word[2])
        row = option_find_letter(VERB_NONE, word[1]);
    return row && row->metavar;
}

/* The verb's word may stand behind options; without one, a command behind "--" is launched and
 * everything else attaches. */
static enum verb verb_look(struct parse *parse)
{
    for (int i = 1; i < parse->argc; i++) {
        const char *word = parse->argv[i];
        if (strcmp(word, "--") == 0)
            return VERB_LAUNCH;
        if (verb_find(word) != VERB_NONE) {
            parse->verb_at = i;
            return verb_find(word);
        }
        if (word[0] != '-')
            break;
        i += word_wants_next(word);
    }
    for (int i = 1; i < parse->argc; i++)
        if (strcmp(parse->argv[i], "--") == 0)
            return VERB_LAUNCH;
    return parse->argc > 1 ? VERB_ATTACH : VERB_NONE;
}

/* ---- words that are no options ---- */

/* Where the words begin that are not ours: a command, or a program with its arguments. */
static int words_begin(struct parse *parse, int at)
{
    struct options *options = parse->options;
    const char *word = parse->argv[at];
    bool ends = strcmp(word, "--") == 0 || strcmp(word, "---") == 0;
    options->words = parse->argv + at + ends;
    if (options->verb == VERB_LAUNCH && !ends)
        return failure_set(parse->why, -EINVAL, "'%s' stands before the -- that begins the command",
                           word);
    if (options->verb == VERB_ATTACH)
        return failure_set(parse->why, -EINVAL, "unknown command '%s'; the nearest is %s", word,
                           verb_nearest(word));
    if (verb_rows[options->verb].words == WORDS_NONE)
        return failure_set(parse->why, -EINVAL, "'%s' is one word too many", word);
    if (options->verb == VERB_LAUNCH && !*options->words)
        return failure_set(parse->why, -EINVAL,
                           "behind -- comes the command to profile, and there is none");
    return 0;
}

/* Options may stand between words such as these. */
static int file_take(struct parse *parse, char *word)
{
    struct options *options = parse->options;
    char **words = (char **)(uintptr_t)options->words;
    size_t count = 0;
    if (!words)
        words = arena_take(&options->arena, (size_t)parse->argc * sizeof *words);
    if (!words)
        return failure_set(parse->why, -ENOMEM, "out of memory");
    while (words[count])
        count++;
    words[count] = word;
    options->words = words;
    return 0;
}

static bool word_is_option(const struct parse *parse, const char *word)
{
    /* run -m mod is Python's own word */
    bool python_word = parse->options->verb == VERB_RUN && strcmp(word, "-m") == 0;
    return word[0] == '-' && word[1] && strcmp(word, "--") != 0 && strcmp(word, "---") != 0 &&
           !python_word;
}

static int words_take(struct parse *parse)
{
    enum option_words kind = verb_rows[parse->options->verb].words;
    for (int at = 1; at < parse->argc; at++) {
        char *word = parse->argv[at];
        int used = 0;
        if (at == parse->verb_at)
            continue;
        if (word_is_option(parse, word))
            used = option_word_take(parse, word, at + 1 < parse->argc ? parse->argv[at + 1] : NULL);
        else if (kind == WORDS_FILES || kind == WORDS_CHOICE)
            used = file_take(parse, word);
        else
            return words_begin(parse, at);
        if (used < 0)
            return used;
        at += used;
    }
    return 0;
}

/* ---- what does not go together ---- */

/* Was it given, and not as its --no- form? */
static bool is_wanted(const struct parse *parse, const char *name, size_t length)
{
    char text[32];
    const struct option_row *row = option_find(parse->options->verb, name, length);
    if (!row || !parse->said.has[row - option_rows])
        return false;
    return option_kind(row)->scalar != SCALAR_SWITCH ||
           strcmp(option_text(row, parse->options, 0, text, sizeof text), "true") == 0;
}

static int exclusion_check(const struct parse *parse, const struct exclusion_row *row)
{
    if (row->verb != parse->options->verb || !is_wanted(parse, row->name, strlen(row->name)))
        return 0;
    for (const char *other = row->others; *other;) {
        size_t length = strcspn(other, " ");
        if (is_wanted(parse, other, length))
            return failure_set(parse->why, -EINVAL, "--%s and --%.*s exclude each other", row->name,
                               (int)length, other);
        other += length + (other[length] == ' ');
    }
    return 0;
}

static int exclusions_check(const struct parse *parse)
{
    int error = 0;
    for (size_t i = 0; i < exclusion_count && !error; i++)
        error = exclusion_check(parse, &exclusion_rows[i]);
    return error;
}

int options_parse(int argc, char *const *argv, struct options *ret, struct failure *why)
{
    struct parse parse = { .argc = argc, .argv = argv, .options = ret, .why = why };
    *ret = option_defaults;
    ret->verb = verb_look(&parse);
    int error = words_take(&parse);
    if (!error)
        error = exclusions_check(&parse);
    ret->asks_profiler = ret->on != WISH_NONE || ret->off != WISH_NONE;
    if (!error && ret->config)
        error = config_read(ret->config, &parse.said, ret, why);
    return error;
}

void options_done(struct options *options)
{
    arena_done(&options->arena);
}
