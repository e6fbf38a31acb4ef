#include "sampler/app/config.h"

#include "output/cli/screen_text.h"
#include "sampler/app/formats.h"
#include "sampler/app/option_value.h"
#include "sampler/base/cleanup.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

enum {
    SIZE_LIMIT = 1 << 20,
    SHOWN_COLUMNS = 60,
    SHOWN_SIZE = 4 * SHOWN_COLUMNS + 8,
    NAME_SIZE = 64,
};

struct config {
    const char *file;
    yaml_parser_t parser;
    yaml_event_t event;
    size_t lines[OPTION_COUNT]; /* where each row stands; 0: nowhere */
    struct option_set given;    /* those of them that have a value */
    struct options options;
    struct failure *why;
};

/* What a plain word is in YAML; in quotes, all is text. */
enum scalar_sort { SORT_TEXT, SORT_SWITCH, SORT_NUMBER, SORT_NOTHING };

struct scalar {
    const char *text;
    enum scalar_sort sort;
    bool quoted;
};

/* ---- errors ---- */

static __attribute__((format(printf, 3, 4))) int config_fail(struct config *config, size_t line,
                                                             const char *format, ...)
{
    char file[SHOWN_SIZE], text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    screen_path_fit(config->file, SHOWN_COLUMNS, file, sizeof file);
    return line ? failure_set(config->why, -EINVAL, "%s:%zu: %s", file, line, text)
                : failure_set(config->why, -EINVAL, "%s: %s", file, text);
}

/* What stands in the file may spoil a terminal. */
static const char *shown(const char *text, char *into)
{
    screen_text_fit(text, SHOWN_COLUMNS, into, SHOWN_SIZE);
    return into;
}

#define SHOWN(text) shown(text, (char[SHOWN_SIZE]){ "" })

static size_t event_line(const struct config *config)
{
    return config->event.start_mark.line + 1;
}

/* ---- events ---- */

static int next_event(struct config *config)
{
    yaml_event_delete(&config->event);
    if (yaml_parser_parse(&config->parser, &config->event))
        return 0;
    const yaml_parser_t *parser = &config->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return failure_set(config->why, -ENOMEM, "out of memory");
    return config_fail(config, parser->problem_mark.line + 1, "this is no YAML: %s",
                       parser->problem ? parser->problem : "it cannot be read");
}

static bool word_is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(word, *words) == 0)
            return true;
    return false;
}

static const char *const yes_words[] = { "true", "yes", "on", NULL };
static const char *const no_words[] = { "false", "no", "off", NULL };
static const char *const nothing_words[] = { "", "~", "null", NULL };

static enum scalar_sort word_sort(const char *word)
{
    char *end = NULL;
    if (word_is_one_of(word, yes_words) || word_is_one_of(word, no_words))
        return SORT_SWITCH;
    if (word_is_one_of(word, nothing_words))
        return SORT_NOTHING;
    if (!strchr("+-.0123456789", word[0]))
        return SORT_TEXT;
    if (strcasecmp(word + strspn(word, "+-"), ".inf") == 0)
        return SORT_NUMBER;
    (void)strtod(word, &end);
    return *end || end == word ? SORT_TEXT : SORT_NUMBER;
}

/* The text of the event, if it is one, and what it is. */
static int scalar_read(struct config *config, struct scalar *ret)
{
    const yaml_event_t *event = &config->event;
    if (event->type == YAML_ALIAS_EVENT)
        return config_fail(config, event_line(config),
                           "an alias (*%s) stands where a value is "
                           "wanted; write the value itself",
                           SHOWN((char *)event->data.alias.anchor));
    if (event->type != YAML_SCALAR_EVENT)
        return config_fail(config, event_line(config),
                           "a nested value stands where a single one is wanted");
    const char *text = (const char *)event->data.scalar.value;
    if (event->data.scalar.tag)
        return config_fail(config, event_line(config),
                           "the tag %s says what nothing here needs; "
                           "leave it out",
                           SHOWN((char *)event->data.scalar.tag));
    if (strlen(text) != event->data.scalar.length)
        return config_fail(config, event_line(config),
                           "a value holds a NUL, which no option takes");
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    *ret = (struct scalar){ text, quoted ? SORT_TEXT : word_sort(text), quoted };
    return 0;
}

