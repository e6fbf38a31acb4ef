/* What a profile has no key for, or a value of a wrong type, is no zero: views leave it out, it is
 * not written again, and a note counts what did not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yyjson.h>

#include "output/json/profile_json.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"
#include "tests/unit/table_text.h"

DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)

#define LINES                                                                                      \
    "\"lines\": [{\"lineno\": 1, \"line\": \"x\\n\", \"n_cpu_percent_python\": 50}], "             \
    "\"functions\": []"
#define FILES "\"elapsed_time_sec\": 2, \"files\": {\"a.py\": {" LINES "}}"

static struct report *report_of(const char *text)
{
    struct report *report = NULL;
    struct failure why = { 0 };
    if (profile_json_read(text, strlen(text), "p.json", "1.0", &report, &why))
        fail_msg("%s: %s", text, why.text);
    return report;
}

static char *table_of(const char *text)
{
    AUTO_REPORT struct report *report = report_of(text);
    return table_text(report, &(struct table_settings){ .width = 80 });
}

/* The table's lines from the second one to the first blank one: what the head tells. */
static void assert_head(const char *text, const char *want)
{
    AUTO_FREE char *table = table_of(text);
    const char *begin = strchr(table, '\n') + 1, *end = strstr(begin, "\n\n");
    AUTO_FREE char *head = strndup(begin, (size_t)(end + 1 - begin));
    assert_string_equal(head, want);
}

