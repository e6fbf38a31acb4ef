#include "sampler/app/option_value.h"

#include "output/model/columns.h"
#include "sampler/app/formats.h"
#include "sampler/app/nearest_word.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *format_word(size_t index)
{
    return index < format_count ? formats[index].name : NULL;
}

static const char *method_word(size_t index)
{
    static const char *const words[] = { "symbol", "section", "cookie", "scan" };
    return index < sizeof words / sizeof *words ? words[index] : NULL;
}

static const char *column_word(size_t index)
{
    return index < column_count ? columns[index].key : NULL;
}

static const char *(*const words_of[])(size_t index) = {
    [TYPE_FORMAT] = format_word,
    [TYPE_METHOD] = method_word,
    [TYPE_COLUMN] = column_word,
};

static const struct option_kind kinds[] = {
    [TYPE_FLAG] = { "true or false", SCALAR_SWITCH, FILL_NOTHING, false, sizeof(bool) },
    [TYPE_SWITCH] = { "true or false", SCALAR_SWITCH, FILL_NOTHING, false, sizeof(bool) },
    [TYPE_WISH] = { "true or false", SCALAR_SWITCH, FILL_NOTHING, false, sizeof(enum wish) },
    [TYPE_ACTION] = { "true or false", SCALAR_SWITCH, FILL_NOTHING, false, sizeof(bool) },
    [TYPE_PIDS] = { "a process id", SCALAR_NUMBER, FILL_PROCESS, true, sizeof(struct pid_list) },
    [TYPE_NUMBER] = { "a number that is not negative", SCALAR_NUMBER, FILL_NOTHING, false,
                      sizeof(double) },
    [TYPE_SECONDS] = { "a number of seconds that is not negative", SCALAR_NUMBER, FILL_NOTHING,
                       false, sizeof(double) },
    [TYPE_INTERVAL] = { "a number of seconds, more than 0", SCALAR_NUMBER, FILL_NOTHING, false,
                        sizeof(double) },
    [TYPE_OVERHEAD] = { "a number that is more than 0 (--nonblocking never pauses)", SCALAR_NUMBER,
                        FILL_NOTHING, false, sizeof(double) },
    [TYPE_COUNT] = { "a whole number that is not negative", SCALAR_NUMBER, FILL_NOTHING, false,
                     sizeof(int64_t) },
    [TYPE_BYTES] = { "a number of bytes, 1 at least", SCALAR_NUMBER, FILL_NOTHING, false,
                     sizeof(int64_t) },
    [TYPE_TEXT] = { "text", SCALAR_TEXT, FILL_NOTHING, false, sizeof(char *) },
    [TYPE_LIST] = { "text", SCALAR_TEXT, FILL_NOTHING, true, sizeof(char *) },
    [TYPE_FILE] = { "a file's name", SCALAR_TEXT, FILL_FILE, false, sizeof(char *) },
    [TYPE_FOLDER] = { "a folder's name", SCALAR_TEXT, FILL_FOLDER, false, sizeof(char *) },
    [TYPE_COMMAND] = { "a program's name", SCALAR_TEXT, FILL_COMMAND, false, sizeof(char *) },
    [TYPE_CONFIG] = { "a file's name", SCALAR_TEXT, FILL_FILE, false, sizeof(char *) },
    [TYPE_FORMAT] = { "one of", SCALAR_TEXT, FILL_WORD, false, sizeof(char *) },
    [TYPE_METHOD] = { "one of", SCALAR_TEXT, FILL_WORD, false, sizeof(unsigned) },
    [TYPE_COLUMN] = { "a column", SCALAR_TEXT, FILL_WORD, false, sizeof(char *) },
};

const struct option_kind *option_kind(const struct option_row *row)
{
    return &kinds[row->type];
}

const char *option_word(const struct option_row *row, size_t index)
{
    return words_of[row->type](index);
}

/* The key or the heading that was most likely meant. */
static const char *nearest_column(const char *name)
{
    const char *nearest = columns[0].key;
    for (size_t i = 0; i < column_count; i++) {
        const char *const words[] = { columns[i].key, columns[i].title };
        for (size_t n = 0; n < 2; n++)
            if (word_distance(name, words[n]) < word_distance(name, nearest))
                nearest = words[n];
    }
    return nearest;
}

const char *option_wants(const struct option_row *row, char *scratch, size_t size)
{
    size_t used = (size_t)snprintf(scratch, size, "%s", kinds[row->type].wants);
    bool tells = kinds[row->type].filling == FILL_WORD && row->type != TYPE_COLUMN;
    for (size_t i = 0; tells && option_word(row, i); i++)
        if (used < size)
            used += (size_t)snprintf(scratch + used, size - used, "%s %s", i ? "," : "",
                                     option_word(row, i));
    return scratch;
}

/* ---- from text ---- */

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

static bool is_infinity(const char *text)
{
    text += *text == '+';
    text += *text == '.';
    return strcasecmp(text, "inf") == 0;
}

/* Seconds after which something is done: never is 0, and infinity the same (Scalene's own default,
 * which YAML spells .inf). */
static int seconds_store(const char *text, double *ret)
{
    if (!is_infinity(text))
        return number_store(text, ret);
    *ret = 0;
    return 0;
}

