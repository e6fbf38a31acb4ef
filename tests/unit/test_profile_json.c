/* A profile as JSON is its golden text, comes back the same, and what is no profile is refused with
 * its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/json/profile_json.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"

static char *write_text(const struct report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_non_null(into);
    assert_int_equal(profile_json_write(report, into), 0);
    assert_int_equal(fclose(into), 0);
    return text;
}

static struct report *stream_report(const char *name)
{
    char path[128], stream[160];
    snprintf(path, sizeof path, "/srv/%s", name);
    snprintf(stream, sizeof stream, "streams/%s.stream", name);
    struct profile_settings settings = replay_settings(path);
    return replay_report(stream, &settings);
}

static void check_golden(const char *name)
{
    char golden[160];
    snprintf(golden, sizeof golden, "profile/%s.json", name);
    AUTO_REPORT struct report *report = stream_report(name);
    AUTO_FREE char *text = write_text(report);
    assert_golden(golden, text);
}

static void test_shop(void **state)
{
    (void)state;
    check_golden("shop");
}

static void test_marked(void **state)
{
    (void)state;
    check_golden("marked");
}

static void test_memory(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = replay_memory_report();
    AUTO_FREE char *text = write_text(report);
    assert_golden("profile/memory.json", text);
}

static void check_round_trip(struct report *report)
{
    AUTO_REPORT struct report *again = NULL;
    AUTO_FREE char *text = write_text(report);
    struct failure why = { 0 };
    if (profile_json_read(text, strlen(text), "p.json", "1.2.0", &again, &why))
        fail_msg("%s", why.text);
    AUTO_FREE char *second = write_text(again);
    assert_string_equal(second, text);
}

static void test_round_trip(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = stream_report("shop");
    AUTO_REPORT struct report *memory = replay_memory_report();
    check_round_trip(shop);
    check_round_trip(memory);
}

/* What a source says of characters in their codes is no escape of ours. */
static void test_source_text(void **state)
{
    (void)state;
    static const char source[] =
        "s += len(\"\\u003cb\\u003e\") < 1  # \\u0026 \\u005c \\u005cu003c\n";
    struct line_stats lines[] = { { .lineno = 1, .line = source } };
    struct report_file file = { .path = "/a.py", .lines = { lines, 1 } };
    struct report report = { .elapsed_time_sec = 1, .files = { &file, 1 } };
    AUTO_REPORT struct report *again = NULL;
    AUTO_FREE char *text = write_text(&report);
    struct failure why = { 0 };
    if (profile_json_read(text, strlen(text), "p.json", "1.2.0", &again, &why))
        fail_msg("%s", why.text);
    assert_string_equal(line_find(again, "/a.py", 1)->line, source);
    check_round_trip(&report);
}

static void check_refused(const char *text, int code, const char *says)
{
    struct report *report = NULL;
    struct failure why = { 0 };
    assert_int_equal(profile_json_read(text, strlen(text), "p.json", "1.2.3", &report, &why), code);
    assert_null(report);
    if (!strstr(why.text, says) || !strstr(why.text, "p.json"))
        fail_msg("%s: not said: %s", why.text, says);
}

static void test_refused(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = stream_report("marked");
    AUTO_FREE char *text = write_text(report);
    check_refused("", -EBADMSG, "empty");
    check_refused("{}", -EBADMSG, "collected nothing");
    check_refused("#!/bin/sh\n", -EBADMSG, "not JSON");
    check_refused("[1, 2]", -EBADMSG, "no profile");
    check_refused("{\"files\": {}, \"elapsed_time_sec\": null}", -EBADMSG, "no profile");
    check_refused("{\"files\": {\"a.py\": {\"lines\": [{\"lineno\": 2, \"line\": \"x\"}]}}, "
                  "\"elapsed_time_sec\": 1}",
                  -EBADMSG, "damaged");
    for (size_t size = strlen(text) - 2; size > 1; size /= 2) {
        text[size] = '\0';
        check_refused(text, -EBADMSG, "truncated");
    }
}

static void test_versions(void **state)
{
    (void)state;
    static const char body[] = "{\"files\": {}, \"elapsed_time_sec\": 1, \"profiler\": {\"name\": "
                               "\"%s\", \"version\": \"%s\"}}";
    static const struct {
        const char *name, *version;
        int code;
    } cases[] = {
        { "scalene-attach", "1.3.0", -ENOTSUP },  { "scalene-attach", "2.0", -ENOTSUP },
        { "scalene-attach", "1.10.0", -ENOTSUP }, { "scalene-attach", "1.2.9", 0 },
        { "scalene-attach", "0.9", 0 },           { "other", "99.0", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        AUTO_REPORT struct report *report = NULL;
        struct failure why = { 0 };
        int size = snprintf(text, sizeof text, body, cases[i].name, cases[i].version);
        int code = profile_json_read(text, (size_t)size, "p.json", "1.2.3", &report, &why);
        assert_int_equal(code, cases[i].code);
        if (code && !strstr(why.text, "newer"))
            fail_msg("%s", why.text);
    }
}

/* What Scalene itself writes has none of our keys. */
static void test_scalene_profile(void **state)
{
    (void)state;
    static const char text[] =
        "{\"files\": {\"/a.py\": {\"percent_cpu_time\": 100, \"functions\": [], \"leaks\": {\"1\": "
        "{\"likelihood\": 0.9, \"velocity_mb_s\": 2}}, \"lines\": [{\"lineno\": 1, \"line\": "
        "\"a \\\\u003c b \\\\u0026 c\\n\", \"n_cpu_percent_c\": 12.5, \"n_mallocs\": 3, "
        "\"memory_samples\": "
        "[[5, 1.5]]}]}}, \"elapsed_time_sec\": 1.5, \"max_footprint_lineno\": null}";
    AUTO_REPORT struct report *report = NULL;
    struct failure why = { 0 };
    if (profile_json_read(text, strlen(text), "p.json", "1.2.3", &report, &why))
        fail_msg("%s", why.text);
    const struct line_stats *line = line_find(report, "/a.py", 1);
    assert_string_equal(line->line, "a < b & c\n");
    assert_float_equal(line->n_cpu_percent_c, 12.5, 0);
    assert_int_equal(line->n_mallocs, 3);
    assert_int_equal(line->memory_samples.count, 1);
    assert_float_equal(line->memory_samples.items[0].megabytes, 1.5, 0);
    assert_string_equal(file_find(report, "/a.py")->leaks.items[0].lineno, "1");
    assert_float_equal(file_find(report, "/a.py")->leaks.items[0].likelihood, 0.9, 0);
    assert_int_equal(report->max_footprint_lineno, -1);
    assert_null(report->profiler_name);
}

static void test_write_fails(void **state)
{
    (void)state;
    AUTO_REPORT struct report *report = stream_report("marked");
    AUTO_FCLOSE FILE *full = fopen("/dev/full", "we");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(profile_json_write(report, full), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shop),        cmocka_unit_test(test_marked),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_versions),    cmocka_unit_test(test_scalene_profile),
        cmocka_unit_test(test_write_fails), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_source_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
