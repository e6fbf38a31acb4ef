#include "output/compare/gate.h"

#include "output/model/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the expression ---- */

static int gate_refuse(const char *text, struct failure *why)
{
    char known[256] = "";
    for (int i = 0; i < METRIC_COUNT; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, metric_rows[i].key);
    }
    return failure_set(why, -EINVAL,
                       "--fail-if '%.100s' is no limit: write METRIC[:FILE or FUNCTION], then > or "
                       "<, then a change with %%, s or MB, as in 'cpu>+10%%', 'memory>+50MB' or "
                       "'time:main.py>+0.5s'; metrics are %s",
                       text, known);
}

/* The unit has to be that of the metric, or percent. */
static int limit_parse(const char *text, struct gate *gate)
{
    char *unit = NULL;
    gate->limit = strtod(text, &unit);
    if (unit == text || !isfinite(gate->limit))
        return -EINVAL;
    unit += strspn(unit, " ");
    gate->is_percent = strcmp(unit, "%") == 0;
    const char *own = metric_rows[gate->metric].kind == VALUE_SECONDS ? "s" : "MB";
    return gate->is_percent || strcmp(unit, own) == 0 ? 0 : -EINVAL;
}

/* The last of the two signs: a name like <lambda> has some, too. */
static const char *sign_find(const char *text)
{
    const char *greater = strrchr(text, '>'), *less = strrchr(text, '<');
    return !greater ? less : !less ? greater : greater > less ? greater : less;
}

static size_t trimmed(const char *text, size_t length)
{
    while (length && text[length - 1] == ' ')
        length--;
    return length;
}

int gate_parse(const char *text, struct gate *ret, struct failure *why)
{
    struct gate gate = { .text = text };
    const char *start = text + strspn(text, " "), *sign = sign_find(start);
    if (!sign)
        return gate_refuse(text, why);
    const char *colon = memchr(start, ':', (size_t)(sign - start));
    gate.metric = metric_find(start, trimmed(start, (size_t)((colon ?: sign) - start)));
    gate.is_upper = *sign == '>';
    if (colon) {
        gate.place = colon + 1;
        gate.place_length = trimmed(gate.place, (size_t)(sign - gate.place));
    }
    if (gate.metric == METRIC_COUNT || (colon && !gate.place_length) ||
        (colon && !metric_rows[gate.metric].of_lines) || limit_parse(sign + 1, &gate))
        return gate_refuse(text, why);
    *ret = gate;
    return 0;
}

/* ---- what it is of ---- */

static bool is_name(const struct gate *gate, const char *name)
{
    return name && strlen(name) == gate->place_length &&
           strncmp(name, gate->place, gate->place_length) == 0;
}

/* The whole path, or from one of its folders on. */
static bool is_path_end(const struct gate *gate, const char *path)
{
    size_t length = path ? strlen(path) : 0;
    if (length < gate->place_length)
        return false;
    const char *end = path + length - gate->place_length;
    return strncmp(end, gate->place, gate->place_length) == 0 &&
           (end == path || end[-1] == '/' || *end == '/');
}

static bool is_meant(const struct gate *gate, const struct compared *compared)
{
    if (compared->name)
        return is_name(gate, compared->name) || is_name(gate, compared->old_name);
    return is_path_end(gate, compared->file) || is_path_end(gate, compared->old_file);
}

static size_t changes_add(const struct gate *gate, const struct compared_list *list,
                          struct change *sum)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct change *change = &list->items[i].changes[gate->metric];
        if (!is_meant(gate, &list->items[i]))
            continue;
        sum->old_value += change->old_value;
        sum->new_value += change->new_value;
        sum->error = hypot(sum->error, change->error);
        sum->rounding += change->rounding;
        count++;
    }
    return count;
}

/* Files of that name, else functions; several of one name are meant together. */
static int change_find(const struct gate *gate, const struct comparison *comparison,
                       struct change *ret)
{
    *ret = (struct change){ 0 };
    if (!gate->place)
        *ret = comparison->totals[gate->metric];
    else if (!changes_add(gate, &comparison->files, ret) &&
             !changes_add(gate, &comparison->functions, ret))
        return -ENOENT;
    return isnan(change_difference(ret)) ? -ENODATA : 0;
}

/* ---- the verdict ---- */

static const char *value_text(enum value_kind kind, double value, char *text, size_t size)
{
    if (format_value(kind, &value, text, size) == 0)
        snprintf(text, size, "0%s", kind == VALUE_SECONDS ? "s" : " MB");
    return text;
}

static void sentence_write(const struct gate *gate, const struct change *change, char *into)
{
    enum value_kind kind = metric_rows[gate->metric].kind;
    double percent = change_percent(change);
    char old_text[32], new_text[32], share[32] = "";
    if (isfinite(percent))
        snprintf(share, sizeof share, " (%+.1f%%)", percent);
    snprintf(into, GATE_SENTENCE_SIZE, "%.200s: %s%s%.*s went from %s to %s%s", gate->text,
             metric_rows[gate->metric].title, gate->place ? " of " : "",
             (int)(gate->place_length < 200 ? gate->place_length : 200), gate->place ?: "",
             value_text(kind, change->old_value, old_text, sizeof old_text),
             value_text(kind, change->new_value, new_text, sizeof new_text), share);
}

int gate_check(const struct gate *gate, const struct comparison *comparison, char *ret_sentence)
{
    struct change change;
    int error = change_find(gate, comparison, &change);
    if (error == -ENOENT)
        snprintf(ret_sentence, GATE_SENTENCE_SIZE,
                 "%.200s: neither profile has a file or a function of that name", gate->text);
    if (error == -ENODATA)
        snprintf(ret_sentence, GATE_SENTENCE_SIZE, "%.200s: one of the profiles does not tell %s",
                 gate->text, metric_rows[gate->metric].title);
    if (error || !change_is_significant(&change))
        return error;
    double got = gate->is_percent ? change_percent(&change) : change_difference(&change);
    if (gate->is_upper ? got <= gate->limit : got >= gate->limit)
        return 0;
    sentence_write(gate, &change, ret_sentence);
    return 1;
}
