#include "output/json/diff_json.h"

#include "output/json/json_writer.h"

#include <errno.h>
#include <math.h>

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

static void write_number(struct json_writer *json, const char *key, double number)
{
    json_key(json, key);
    if (isfinite(number))
        json_float(json, number);
    else
        json_word(json, "null");
}

static void write_line(struct json_writer *json, const char *key, int64_t line)
{
    json_key(json, key);
    if (line)
        json_integer(json, line);
    else
        json_word(json, "null");
}

static void write_change(struct json_writer *json, const struct change *change)
{
    json_begin(json, '{');
    write_number(json, "change", change_difference(change));
    write_number(json, "error", change->error);
    write_number(json, "new", change->new_value);
    write_number(json, "old", change->old_value);
    write_number(json, "percent", change_percent(change));
    json_key(json, "significant");
    json_word(json, change_is_significant(change) ? "true" : "false");
    json_end(json, '}');
}

/* Metrics that neither has are left out of a row, of the whole none is. */
static void write_changes(struct json_writer *json, const struct change *changes, bool all)
{
    json_begin(json, '{');
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!all && !(changes[i].old_value > 0) && !(changes[i].new_value > 0))
            continue;
        json_key(json, metric_rows[i].key);
        write_change(json, &changes[i]);
    }
    json_end(json, '}');
}

static void write_metrics(struct json_writer *json)
{
    json_begin(json, '[');
    json->flat = json->depth + 1;
    for (int i = 0; i < METRIC_COUNT; i++) {
        json_begin(json, '{');
        write_text(json, "help", metric_rows[i].help);
        write_text(json, "key", metric_rows[i].key);
        write_text(json, "kind", value_kind_name(metric_rows[i].kind));
        write_text(json, "title", metric_rows[i].title);
        json_end(json, '}');
    }
    json->flat = 0;
    json_end(json, ']');
}

static void write_compared(struct json_writer *json, const struct compared *compared)
{
    json_begin(json, '{');
    json_key(json, "changes");
    write_changes(json, compared->changes, false);
    write_text(json, "file", compared->file);
    if (compared->text)
        write_text(json, "line", compared->text);
    if (compared->lineno || compared->old_lineno)
        write_line(json, "lineno", compared->lineno);
    if (compared->name)
        write_text(json, "name", compared->name);
    write_text(json, "old_file", compared->old_file);
    if (compared->lineno || compared->old_lineno)
        write_line(json, "old_lineno", compared->old_lineno);
    if (compared->name)
        write_text(json, "old_name", compared->old_name);
    write_text(json, "state", compared_state_name(compared->state));
    json_end(json, '}');
}

static void write_list(struct json_writer *json, const char *key, const struct compared_list *list,
                       size_t top)
{
    size_t count = top && top < list->count ? top : list->count;
    json_key(json, key);
    json_begin(json, '[');
    json->flat = json->depth + 1;
    for (size_t i = 0; i < count; i++)
        write_compared(json, &list->items[i]);
    json->flat = 0;
    json_end(json, ']');
}

static void write_side(struct json_writer *json, const char *key, const char *name,
                       const struct report *report)
{
    json_key(json, key);
    json_begin(json, '{');
    write_number(json, "elapsed_time_sec", report->elapsed_time_sec);
    write_text(json, "name", name);
    write_text(json, "program", report->program);
    write_number(json, "start_time_absolute", report->start_time_absolute);
    json_end(json, '}');
}

static void write_profiler(struct json_writer *json, const char *version)
{
    json_key(json, "profiler");
    json_begin(json, '{');
    write_text(json, "name", "scalene-attach");
    write_text(json, "version", version);
    json_end(json, '}');
}

static void write_notes(struct json_writer *json, const struct comparison *comparison)
{
    json_key(json, "notes");
    json_begin(json, '[');
    for (size_t i = 0; i < comparison->note_count; i++)
        json_text(json, comparison->notes[i]);
    json_end(json, ']');
}

int diff_json_write(const struct comparison *comparison, const struct diff_json_settings *settings,
                    FILE *into)
{
    struct json_writer json = { .into = into };
    json_begin(&json, '{');
    write_list(&json, "files", &comparison->files, settings->top);
    write_list(&json, "functions", &comparison->functions, settings->top);
    write_list(&json, "lines", &comparison->lines, settings->top);
    json_key(&json, "metrics");
    write_metrics(&json);
    write_side(&json, "new", settings->new_name, comparison->new_report);
    write_notes(&json, comparison);
    write_side(&json, "old", settings->old_name, comparison->old_report);
    write_profiler(&json, settings->version);
    json_key(&json, "totals");
    write_changes(&json, comparison->totals, true);
    json_end(&json, '}');
    return ferror(into) ? -EIO : 0;
}
