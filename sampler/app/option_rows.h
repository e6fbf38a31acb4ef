/* The rows of options.def and verbs.def: what the parser, the configuration and the documents walk.
 */
#pragma once

#include "sampler/app/options.h"

/* Each is a row of option_value.c. */
enum option_type {
    TYPE_FLAG,
    TYPE_SWITCH,
    TYPE_WISH,
    TYPE_ACTION,
    TYPE_PIDS,
    TYPE_NUMBER,
    TYPE_SECONDS,
    TYPE_INTERVAL,
    TYPE_OVERHEAD,
    TYPE_COUNT,
    TYPE_BYTES,
    TYPE_TEXT,
    TYPE_LIST,
    TYPE_FILE,
    TYPE_FOLDER,
    TYPE_COMMAND,
    TYPE_CONFIG,
    TYPE_FORMAT,
    TYPE_METHOD,
    TYPE_COLUMN,
};

enum option_level { LEVEL_BASIC, LEVEL_ADVANCED };

struct option_row {
    size_t member; /* offset in struct options */
    enum option_type type;
    const char *name;
    char letter;
    const char *metavar; /* NULL: takes no value */
    int verbs;           /* a bit for each */
    enum option_level level;
    const char *help;
};

enum option_words { WORDS_NONE, WORDS_FILES, WORDS_COMMAND, WORDS_PROGRAM, WORDS_CHOICE };

struct verb_row {
    const char *word; /* NULL: no word of its own */
    enum option_words words;
    const char *synopsis, *help;
};

enum {
#define OPTION(...) +1
    OPTION_COUNT =
#include "sampler/app/options.def"
#undef OPTION
};

extern const struct option_row option_rows[OPTION_COUNT];
extern const struct options option_defaults;
extern const struct verb_row verb_rows[VERB_COUNT];

struct exclusion_row {
    enum verb verb;
    const char *name, *others; /* names parted by spaces */
};
extern const struct exclusion_row exclusion_rows[];
extern const size_t exclusion_count;

/* What options say of themselves, together: the first whose verbs an option has is its own. */
struct option_section {
    const char *title;
    int verbs;
};
extern const struct option_section option_sections[];
extern const size_t option_section_count;
const struct option_section *option_section_of(const struct option_row *row);

/* Every verb's rows are those of VERB_NONE. */
static inline bool option_goes_with(const struct option_row *row, enum verb verb)
{
    return verb == VERB_NONE || row->verbs >> verb & 1;
}

/* A row of the verb, if there is one; else of any, so that the error can say so. NULL: no such
 * name. */
const struct option_row *option_find(enum verb verb, const char *name, size_t length);
const struct option_row *option_find_letter(enum verb verb, char letter);

/* The verb of that word, else VERB_NONE. */
enum verb verb_find(const char *word);

/* How a sentence calls it. */
const char *verb_name(enum verb verb);

/* What was most likely meant, among the rows of that verb. */
const char *option_nearest(enum verb verb, const char *name, bool configurable);
const char *verb_nearest(const char *word);

/* May it stand in a configuration? */
bool option_is_configurable(const struct option_row *row);

/* Is it one that shares an earlier one's member, and so only another way to say that? */
bool option_is_other_name(const struct option_row *row);
