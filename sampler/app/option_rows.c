#include "sampler/app/option_rows.h"

#include "sampler/app/nearest_word.h"

#include <string.h>

/* Which verbs take an option. */
enum {
    DUMP = 1 << VERB_DUMP,
    RUN = 1 << VERB_RUN,
    LAUNCHED = 1 << VERB_LAUNCH | RUN,
    ATTACH = 1 << VERB_ATTACH,
    PROFILE = ATTACH | LAUNCHED,
    VIEW = 1 << VERB_VIEW,
    EXPORT = 1 << VERB_EXPORT,
    DIFF = 1 << VERB_DIFF,
    MERGE = 1 << VERB_MERGE,
    STATUS = 1 << VERB_STATUS,
    STEER = 1 << VERB_ON | 1 << VERB_OFF | 1 << VERB_FLUSH | 1 << VERB_STOP | STATUS,
    ALL = ~0,
};

const struct option_row option_rows[OPTION_COUNT] = {
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

/* Rows that share a member give it the same value. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const struct options option_defaults = {
#define OPTION(member, type, value, ...) .member = value,
#include "sampler/app/options.def"
#undef OPTION
};
#pragma GCC diagnostic pop

const struct verb_row verb_rows[VERB_COUNT] = {
#define VERB(name, word, words, synopsis, help)                                                    \
    [VERB_##name] = { word, WORDS_##words, synopsis, help },
#include "sampler/app/verbs.def"
#undef VERB
};

const struct exclusion_row exclusion_rows[] = {
#define EXCLUSION(verb, name, others) { VERB_##verb, name, others },
#include "sampler/app/exclusions.def"
#undef EXCLUSION
};
const size_t exclusion_count = sizeof exclusion_rows / sizeof *exclusion_rows;

const struct option_section option_sections[] = {
    { "profiling", PROFILE },
    { "view", VIEW },
    { "diff and merge", DIFF | MERGE },
    { "export", EXPORT },
    { "dump, status and steering", DUMP | STEER },
    { "everywhere", ALL },
};
const size_t option_section_count = sizeof option_sections / sizeof *option_sections;

const struct option_section *option_section_of(const struct option_row *row)
{
    size_t i = row->verbs == ALL ? option_section_count - 1 : 0;
    while (!(option_sections[i].verbs & row->verbs))
        i++;
    return &option_sections[i];
}

const struct option_row *option_find(enum verb verb, const char *name, size_t length)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0 &&
            (!found || option_goes_with(row, verb)))
            found = row;
    }
    return found;
}

const struct option_row *option_find_letter(enum verb verb, char letter)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (letter && row->letter == letter && (!found || option_goes_with(row, verb)))
            found = row;
    }
    return found;
}

enum verb verb_find(const char *word)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (verb_rows[i].word && strcmp(word, verb_rows[i].word) == 0)
            return (enum verb)i;
    return VERB_NONE;
}

const char *verb_name(enum verb verb)
{
    if (verb_rows[verb].word)
        return verb_rows[verb].word;
    return verb == VERB_ATTACH ? "profiling with --pid" : "profiling a command";
}

const char *option_nearest(enum verb verb, const char *name, bool configurable)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (!option_goes_with(row, verb) || (configurable && !option_is_configurable(row)))
            continue;
        if (!nearest || word_distance(name, row->name) < word_distance(name, nearest))
            nearest = row->name;
    }
    return nearest;
}

const char *verb_nearest(const char *word)
{
    const char *nearest = verb_rows[VERB_RUN].word;
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (verb_rows[i].word &&
            word_distance(word, verb_rows[i].word) < word_distance(word, nearest))
            nearest = verb_rows[i].word;
    return nearest;
}

bool option_is_configurable(const struct option_row *row)
{
    return row->type != TYPE_ACTION && row->type != TYPE_CONFIG && row->verbs & PROFILE;
}

bool option_is_other_name(const struct option_row *row)
{
    for (const struct option_row *other = option_rows; other < row; other++)
        if (other->member == row->member)
            return true;
    return false;
}
