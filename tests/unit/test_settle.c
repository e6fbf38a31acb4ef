/* What is left open comes to something that --print-config tells, and with that as its
 * configuration the same command line gives the same run. */
#define _GNU_SOURCE 1 /* nftw */
#include "sampler/app/settle.h"

#include "sampler/app/config.h"
#include "sampler/app/formats.h"
#include "sampler/app/run_memory.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/fake_proc.h"

enum { WORD_LIMIT = 16, LINE_SIZE = 256 };

static struct fake_proc folder;

static int set_up(void **state)
{
    (void)state;
    fake_proc_init(&folder);
    return fchdir(folder.fd);
}

static int tear_down(void **state)
{
    (void)state;
    fake_proc_done(&folder);
    return chdir("/");
}

/* A command line, and what it borrows from. */
struct line {
    char copy[LINE_SIZE], *words[WORD_LIMIT + 1];
    struct options options;
};

static void line_done(struct line *line)
{
    options_done(&line->options);
}

static void line_parse(const char *text, struct line *ret)
{
    struct failure why = { .text = "" };
    char *rest = NULL;
    int count = 0;
    snprintf(ret->copy, sizeof ret->copy, "scalene-attach %s", text);
    for (char *word = strtok_r(ret->copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_in_range(count, 0, WORD_LIMIT - 1);
        ret->words[count++] = word;
    }
    ret->words[count] = NULL;
    if (options_parse(count, ret->words, &ret->options, &why))
        fail_msg("%s: %s", text, why.text);
}

static char *settled_text(struct options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_non_null(into);
    assert_int_equal(options_settle(options), 0);
    assert_int_equal(config_write(options, into), 0);
    assert_int_equal(fclose(into), 0);
    return text;
}

static const struct row {
    const char *line;
    const char *tells[4]; /* lines of what is printed */
} rows[] = {
    { "--print-config",
      { "\nmemory: true\n", "\ngpu: false\n", "\nformat: json\n",
        "output: scalene-profile.json\n" } },
    { "--quiet -- prog", { "\nmemory: true\n", "\n'on': true\n", "\n'off': false\n" } },
    { "--pid 7", { "\nmemory: false\n", "\nformat: json\n" } },
    { "--pid 7 --memory", { "\nmemory: true\n" } },
    { "--gpu -- prog", { "\nmemory: false\n", "\ngpu: true\n" } },
    { "--cpu-only -- prog", { "\nmemory: false\n", "\ncpu-only: true\n" } },
    { "--off -- prog", { "\n'on': false\n", "\n'off': true\n" } },
    { "-o x.folded -- prog", { "\nformat: collapsed\n", "output: x.folded\n" } },
    { "-f pprof --pid 7", { "\nformat: pprof\n", "output: scalene-profile.pb.gz\n" } },
    { "-f json -o x.folded -- prog", { "\nformat: json\n", "output: x.folded\n" } },
    { "-f cli --pid 7", { "\nformat: cli\n" } },
    { "-f cli -o t.txt --pid 7", { "\nformat: cli\n", "output: t.txt\n" } },
    { "run prog.py", { "\nmemory: true\n", "\npython: python3\n", "\ndisable-jit: false\n" } },
};

static void assert_told(const struct row *row, const char *text)
{
    for (size_t i = 0; i < 4 && row->tells[i]; i++)
        if (!strstr(text, row->tells[i]))
            fail_msg("%s: not told: %s in:\n%s", row->line, row->tells[i], text);
}

static void test_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(line_done) struct line line;
        line_parse(rows[i].line, &line);
        AUTO_FREE char *text = settled_text(&line.options);
        assert_told(&rows[i], text);
    }
    CLEANUP(line_done) struct line table;
    line_parse("-f cli --pid 7", &table);
    AUTO_FREE char *text = settled_text(&table.options);
    assert_null(strstr(text, "output:")); /* it goes to the terminal */
}

/* What a run asks of options that may be left open. */
static void assert_same(const char *line, const struct options *one, const struct options *other)
{
    const struct format *format = format_choose(one->format, one->output);
    assert_ptr_equal(format, format_choose(other->format, other->output));
    if (run_memory_wanted(one) != run_memory_wanted(other) ||
        (one->gpu == WISH_YES) != (other->gpu == WISH_YES) ||
        options_rest(one) != options_rest(other))
        fail_msg("%s: another run", line);
    if (one->output && strcmp(one->output, other->output) != 0)
        fail_msg("%s: goes to %s", line, other->output);
    if (!format->write && !one->output)
        assert_null(other->output);
}

static void test_fed_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char again[LINE_SIZE];
        bool is_run = strncmp(rows[i].line, "run ", 4) == 0;
        bool is_named = strcmp(rows[i].line, "--print-config") != 0; /* else a start is meant */
        CLEANUP(line_done) struct line before, settled, after;
        line_parse(is_named ? rows[i].line : "-- prog", &before);
        line_parse(rows[i].line, &settled);
        AUTO_FREE char *text = settled_text(&settled.options);
        fake_write(&folder, "fed.yaml", text, strlen(text));
        const char *names = strstr(rows[i].line, "--pid 7") ? "--pid 7"
                            : is_run                        ? "prog.py"
                                                            : "-- prog";
        snprintf(again, sizeof again, "%s-c fed.yaml %s", is_run ? "run " : "", names);
        line_parse(again, &after);
        assert_same(rows[i].line, &before.options, &after.options);
        AUTO_FREE char *twice = settled_text(&after.options);
        assert_string_equal(twice, text);
    }
}

#define SETTLE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SETTLE_TEST(test_told),
        SETTLE_TEST(test_fed_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