/* ---- keys and values ---- */

/* Once in a file, under whichever of its names. */
static int row_claim(struct config *config, const char *key, const struct option_row *row)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_rows[i].member == row->member && config->lines[i])
            return config_fail(config, event_line(config),
                               "'%s' is here a second time, after line %zu", SHOWN(key),
                               config->lines[i]);
    config->lines[row - option_rows] = event_line(config);
    return 0;
}

/* The row that a key names, in either spelling. */
static int key_find(struct config *config, const char *key, const struct option_row **ret)
{
    char name[NAME_SIZE];
    size_t length = strlen(key);
    enum verb verb = config->options.verb;
    snprintf(name, sizeof name, "%s", key);
    for (char *at = name; *at; at++)
        *at = *at == '_' ? '-' : *at;
    const struct option_row *row = length < sizeof name ? option_find(verb, name, length) : NULL;
    if (!row)
        return config_fail(config, event_line(config), "unknown key '%s'; the nearest is %s",
                           SHOWN(key), option_nearest(verb, name, true));
    if (!option_is_configurable(row))
        return config_fail(config, event_line(config), "'%s' belongs on the command line",
                           SHOWN(key));
    *ret = row;
    return row_claim(config, key, row);
}

static enum scalar_sort sort_wanted(const struct option_row *row)
{
    static const enum scalar_sort wanted[] = {
        [SCALAR_SWITCH] = SORT_SWITCH,
        [SCALAR_NUMBER] = SORT_NUMBER,
        [SCALAR_TEXT] = SORT_TEXT,
    };
    return wanted[option_kind(row)->scalar];
}

/* What would help: quotes make the difference where the text itself would do. */
static const char *quotes_hint(const struct option_row *row, const struct scalar *scalar)
{
    enum scalar_sort wanted = sort_wanted(row);
    if (wanted == SORT_TEXT && scalar->sort != SORT_TEXT && *scalar->text)
        return "; if that is text, put it into quotes";
    if (scalar->quoted && wanted != SORT_TEXT && word_sort(scalar->text) == wanted)
        return "; leave out the quotes, which make it text";
    return "";
}

static int wrong_type(struct config *config, const struct option_row *row,
                      const struct scalar *scalar)
{
    return config_fail(config, event_line(config), "%s wants %s, not %s%s", row->name,
                       OPTION_WANTS(row), *scalar->text ? SHOWN(scalar->text) : "nothing",
                       quotes_hint(row, scalar));
}

static int value_take(struct config *config, const struct option_row *row)
{
    struct scalar scalar;
    struct failure why = { .code = 0 };
    int error = scalar_read(config, &scalar);
    if (error)
        return error;
    if (scalar.sort != sort_wanted(row))
        return wrong_type(config, row, &scalar);
    config->given.has[row - option_rows] = true;
    if (scalar.sort == SORT_SWITCH) {
        option_switch(row, word_is_one_of(scalar.text, yes_words), &config->options);
        return 0;
    }
    error = option_store(row, row->name, scalar.text, &config->options, &why);
    if (error == -EINVAL)
        return wrong_type(config, row, &scalar);
    return error ? failure_set(config->why, error, "out of memory") : 0;
}

/* Null is no value: as if the key were not there, which is how Scalene takes it. */
static bool event_is_null(struct config *config)
{
    struct scalar scalar;
    struct failure *why = config->why, ignored;
    config->why = &ignored;
    bool is_null = config->event.type == YAML_SCALAR_EVENT && !scalar_read(config, &scalar) &&
                   scalar.sort == SORT_NOTHING;
    config->why = why;
    return is_null;
}

