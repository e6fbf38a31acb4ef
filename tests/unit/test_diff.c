/* Two profiles side by side: what became of each line, what is within the margins, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "output/cli/diff_table.h"
#include "output/cli/screen_text.h"
#include "output/compare/gate.h"
#include "output/json/diff_json.h"
#include "output/json/profile_json.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"
#include "tests/unit/sample_pair.h"

DEFINE_CLEANUP(struct comparison *, comparison_free)
#define AUTO_COMPARISON CLEANUP(comparison_freep)

static int set_up(void **state)
{
    (void)state;
    pair_set_memory();
    return 0;
}

static struct comparison *compare(const struct report *old_report, const struct report *new_report)
{
    struct comparison *comparison = NULL;
    assert_int_equal(comparison_new(old_report, new_report, &comparison), 0);
    return comparison;
}

static char *text_of(const struct comparison *comparison, size_t width, bool coloured, size_t top)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const struct diff_settings settings = { width, coloured, top, "/tmp/old.json", "new\a.json" };
    assert_int_equal(diff_table_write(out, comparison, &settings), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

static const struct compared *line_of(const struct comparison *comparison, const char *text)
{
    for (size_t i = 0; i < comparison->lines.count; i++)
        if (strstr(comparison->lines.items[i].text, text))
            return &comparison->lines.items[i];
    fail_msg("no line with %s", text);
    return NULL;
}

static void check_line(const struct comparison *comparison, const char *text,
                       enum compared_state state, double difference, bool is_significant)
{
    const struct compared *line = line_of(comparison, text);
    const struct change *change = &line->changes[METRIC_TIME];
    assert_int_equal(line->state, state);
    assert_float_equal(change_difference(change), difference, 1e-9);
    assert_int_equal(change_is_significant(change), is_significant);
}

static void test_lines(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    check_line(pair, "price(i, tax)", COMPARED_EDITED, 2, true);
    check_line(pair, "zlib.compress", COMPARED_MOVED, -1.5, true);
    check_line(pair, "for i in range", COMPARED_SAME, 0.125, false);
    check_line(pair, "spoilt", COMPARED_SAME, 0, false);
    check_line(pair, "old_only", COMPARED_REMOVED, -0.5, true);
    check_line(pair, "kept = [", COMPARED_ADDED, 0.25, true);
    check_line(pair, "strip().lower()", COMPARED_SAME, 0, false);
    assert_int_equal(line_of(pair, "zlib.compress")->old_lineno, 4);
    assert_int_equal(line_of(pair, "zlib.compress")->lineno, 10);
    assert_true(strstr(pair->lines.items[0].text, "price") != NULL);
}

static const struct compared *file_of(const struct comparison *comparison, const char *end)
{
    for (size_t i = 0; i < comparison->files.count; i++) {
        const struct compared *file = &comparison->files.items[i];
        if (strstr(file->file ? file->file : file->old_file, end))
            return file;
    }
    fail_msg("no file %s", end);
    return NULL;
}

static void test_files(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    assert_int_equal(pair->files.count, 4);
    assert_int_equal(file_of(pair, "fresh.py")->state, COMPARED_ADDED);
    assert_int_equal(file_of(pair, "gone.py")->state, COMPARED_REMOVED);
    assert_int_equal(file_of(pair, "prog.py")->state, COMPARED_SAME);
    assert_int_equal(file_of(pair, "words/util.py")->state, COMPARED_MOVED);
    assert_string_equal(file_of(pair, "words/util.py")->old_file, "/srv/app/util.py");
    assert_int_equal(pair->functions.count, 2);
    assert_string_equal(pair->functions.items[0].name, "count");
    assert_float_equal(change_percent(&pair->functions.items[0].changes[METRIC_CPU]), 68, 1e-9);
}

/* The same sources elsewhere: files find each other, but for those that nothing tells apart. */
static void test_other_folder(void **state)
{
    (void)state;
    struct line_stats shared[] = { PAIR_LINE(1, "from shared import everything\n", 1, 0, 1) };
    struct report_file old_files[] = {
        { .path = "/home/me/app/copy.py", .lines = PAIR_LIST(shared) },
        { .path = "/home/me/app/other.py", .lines = PAIR_LIST(shared) },
        { .path = "/home/me/app/prog.py", .lines = PAIR_LIST(pair_old_lines) },
        { .path = "/home/me/app/util.py", .lines = PAIR_LIST(pair_util_lines) },
    };
    struct report_file new_files[] = {
        { .path = "/ci/app/copy.py", .lines = PAIR_LIST(shared) },
        { .path = "/ci/app/other.py", .lines = PAIR_LIST(shared) },
        { .path = "/ci/app/prog.py", .lines = PAIR_LIST(pair_new_lines) },
        { .path = "/ci/app/util.py", .lines = PAIR_LIST(pair_util_lines) },
    };
    struct report old_report = pair_old, new_report = pair_new;
    old_report.files.items = old_files;
    new_report.files.items = new_files;
    old_report.files.count = new_report.files.count = 4;
    AUTO_COMPARISON struct comparison *pair = compare(&old_report, &new_report);
    assert_string_equal(file_of(pair, "/ci/app/prog.py")->old_file, "/home/me/app/prog.py");
    assert_string_equal(file_of(pair, "/ci/app/util.py")->old_file, "/home/me/app/util.py");
    assert_null(file_of(pair, "/ci/app/copy.py")->old_file);
    old_report.program = "/home/me/app/prog.py";
    new_report.program = "/ci/app/prog.py";
    AUTO_COMPARISON struct comparison *moved = compare(&old_report, &new_report);
    assert_int_equal(moved->note_count, pair->note_count);
    check_line(pair, "price(i, tax)", COMPARED_EDITED, 2, true);
}