static void test_head(void **state)
{
    (void)state;
    static const struct {
        const char *text, *head;
    } rows[] = {
        { "{" FILES "}", "  Elapsed   2.00s\n" },
        { "{" FILES ", \"profiler\": {\"name\": \"scalene-attach\", \"version\": \"0.1\"}}",
          "  Elapsed   2.00s\n" },
        { "{" FILES ", \"profiler\": {\"name\": \"other\"}, \"sampling\": {\"samples\": 7}}",
          "  Elapsed   2.00s\n  Samples   7\n" },
        { "{" FILES ", \"profiler\": {\"name\": \"other\"}, \"sampling\": {\"dropped\": 0, "
          "\"rate_hz\": 1e300, \"profiler_cpu_s\": 0, \"paused_s\": \"long\"}}",
          "  Elapsed   2.00s\n  Samples   at 1.00P Hz, 0 dropped\n  Profiler  0s\n" },
        { "{" FILES ", \"totals\": {\"cpu_native_s\": 1, \"cpu_kernel_s\": 0}}",
          "  Elapsed   2.00s\n  CPU       1.00s: native 1.00s, kernel 0s\n" },
        { "{" FILES ", \"totals\": {\"idle_s\": 1, \"cpu_python_s\": null}}",
          "  Elapsed   2.00s\n  Idle      1.00s\n" },
        { "{" FILES ", \"memory\": true}", "  Elapsed   2.00s\n" },
        { "{" FILES ", \"memory\": true, \"growth_rate\": 0}",
          "  Elapsed   2.00s\n  Memory    growth rate 0%\n" },
        { "{" FILES ", \"memory\": true, \"max_footprint_mb\": 3}",
          "  Elapsed   2.00s\n  Memory    3.00M at most\n" },
        { "{" FILES ", \"processes\": [{\"pid\": 1, \"python\": \"3.12.1\"}]}",
          "  Python    3.12.1\n  Elapsed   2.00s\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_head(rows[i].text, rows[i].head);
}

static void test_file_titles(void **state)
{
    (void)state;
    AUTO_FREE char *untold = table_of("{" FILES "}");
    assert_non_null(strstr(untold, "\na.py\n"));
    AUTO_FREE char *told = table_of("{\"elapsed_time_sec\": 2, \"files\": {\"a.py\": {"
                                    "\"percent_cpu_time\": 0, " LINES "}}}");
    assert_non_null(strstr(told, "\na.py: 0% of the time\n"));
}

/* Written again, with what is told and nothing else. */
static void test_written_again(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report =
        report_of("{" FILES ", \"sampling\": {\"samples\": 7}, \"growth_rate\": \"abc\"}");
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_int_equal(profile_json_write(report, into), 0);
    assert_int_equal(fclose(into), 0);
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = yyjson_read(text, size, YYJSON_READ_NOFLAG);
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_int_equal(yyjson_obj_size(yyjson_obj_get(root, "sampling")), 1);
    assert_int_equal(yyjson_get_int(yyjson_doc_ptr_get(doc, "/sampling/samples")), 7);
    assert_int_equal(yyjson_obj_size(yyjson_doc_ptr_get(doc, "/files/a.py")), 2);
    assert_null(yyjson_obj_get(root, "growth_rate"));
    assert_null(yyjson_obj_get(root, "profiler"));
    assert_null(yyjson_obj_get(root, "totals"));
}

/* ---- wrong types ---- */

static void assert_note(const char *text, const char *want)
{
    AUTO_REPORT struct report *report = report_of(text);
    const char *note = report->notes.count ? report->notes.items[report->notes.count - 1] : "";
    if (!*want || !strstr(note, want))
        assert_string_equal(note, want);
}

#define LINE_WITH(pair)                                                                            \
    "{\"elapsed_time_sec\": 2, \"files\": {\"a.py\": {\"lines\": [{\"lineno\": 1, \"line\": "      \
    "\"x\\n\", " pair "}]}}}"

static void test_misfits(void **state)
{
    (void)state;
    static const struct {
        const char *text, *note;
    } rows[] = {
        { LINE_WITH("\"n_cpu_percent_python\": \"abc\""), "left out: 1 of the profile's values" },
        { LINE_WITH("\"n_cpu_percent_python\": \"abc\""), "the first one of n_cpu_percent_python" },
        { LINE_WITH("\"n_mallocs\": true, \"idle_s\": []"), "left out: 2 of" },
        { LINE_WITH("\"memory_samples\": [[1, 2], 3, 4]"), "left out: 2 of" },
        { LINE_WITH("\"wait_s\": {\"gil\": 1, \"io\": \"x\"}"), "the first one of wait_s" },
        { LINE_WITH("\"wait_s\": 3"), "the first one of wait_s" },
        { LINE_WITH("\"async_task_names\": [\"a\", 1]"), "left out: 1 of" },
        { LINE_WITH("\"is_coroutine\": 1"), "the first one of is_coroutine" },
        { "{" FILES ", \"totals\": []}", "the first one of totals" },
        { "{" FILES ", \"threads\": {}}", "the first one of threads" },
        { "{" FILES ", \"threads\": [7]}", "the first one of threads" },
        { "{" FILES ", \"notes\": [\"one\", 2]}", "the first one of notes" },
        /* nothing is told where there is none */
        { LINE_WITH("\"n_cpu_percent_python\": null, \"memory_samples\": null"), "" },
        { "{" FILES ", \"max_footprint_lineno\": null, \"totals\": null, \"unknown\": 1}", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_note(rows[i].text, rows[i].note);
}

static void test_misfits_are_seen(void **state)
{
    (void)state;
    AUTO_FREE char *table = table_of("{" FILES ", \"notes\": [\"one\"], \"totals\": 5}");
    assert_non_null(strstr(table, "\nNotes\n  - one\n  - left out: 1 of the profile's values"));
}

/* Neither our own profiles nor Scalene's have any. */
static void test_fitting(void **state)
{
    (void)state;
    static const char *const names[] = { "profile/shop.json", "profile/memory.json",
                                         "profile/merged.json", "view/scalene_2.4.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        AUTO_FREE char *text = NULL;
        size_t size = 0;
        struct failure why = { 0 };
        snprintf(path, sizeof path, "%.*s/../golden/%s", (int)(strrchr(__FILE__, '/') - __FILE__),
                 __FILE__, names[i]);
        AUTO_FCLOSE FILE *file = fopen(path, "re");
        assert_true(file && getdelim(&text, &size, '\0', file) > 0);
        AUTO_REPORT struct report *report = NULL;
        if (profile_json_read(text, strlen(text), names[i], "99.0", &report, &why))
            fail_msg("%s", why.text);
        if (report->misfits.count)
            fail_msg("%s: %s", names[i], report->misfits.first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_file_titles),
        cmocka_unit_test(test_written_again),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_misfits_are_seen),
        cmocka_unit_test(test_fitting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