/* One value, or a list of them where the option takes several. */
static int values_take(struct config *config, const struct option_row *row)
{
    if (event_is_null(config))
        return 0;
    if (config->event.type != YAML_SEQUENCE_START_EVENT || !option_kind(row)->repeats)
        return value_take(config, row);
    int error = next_event(config);
    while (!error && config->event.type != YAML_SEQUENCE_END_EVENT) {
        error = value_take(config, row);
        if (!error)
            error = next_event(config);
    }
    return error;
}

static int pair_take(struct config *config)
{
    const struct option_row *row = NULL;
    struct scalar key;
    int error = scalar_read(config, &key);
    if (!error)
        error = key_find(config, key.text, &row);
    if (!error)
        error = next_event(config);
    return error ? error : values_take(config, row);
}

/* ---- the whole ---- */

/* An empty document is no options at all. */
static int document_take(struct config *config)
{
    int error = 0;
    if (event_is_null(config))
        return 0;
    if (config->event.type != YAML_MAPPING_START_EVENT)
        return config_fail(config, event_line(config),
                           "this is no list of options, which has lines like 'rate: 100'");
    while (!error && !(error = next_event(config)) && config->event.type != YAML_MAPPING_END_EVENT)
        error = pair_take(config);
    return error;
}

static int stream_take(struct config *config)
{
    int documents = 0, error = 0;
    while (!error && !(error = next_event(config)) && config->event.type != YAML_STREAM_END_EVENT) {
        bool begins = config->event.type == YAML_DOCUMENT_START_EVENT;
        if (begins && documents++)
            return config_fail(config, event_line(config),
                               "a second document begins; options are in one");
        if (begins && !(error = next_event(config)))
            error = document_take(config);
    }
    return error;
}

/* Options of which only one can hold: who says one of them has said them all. */
static const struct {
    size_t member, choice;
} choices[] = {
    { offsetof(struct options, cpu_only), 1 }, { offsetof(struct options, memory), 1 },
    { offsetof(struct options, gpu), 1 },      { offsetof(struct options, on), 2 },
    { offsetof(struct options, off), 2 },
};

static size_t choice_of(const struct option_row *row)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].member == row->member)
            return choices[i].choice;
    return 0;
}

static bool is_said(const struct option_set *said, const struct option_row *row)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *other = &option_rows[i];
        if (said->has[i] && (other->member == row->member ||
                             (choice_of(row) && choice_of(other) == choice_of(row))))
            return true;
    }
    return false;
}

/* An output that was named on the command line tells its format, as it does without a file. */
static bool format_is_told(const struct option_set *said, const struct options *options)
{
    static const size_t output = offsetof(struct options, output);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (said->has[i] && option_rows[i].member == output)
            return options->output && format_of_path(options->output);
    return false;
}

static bool row_is_beaten(const struct option_set *said, const struct option_row *row,
                          const struct options *options)
{
    return is_said(said, row) || (row->type == TYPE_FORMAT && format_is_told(said, options));
}

/* What is for another way to profile, as disable-jit when attaching, has no effect, and is named.
 */
static int row_set_aside(struct config *config, const struct option_row *row, struct options *into)
{
    const void *usual = (const char *)&option_defaults + row->member;
    size_t size = option_kind(row)->size;
    struct failure why = { .code = 0 };
    static const struct option_row list = { .member = offsetof(struct options, set_aside),
                                            .type = TYPE_LIST };
    if (memcmp(option_member(&config->options, row), usual, size) == 0)
        return 0;
    int error = option_store(&list, "", row->name, into, &why);
    return error ? failure_set(config->why, error, "out of memory") : 0;
}

static int options_merge(struct config *config, const struct option_set *said, struct options *into)
{
    int error = 0;
    for (size_t i = 0; i < OPTION_COUNT && !error; i++) {
        const struct option_row *row = &option_rows[i];
        if (!config->given.has[i] || row_is_beaten(said, row, into))
            continue;
        if (!option_goes_with(row, into->verb))
            error = row_set_aside(config, row, into);
        else
            memcpy(option_member(into, row), option_member(&config->options, row),
                   option_kind(row)->size);
    }
    return error;
}