/* A function that went to another file is one that moved, with its long lines; what two could be
 * meant by is not. */
static void test_other_file(void **state)
{
    (void)state;
    struct line_stats old_lines[] = {
        PAIR_LINE(1, "    return sorted(orders, key=price)\n", 1, 0, 1),
        PAIR_LINE(2, "    x += 1\n", 1, 0, 1), PAIR_LINE(3, "stays_here_for_good()\n", 1, 0, 1)
    };
    struct line_stats old_functions[] = { PAIR_LINE(1, "cheapest", 2, 0, 1),
                                          PAIR_LINE(5, "__init__", 1, 0, 1) };
    struct line_stats kept_lines[] = { PAIR_LINE(1, "stays_here_for_good()\n", 1, 0, 1) };
    struct line_stats new_lines[] = { PAIR_LINE(7, "x += 1\n", 2, 0, 1),
                                      PAIR_LINE(8, "return sorted(orders, key=price)\n", 3, 0, 1) };
    struct line_stats new_functions[] = { PAIR_LINE(7, "cheapest", 5, 0, 1),
                                          PAIR_LINE(9, "__init__", 1, 0, 1),
                                          PAIR_LINE(12, "__init__", 1, 0, 1) };
    struct report_file old_files[] = {
        { .path = "/a.py", .lines = PAIR_LIST(old_lines), .functions = PAIR_LIST(old_functions) }
    };
    struct report_file new_files[] = {
        { .path = "/a.py", .lines = PAIR_LIST(kept_lines) },
        { .path = "/b.py", .lines = PAIR_LIST(new_lines), .functions = PAIR_LIST(new_functions) }
    };
    struct report old_report = pair_old, new_report = pair_new;
    old_report.files.items = old_files;
    old_report.files.count = 1;
    new_report.files.items = new_files;
    new_report.files.count = 2;
    AUTO_COMPARISON struct comparison *pair = compare(&old_report, &new_report);
    const struct compared *function = &pair->functions.items[0];
    assert_int_equal(pair->functions.count, 4);
    assert_string_equal(function->name, "cheapest");
    assert_string_equal(function->old_file, "/a.py");
    assert_string_equal(function->file, "/b.py");
    assert_float_equal(change_difference(&function->changes[METRIC_TIME]), 3, 1e-9);
    check_line(pair, "sorted(orders", COMPARED_MOVED, 2, true);
    check_line(pair, "stays_here", COMPARED_SAME, 0, false);
    assert_int_equal(pair->lines.count, 4);
}

/* As it stands in a profile. */
static double rounded(double number)
{
    return round(1e6 * number) / 1e6;
}

/* Two runs that copied as much, one for longer: their rates times their seconds differ by what text
 * leaves out, which is no change; a byte in a thousand is one. */
