/*
 * One recorded stream through every renderer, to exact text; and the keys of what they write are
 * those of columns.def: a row that any of them leaves out fails here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/json/profile_json.h"
#include "output/json/ranking_json.h"
#include "output/model/format.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"
#include "tests/unit/table_text.h"

#include <yyjson.h>

DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)

static char *ranking_text(const struct report *report, const struct selection *selection)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(ranking_json_write(report, selection, out), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

static char *profile_text(const struct report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(profile_json_write(report, out), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* ---- one stream ---- */

static void test_one_stream(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replay_memory_report();
    const struct table_settings files = { .width = 80, .cpu_percent_threshold = 1 };
    const struct table_settings list = {
        .width = 80, .selection = { .sort = column_find("n_malloc_mb"), .top = 3 }
    };
    AUTO_FREE char *json = profile_text(report), *table = table_text(report, &files);
    AUTO_FREE char *listed = table_text(report, &list),
                   *ranked = ranking_text(report, &list.selection);
    assert_fit(table, 80);
    assert_fit(listed, 80);
    assert_golden("profile/memory.json", json);
    assert_golden("table/memory_80.txt", table);
    assert_golden("table/list_80.txt", listed);
    assert_golden("table/list.json", ranked);
}

/* ---- every key ---- */

static const char *some_texts[] = { "Task-1", "Task-2" };
static struct native_share some_natives[] = { { "deflate", "libz.so", 1 } };
static struct point some_points[] = { { 0, 1 }, { 1e9, 2 } };
static double some_moments[] = { 1, 2 };

/* Something to say in the column. */
static void value_fill(const struct column *column, struct line_stats *stats)
{
    void *value = (char *)stats + column->offset;
    switch (column->kind) {
    case VALUE_TEXT:
    case VALUE_SOURCE:
        *(const char **)value = "x = 1";
        break;
    case VALUE_FLAG:
        *(bool *)value = true;
        break;
    case VALUE_LINE:
        *(int64_t *)value = 1;
        break;
    case VALUE_COUNT:
        *(int64_t *)value = 1000;
        break;
    case VALUE_SPARK:
        *(struct point_list *)value = (struct point_list){ some_points, 2 };
        break;
    case VALUE_MOMENTS:
        *(struct number_list *)value = (struct number_list){ some_moments, 2 };
        break;
    case VALUE_TEXTS:
        *(struct text_list *)value = (struct text_list){ some_texts, 2 };
        break;
    case VALUE_WAITS:
        ((struct wait_times *)value)->seconds[0] = 1;
        break;
    case VALUE_NATIVE:
        *(struct native_list *)value = (struct native_list){ some_natives, 1 };
        break;
    case VALUE_PERCENT:
        *(double *)value = 20;
        break;
    default:
        *(double *)value = 0.5;
    }
}

struct whole {
    struct line_stats line, function;
    struct report_file file;
    struct report report;
};

static void whole_fill(struct whole *whole)
{
    *whole = (struct whole){ .file = { .path = "/srv/all.py", .percent_cpu_time = 100 } };
    for (size_t i = 0; i < column_count; i++)
        value_fill(&columns[i], &whole->line);
    whole->function = whole->line;
    whole->file.lines.items = &whole->line;
    whole->file.functions.items = &whole->function;
    whole->file.lines.count = whole->file.functions.count = 1;
    whole->report.files.items = &whole->file;
    whole->report.files.count = 1;
    whole->report.totals.elapsed_s = 1;
    whole->report.memory = true; /* so that the code leaves room for all columns */
}

/* A copy, in which gcc does not see the stream's pointer. */
static char *whole_table(const struct whole *whole, const struct table_settings *settings)
{
    AUTO_FREE char *text = table_text(&whole->report, settings);
    return strdup(text);
}

enum { WIDEST = 500, CELL_SIZE = 256 };

/* The next so many columns of a row, without the blanks around them. */
static const char *cell_take(const char *at, size_t width, char *into)
{
    size_t used = 0, blank;
    for (; width && *at && *at != '\n'; width--)
        do
            into[used++] = *at++;
        while (((unsigned char)*at & 0xC0) == 0x80); /* the rest of a character */
    while (used && into[used - 1] == ' ')
        used--;
    into[used] = '\0';
    blank = strspn(into, " ");
    memmove(into, into + blank, used + 1 - blank);
    return at + (*at == ' ');
}

/* What a table that is as wide as can be has a column for: all that have a width, and what it is
 * sorted by; in a list, where a line is stands at its end. */
static bool is_shown(const struct column *column, const struct table_settings *settings)
{
    bool is_sort = column == settings->selection.sort && column->kind != VALUE_SOURCE;
    bool is_place = settings->selection.sort && column->kind == VALUE_LINE;
    return (column->width || is_sort) && !is_place;
}

/* Every heading has its column, and below it stands what the line has there; behind them comes
 * `last` and nothing else. */
static void assert_columns(const char *heading, const struct whole *whole,
                           const struct table_settings *settings, const char *last)
{
    const char *row = strchr(heading, '\n') + 1;
    char cell[CELL_SIZE], want[CELL_SIZE], text[CELL_SIZE];
    for (size_t i = 0; i < column_count; i++) {
        size_t title = screen_text(columns[i].title, text, sizeof text);
        size_t width = title > (size_t)columns[i].width ? title : (size_t)columns[i].width;
        if (!is_shown(&columns[i], settings))
            continue;
        heading = cell_take(heading, width, cell);
        if (strcmp(cell, columns[i].title) != 0)
            fail_msg("the column of %s is headed '%s'", columns[i].key, cell);
        row = cell_take(row, width, cell);
        format_value(columns[i].kind, column_value(&columns[i], &whole->line), text, sizeof text);
        screen_text_fit(text, width, want, sizeof want);
        assert_string_equal(cell, want);
    }
    AUTO_FREE char *rest = strndup(heading, strcspn(heading, "\n"));
    assert_string_equal(rest + strspn(rest, " "), last);
}