int config_parse(const char *text, size_t size, const char *file, const struct option_set *said,
                 struct options *options, struct failure *why)
{
    struct config config = { .file = file, .options = option_defaults, .why = why };
    config.options.verb = options->verb;
    config.options.arena = options->arena;
    if (!yaml_parser_initialize(&config.parser))
        return failure_set(why, -ENOMEM, "out of memory");
    yaml_parser_set_input_string(&config.parser, (const unsigned char *)text, size);
    int error = stream_take(&config);
    yaml_event_delete(&config.event);
    yaml_parser_delete(&config.parser);
    options->arena = config.options.arena;
    return error ? error : options_merge(&config, said, options);
}

int config_read(const char *file, const struct option_set *said, struct options *options,
                struct failure *why)
{
    struct config config = { .file = file, .why = why };
    AUTO_FREE char *text = malloc(SIZE_LIMIT + 1);
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    if (!text)
        return failure_set(why, -ENOMEM, "out of memory");
    size_t size = from ? fread(text, 1, SIZE_LIMIT + 1, from) : 0;
    if (!from || ferror(from))
        return config_fail(&config, 0, "the options in it cannot be read: %s", strerror(errno));
    if (size > SIZE_LIMIT)
        return config_fail(&config, 0, "this is larger than options can be");
    return config_parse(text, size, file, said, options, why);
}

/* ---- writing ---- */

static int emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
    return made && yaml_emitter_emit(emitter, event) ? 0 : -EIO;
}

static int scalar_emit(yaml_emitter_t *emitter, const char *text, enum option_scalar scalar)
{
    yaml_event_t event;
    bool misread = scalar == SCALAR_TEXT && word_sort(text) != SORT_TEXT;
    int made = yaml_scalar_event_initialize(
        &event, NULL, NULL, (const unsigned char *)text, (int)strlen(text), 1, 1,
        misread ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
    return emit(emitter, &event, made);
}

static int sequence_emit(yaml_emitter_t *emitter, bool begins)
{
    yaml_event_t event;
    return emit(emitter, &event,
                begins ? yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                              YAML_FLOW_SEQUENCE_STYLE)
                       : yaml_sequence_end_event_initialize(&event));
}

static int option_emit(yaml_emitter_t *emitter, const struct option_row *row,
                       const struct options *options)
{
    char scratch[NAME_SIZE];
    enum option_scalar scalar = option_kind(row)->scalar;
    const char *text = option_text(row, options, 0, scratch, sizeof scratch);
    bool several = text && option_text(row, options, 1, (char[NAME_SIZE]){ "" }, NAME_SIZE);
    if (!text)
        return 0;
    int error = scalar_emit(emitter, row->name, SCALAR_TEXT);
    if (!error && several)
        error = sequence_emit(emitter, true);
    for (size_t i = 0; !error && text;
         text = option_text(row, options, ++i, scratch, sizeof scratch))
        error = scalar_emit(emitter, text, scalar);
    return !error && several ? sequence_emit(emitter, false) : error;
}

static int document_emit(yaml_emitter_t *emitter, const struct options *options)
{
    yaml_event_t event;
    int error =
        emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    if (!error)
        error = emit(emitter, &event,
                     yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    if (!error)
        error = emit(
            emitter, &event,
            yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    for (size_t i = 0; !error && i < OPTION_COUNT; i++)
        if (option_goes_with(&option_rows[i], options->verb) &&
            option_is_configurable(&option_rows[i]) && !option_is_other_name(&option_rows[i]))
            error = option_emit(emitter, &option_rows[i], options);
    if (!error)
        error = emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
    if (!error)
        error = emit(emitter, &event, yaml_document_end_event_initialize(&event, 1));
    return error ? error : emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

int config_write(const struct options *options, FILE *into)
{
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter))
        return -ENOMEM;
    yaml_emitter_set_output_file(&emitter, into);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    int error = document_emit(&emitter, options);
    yaml_emitter_delete(&emitter);
    return error ? error : fflush(into) || ferror(into) ? -EIO : 0;
}