static void test_rounding(void **state)
{
    (void)state;
    static const double seconds[] = { 7.123456, 1969.654321 };
    struct line_stats old_lines[] = { PAIR_LINE(1, "copy_of = bytes(whole)\n", 1.000001, 0, 1) };
    struct line_stats new_lines[] = { PAIR_LINE(1, "copy_of = bytes(whole)\n", 1, 0, 1) };
    struct report_file old_file = { .path = "/a.py", .lines = PAIR_LIST(old_lines) };
    struct report_file new_file = { .path = "/a.py", .lines = PAIR_LIST(new_lines) };
    struct report old_report = pair_old, new_report = pair_new;
    old_lines[0].n_copy_mb_s = rounded(2.3125 / seconds[0]);
    new_lines[0].n_copy_mb_s = rounded(2.3125 / seconds[1]);
    old_report.elapsed_time_sec = seconds[0];
    new_report.elapsed_time_sec = seconds[1];
    old_report.files.items = &old_file;
    new_report.files.items = &new_file;
    old_report.files.count = new_report.files.count = 1;
    AUTO_COMPARISON struct comparison *pair = compare(&old_report, &new_report);
    const struct change *change = &pair->lines.items[0].changes[METRIC_COPIED];
    assert_true(change->old_value != change->new_value);
    assert_float_equal(change_difference(change), 0, 0);
    assert_float_equal(change_percent(change), 0, 0);
    AUTO_FREE char *text = text_of(pair, 80, false, 10);
    assert_null(strstr(text, "Lines"));
    assert_null(strstr(text, "Files"));
    new_lines[0].n_copy_mb_s *= 1.002;
    AUTO_COMPARISON struct comparison *more = compare(&old_report, &new_report);
    AUTO_FREE char *more_text = text_of(more, 80, false, 10);
    assert_non_null(strstr(more_text, "Lines, by memory copied"));
}

/* Nothing is left over, nothing is counted twice: changes of lines are those of their files. */
static void test_sums(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    for (int i = 0; i < METRIC_COUNT; i++) {
        double lines = 0, files = 0;
        if (!metric_rows[i].of_lines)
            continue;
        for (size_t n = 0; n < pair->lines.count; n++)
            lines += change_difference(&pair->lines.items[n].changes[i]);
        for (size_t n = 0; n < pair->files.count; n++)
            files += change_difference(&pair->files.items[n].changes[i]);
        assert_float_equal(lines, files, 1e-9);
    }
}

/* ---- texts ---- */

static void test_text(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    AUTO_FREE char *narrow = text_of(pair, 80, false, 10);
    AUTO_FREE char *wide = text_of(pair, 120, false, 10);
    AUTO_FREE char *coloured = text_of(pair, 120, true, 3);
    assert_golden("diff/pair_80.txt", narrow);
    assert_golden("diff/pair_120.txt", wide);
    assert_golden("diff/pair_coloured.txt", coloured);
}

static void test_every_width(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    for (size_t width = 40; width < 200; width += 7) {
        AUTO_FREE char *text = text_of(pair, width, false, 10);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            char shown[4096];
            assert_true(screen_text(line, shown, sizeof shown) <= width);
            assert_string_equal(line, shown);
        }
    }
}

static void test_json(void **state)
{
    (void)state;
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    const struct diff_json_settings settings = { "1.2.3", "old.json", "new.json", 0 };
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_int_equal(diff_json_write(pair, &settings, into), 0);
    assert_int_equal(fclose(into), 0);
    assert_golden("diff/pair.json", text);
}

/* ---- recorded streams, and Scalene's own ---- */

static struct report *golden_report(const char *name)
{
    char path[1024];
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    struct report *report = NULL;
    struct failure why = { 0 };
    tests_path(path, sizeof path, name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file || getdelim(&text, &size, '\0', file) < 0)
        fail_msg("%s cannot be read", path);
    if (profile_json_read(text, strlen(text), name, "1.2.3", &report, &why))
        fail_msg("%s", why.text);
    return report;
}

static void test_streams(void **state)
{
    (void)state;
    AUTO_REPORT struct report *shop = golden_report("golden/profile/shop.json");
    AUTO_REPORT struct report *merged = golden_report("golden/profile/merged.json");
    AUTO_COMPARISON struct comparison *comparison = compare(shop, merged);
    AUTO_FREE char *text = text_of(comparison, 80, false, 5);
    assert_golden("diff/streams_80.txt", text);
}

static void test_with_itself(void **state)
{
    (void)state;
    AUTO_REPORT struct report *merged = golden_report("golden/profile/merged.json");
    AUTO_COMPARISON struct comparison *comparison = compare(merged, merged);
    for (size_t i = 0; i < comparison->lines.count; i++) {
        assert_int_equal(comparison->lines.items[i].state, COMPARED_SAME);
        for (int n = 0; n < METRIC_COUNT; n++)
            assert_false(change_is_significant(&comparison->lines.items[i].changes[n]));
    }
    AUTO_FREE char *text = text_of(comparison, 80, false, 5);
    assert_non_null(strstr(text, "No file, function or line changed."));
}