/* Behind the line that begins so. */
static const char *line_behind(const char *text, const char *begin)
{
    const char *at = strstr(text, begin);
    assert_non_null(at);
    return strchr(at + 1, '\n') + 1;
}

static void test_table_has_every_column(void **state)
{
    (void)state;
    struct whole whole;
    whole_fill(&whole);
    const struct table_settings settings = { .width = WIDEST };
    AUTO_FREE char *text = whole_table(&whole, &settings);
    assert_columns(line_behind(text, "\n/srv/all.py: "), &whole, &settings, "Code");
    /* what has no column of its own is told of below the line */
    assert_non_null(strstr(text, "native: deflate (libz.so) 1.00s"));
}

/* A list by it shows it, whatever it is: also what has no column otherwise. */
static void test_every_key_sorts(void **state)
{
    (void)state;
    struct whole whole;
    whole_fill(&whole);
    for (size_t i = 0; i < column_count; i++) {
        struct table_settings settings = { .width = WIDEST, .selection = { .sort = &columns[i] } };
        char title[128];
        snprintf(title, sizeof title, "\nLines by %s\n", columns[i].key);
        AUTO_FREE char *wide = whole_table(&whole, &settings);
        assert_columns(line_behind(wide, title), &whole, &settings, "Where         Code");
        settings.width = 120;
        AUTO_FREE char *text = whole_table(&whole, &settings);
        const char *heading = line_behind(text, title);
        AUTO_FREE char *line = strndup(heading, strcspn(heading, "\n"));
        assert_fit(text, 120);
        if (columns[i].kind != VALUE_LINE && !strstr(line, columns[i].title))
            fail_msg("a list by %s has no such column", columns[i].key);
    }
}

static void assert_keys(yyjson_val *record, const char *without, size_t more)
{
    size_t expected = more;
    for (size_t i = 0; i < column_count; i++) {
        bool has = !without || strcmp(columns[i].group, without) != 0;
        if (has != (yyjson_obj_get(record, columns[i].key) != NULL))
            fail_msg("%s: %s", columns[i].key, has ? "missing" : "too much");
        expected += has;
    }
    assert_int_equal(yyjson_obj_size(record), expected);
}

static void test_json_has_every_key(void **state)
{
    (void)state;
    struct whole whole;
    whole_fill(&whole);
    AUTO_FREE char *profile = profile_text(&whole.report);
    AUTO_FREE char *ranked = ranking_text(&whole.report, &(struct selection){ 0 });
    CLEANUP(yyjson_doc_freep) yyjson_doc *one = yyjson_read(profile, strlen(profile), 0);
    CLEANUP(yyjson_doc_freep) yyjson_doc *other = yyjson_read(ranked, strlen(ranked), 0);
    assert_true(one && other);
    yyjson_val *file = yyjson_doc_ptr_get(one, "/files/~1srv~1all.py");
    assert_keys(yyjson_arr_get(yyjson_obj_get(file, "lines"), 0), NULL, 0);
    assert_keys(yyjson_arr_get(yyjson_obj_get(file, "functions"), 0), "region", 0);
    assert_keys(yyjson_doc_ptr_get(other, "/lines/0"), NULL, 1); /* and its file */
    assert_keys(yyjson_doc_ptr_get(other, "/functions/0"), "region", 1);
}

/* What a profile has no key for, a list of it has not either; its zeros it has. */
static void test_absent_is_not_zero(void **state)
{
    (void)state;
    static const char text[] =
        "{\"elapsed_time_sec\": 2, \"files\": {\"a.py\": {\"lines\": [{\"lineno\": 1, \"line\": "
        "\"x\\n\", \"n_cpu_percent_c\": 0, \"n_cpu_percent_python\": 50}]}}}";
    AUTO_REPORT struct report *report = NULL;
    struct failure why;
    assert_int_equal(profile_json_read(text, strlen(text), "s.json", "1.0", &report, &why), 0);
    AUTO_FREE char *ranked = ranking_text(report, &(struct selection){ 0 });
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = yyjson_read(ranked, strlen(ranked), 0);
    yyjson_val *line = yyjson_doc_ptr_get(doc, "/lines/0");
    assert_int_equal(yyjson_obj_size(line), 5);
    assert_true(yyjson_get_num(yyjson_obj_get(line, "n_cpu_percent_c")) == 0);
    assert_null(yyjson_obj_get(line, "idle_s"));
    assert_string_equal(yyjson_get_str(yyjson_obj_get(line, "line")), "x");

    /* nor has the profile that is written anew, as in a page; but our columns' titles it has */
    AUTO_FREE char *again = profile_text(report);
    CLEANUP(yyjson_doc_freep) yyjson_doc *whole = yyjson_read(again, strlen(again), 0);
    yyjson_val *root = yyjson_doc_get_root(whole);
    assert_int_equal(yyjson_obj_size(root), 3);
    assert_true(yyjson_obj_get(root, "columns") && yyjson_obj_get(root, "elapsed_time_sec"));
    assert_int_equal(yyjson_obj_size(yyjson_doc_ptr_get(whole, "/files/a.py/lines/0")), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stream),         cmocka_unit_test(test_table_has_every_column),
        cmocka_unit_test(test_every_key_sorts),    cmocka_unit_test(test_json_has_every_key),
        cmocka_unit_test(test_absent_is_not_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