/* Seconds between two, kept as how many a second. */
static int interval_store(const char *text, double *ret_rate)
{
    double interval_s;
    if (number_store(text, &interval_s) || interval_s <= 0 || !isfinite(1 / interval_s))
        return -EINVAL;
    *ret_rate = 1 / interval_s;
    return 0;
}

/* A budget of nothing would be spent by the first pause. */
static int overhead_store(const char *text, double *ret)
{
    double percent;
    if (number_store(text, &percent) || percent <= 0)
        return -EINVAL;
    *ret = percent;
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

static int text_store(const char *text, struct arena *arena, const char **ret)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_take(arena, size);
    if (!copy)
        return -ENOMEM;
    *ret = memcpy(copy, text, size);
    return 0;
}

/* A list that is said again is one list. */
static int list_store(const char *text, struct arena *arena, const char **list)
{
    if (!*list)
        return text_store(text, arena, list);
    size_t size = strlen(*list) + 1 + strlen(text) + 1;
    char *longer = arena_take(arena, size);
    if (!longer)
        return -ENOMEM;
    snprintf(longer, size, "%s,%s", *list, text);
    *list = longer;
    return 0;
}

/* Which of the type's words; -ENOENT: none. Columns have another name each. */
static int word_find(const struct option_row *row, const char *text)
{
    if (row->type == TYPE_COLUMN)
        return column_find_named(text) ? 0 : -ENOENT;
    for (int i = 0; option_word(row, (size_t)i); i++)
        if (strcmp(text, option_word(row, (size_t)i)) == 0)
            return i;
    return -ENOENT;
}

static int method_store(const struct option_row *row, const char *text, unsigned *ret)
{
    int index = word_find(row, text);
    if (index < 0)
        return index;
    *ret = 1u << index;
    return 0;
}

static int value_store(const struct option_row *row, const char *text, struct options *options)
{
    void *member = option_member(options, row);
    if (kinds[row->type].filling == FILL_WORD && word_find(row, text) < 0)
        return -EINVAL;
    switch (row->type) {
    case TYPE_PIDS:
        return pid_store(text, member);
    case TYPE_NUMBER:
        return number_store(text, member);
    case TYPE_SECONDS:
        return seconds_store(text, member);
    case TYPE_INTERVAL:
        return interval_store(text, member);
    case TYPE_OVERHEAD:
        return overhead_store(text, member);
    case TYPE_COUNT:
        return count_store(text, 0, member);
    case TYPE_BYTES:
        return count_store(text, 1, member);
    case TYPE_METHOD:
        return method_store(row, text, member);
    case TYPE_LIST:
        return list_store(text, &options->arena, member);
    default:
        return text_store(text, &options->arena, member);
    }
}

int option_store(const struct option_row *row, const char *called, const char *text,
                 struct options *options, struct failure *why)
{
    int error = value_store(row, text, options);
    if (error == -EINVAL && row->type == TYPE_COLUMN)
        return failure_set(why, error,
                           "%s wants a column's key or heading, not '%s'; the nearest is %s",
                           called, text, nearest_column(text));
    if (error == -EINVAL)
        return failure_set(why, error, "%s wants %s, not '%s'", called, OPTION_WANTS(row), text);
    return error ? failure_set(why, error, "out of memory") : 0;
}

void option_switch(const struct option_row *row, bool on, struct options *options)
{
    void *member = option_member(options, row);
    if (row->type == TYPE_WISH)
        *(enum wish *)member = on ? WISH_YES : WISH_NO;
    else
        *(bool *)member = on;
}

/* ---- to text ---- */

/* As few digits as bring the same number back. */
static const char *number_text(double number, char *scratch, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(scratch, size, "%.*g", digits, number);
        if (strtod(scratch, NULL) == number)
            break;
    }
    return scratch;
}

static const char *whole_text(int64_t number, char *scratch, size_t size)
{
    snprintf(scratch, size, "%lld", (long long)number);
    return scratch;
}

static const char *switch_text(bool on)
{
    return on ? "true" : "false";
}

static const char *pid_text(const struct pid_list *list, size_t index, char *scratch, size_t size)
{
    return index < list->count ? whole_text(list->items[index], scratch, size) : NULL;
}

const char *option_text(const struct option_row *row, const struct options *options, size_t index,
                        char *scratch, size_t size)
{
    const void *member = (const char *)options + row->member;
    if (row->type == TYPE_PIDS)
        return pid_text(member, index, scratch, size);
    if (index)
        return NULL;
    switch (row->type) {
    case TYPE_WISH:
        return *(const enum wish *)member ? switch_text(*(const enum wish *)member == WISH_YES)
                                          : NULL;
    case TYPE_FLAG:
    case TYPE_SWITCH:
    case TYPE_ACTION:
        return switch_text(*(const bool *)member);
    case TYPE_NUMBER:
    case TYPE_SECONDS:
    case TYPE_INTERVAL:
    case TYPE_OVERHEAD:
        return number_text(*(const double *)member, scratch, size);
    case TYPE_COUNT:
    case TYPE_BYTES:
        return whole_text(*(const int64_t *)member, scratch, size);
    default:
        return *(const char *const *)member;
    }
}