/* Shares of the elapsed time stand for seconds; what is not told is not known. */
static void test_scalene(void **state)
{
    (void)state;
    struct line_stats lines[] = {
        { .lineno = 1, .line = "work()\n", .n_cpu_percent_python = 50, .n_sys_percent = 25 }
    };
    struct report_file file = { .path = "/a.py", .lines = PAIR_LIST(lines) };
    const struct report scalene = { .elapsed_time_sec = 4, .files = { &file, 1 } };
    AUTO_COMPARISON struct comparison *comparison = compare(&scalene, &pair_new);
    const struct change *changes = line_of(comparison, "work()")->changes;
    assert_float_equal(changes[METRIC_PYTHON].old_value, 2, 1e-9);
    assert_float_equal(changes[METRIC_TIME].old_value, 3, 1e-9);
    assert_true(isnan(changes[METRIC_IDLE].old_value));
    assert_true(isnan(changes[METRIC_ALLOCATED].old_value));
    assert_false(change_is_significant(&changes[METRIC_IDLE]));
    assert_float_equal(comparison->totals[METRIC_TIME].old_value, 3, 1e-9);
    AUTO_FREE char *text = text_of(comparison, 80, false, 5);
    assert_non_null(strstr(text, "shares of the elapsed time"));
}

/* ---- limits ---- */

static int check(const struct comparison *comparison, const char *expression, char *sentence)
{
    struct gate gate;
    struct failure why = { 0 };
    if (gate_parse(expression, &gate, &why))
        fail_msg("%s", why.text);
    *sentence = '\0';
    return gate_check(&gate, comparison, sentence);
}

static void test_gates(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        int result;
        const char *says;
    } cases[] = {
        { "elapsed>+10%", 1, "elapsed>+10%: elapsed went from 10.0s to 11.5s (+15.0%)" },
        { "elapsed>+15%", 0, "" },
        { "elapsed > 1 s", 1, "from 10.0s to 11.5s" },
        { "elapsed<-1s", 0, "" },
        { "cpu>+0.3s", 1, "CPU went from 9.00s to 9.38s" },
        { "native<-10%", 1, "native went from 3.00s to 1.75s (-41.7%)" },
        { "kernel>+0%", 0, "" },
        { "idle>+20%", 0, "" }, /* by 25 %, which is within the margin */
        { "memory>+50MB", 1, "memory peak went from 100M to 164M (+64.0%)" },
        { "peak>+70%", 0, "" },
        { "allocated>+1MB", 0, "" }, /* by 10, with 22 for a margin */
        { "live>+100%", 1, "live went from 10.0M to 74.0M" },
        { "copied>+0MB", 0, "" },
        { "time:count>+50%", 1, "Time of count went from 3.13s to 5.25s (+68.0%)" },
        { "time:prog.py>+0s", 0, "" },
        { "time:app/fresh.py>+10%", 1, "Time of app/fresh.py went from 0s to 1.00s" },
        { "cpu:gone.py<-99%", 1, "from 1.00s to 0s" },
        { "cpu:<lambda>>+1%", -ENOENT, "neither profile has a file or a function" },
    };
    AUTO_COMPARISON struct comparison *pair = compare(&pair_old, &pair_new);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sentence[GATE_SENTENCE_SIZE];
        int result = check(pair, cases[i].expression, sentence);
        if (result != cases[i].result || !strstr(sentence, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].expression, result, sentence);
    }
}

static void test_gate_unknown(void **state)
{
    (void)state;
    const struct report scalene = { .elapsed_time_sec = 4 };
    char sentence[GATE_SENTENCE_SIZE];
    AUTO_COMPARISON struct comparison *comparison = compare(&scalene, &pair_new);
    assert_int_equal(check(comparison, "idle>+1%", sentence), -ENODATA);
    assert_non_null(strstr(sentence, "does not tell idle"));
}

static void test_wrong_gates(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",         "cpu",          "cpu>",         "cpu>+10",     "cpu=10%",  "spu>+10%",
        "cpu>10MB", "memory>+10s",  "cpu>+10%x",    "cpu>nan%",    "cpu>inf%", ">10%",
        "cpu:>10%", "memory:f>10%", "elapsed:f>1s", "cpu>+10 % %", "cpu+10%>",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct gate gate;
        struct failure why = { 0 };
        assert_int_equal(gate_parse(wrong[i], &gate, &why), -EINVAL);
        if (!strstr(why.text, wrong[i]) || !strstr(why.text, "metrics are time, cpu, python"))
            fail_msg("%s", why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sums),         cmocka_unit_test(test_other_folder),
        cmocka_unit_test(test_other_file),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_width),  cmocka_unit_test(test_json),
        cmocka_unit_test(test_streams),      cmocka_unit_test(test_with_itself),
        cmocka_unit_test(test_scalene),      cmocka_unit_test(test_gates),
        cmocka_unit_test(test_gate_unknown), cmocka_unit_test(test_wrong_gates),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
