#include "output/json/ranking_json.h"

#include "output/json/json_value.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <string.h>

/* Of a line of source without its end: nobody's page has to take it in. */
static int column_write(struct json_writer *json, const struct column *column, const void *value)
{
    json_key(json, column->key);
    if (column->kind != VALUE_SOURCE)
        return json_value_write(json, column->kind, value);
    const char *source = *(const char *const *)value;
    AUTO_FREE char *text = strndup(source ? source : "", strcspn(source ? source : "", "\r\n"));
    if (!text)
        return -ENOMEM;
    json_text(json, text);
    return 0;
}

static bool column_is_there(const struct report *report, size_t index, enum ranking_of of)
{
    bool of_lines = strcmp(columns[index].group, "region") == 0;
    return !(report->absent_columns >> index & 1) && (of == RANKING_OF_LINES || !of_lines);
}

static int ranked_write(struct json_writer *json, const struct report *report,
                        const struct ranked *ranked, enum ranking_of of)
{
    int error = 0;
    json_begin(json, '{');
    json_key(json, "file");
    json_text(json, ranked->file->path);
    for (size_t i = 0; i < column_count && !error; i++)
        if (column_is_there(report, i, of))
            error = column_write(json, &columns[i], column_value(&columns[i], ranked->stats));
    json_end(json, '}');
    return error;
}

static int list_write(struct json_writer *json, const struct report *report,
                      const struct selection *selection, enum ranking_of of, const char *key)
{
    struct ranking ranking = { 0 };
    int error = ranking_new(report, selection, of, &ranking);
    AUTO_FREE struct ranked *items = ranking.items;
    json_key(json, key);
    json_begin(json, '[');
    for (size_t i = 0; i < ranking.count && !error; i++) {
        json->flat = json->depth + 1;
        error = ranked_write(json, report, &items[i], of);
        json->flat = 0;
    }
    json_end(json, ']');
    return error;
}

int ranking_json_write(const struct report *report, const struct selection *selection, FILE *into)
{
    struct json_writer json = { .into = into };
    json_begin(&json, '{');
    int error = list_write(&json, report, selection, RANKING_OF_FUNCTIONS, "functions");
    if (!error)
        error = list_write(&json, report, selection, RANKING_OF_LINES, "lines");
    json_end(&json, '}');
    return error ? error : ferror(into) ? -EIO : 0;
}
