/* Options in YAML: every key takes effect and comes back as it was written, the command line beats
 * the file, Scalene's files are taken as they are, and whatever else stands there is an error. */
#include "sampler/app/config.h"
#include "sampler/app/option_value.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* What a run would have: these words, and a file with that text. */
static int configure(const char *text, enum verb verb, const struct option_set *said,
                     struct options *options, struct failure *why)
{
    static const struct option_set nothing;
    *why = (struct failure){ .code = 0 };
    options->verb = verb;
    return config_parse(text, strlen(text), "scalene.yaml", said ? said : &nothing, options, why);
}

static void configure_as(enum verb verb, const char *text, const struct option_set *said,
                         struct options *options)
{
    struct failure why;
    if (configure(text, verb, said, options, &why))
        fail_msg("%s: %s", text, why.text);
}

static void configure_fine(const char *text, const struct option_set *said, struct options *options)
{
    configure_as(VERB_RUN, text, said, options);
}

static char *written(const struct options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_non_null(into);
    assert_int_equal(config_write(options, into), 0);
    assert_int_equal(fclose(into), 0);
    return text;
}

/* A value for each type that is not the usual one. */
static const char *unusual(const struct option_row *row)
{
    static const char *const values[] = {
        [TYPE_FLAG] = "true",    [TYPE_SWITCH] = "false", [TYPE_WISH] = "false",
        [TYPE_PIDS] = "4711",    [TYPE_NUMBER] = "2.5",   [TYPE_INTERVAL] = "0.25",
        [TYPE_COUNT] = "7",      [TYPE_BYTES] = "8",      [TYPE_TEXT] = "some text",
        [TYPE_LIST] = "a,b",     [TYPE_FILE] = "f.json",  [TYPE_FOLDER] = "/srv",
        [TYPE_COMMAND] = "pypy", [TYPE_FORMAT] = "cli",   [TYPE_SECONDS] = "1.5",
        [TYPE_OVERHEAD] = "5",
    };
    assert_true(row->type < sizeof values / sizeof *values && values[row->type]);
    return values[row->type];
}

static void test_every_key_takes_effect(void **state)
{
    (void)state;
    AUTO_FREE char *usual = written(&(struct options){ .verb = VERB_RUN, .python = "python3" });
    size_t tried = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        char text[128], scratch[64], under[64];
        enum verb verb = option_goes_with(row, VERB_RUN) ? VERB_RUN : VERB_ATTACH;
        if (!option_is_configurable(row) || !option_goes_with(row, verb))
            continue;
        snprintf(under, sizeof under, "%s", row->name);
        for (char *at = under; *at; at++)
            *at = *at == '-' ? '_' : *at;
        snprintf(text, sizeof text, "%s: %s\n", tried % 2 ? under : row->name, unusual(row));
        CLEANUP(options_done) struct options options = option_defaults;
        configure_as(verb, text, NULL, &options);
        const char *now = option_text(row, &options, 0, scratch, sizeof scratch);
        assert_string_equal(now, row->type == TYPE_INTERVAL ? "4" : unusual(row));
        tried++;
    }
    assert_true(tried > 25);
    assert_non_null(strstr(usual, "rate: 0\n"));
}

/* Off is as good a value as on. */
static void test_both_ways(void **state)
{
    (void)state;
    CLEANUP(options_done) struct options options = option_defaults;
    configure_fine("stacks: off\nprofile-all: Yes\nmemory: false\non: false\nnative: True\n", NULL,
                   &options);
    assert_true(!options.stacks && options.profile_all && options.native_stacks);
    assert_int_equal(options.memory, WISH_NO);
    assert_true(options_rest(&options));
    assert_false(options.asks_profiler);
    configure_fine("stacks: true\nprofile-all: no\n", NULL, &options);
    assert_true(options.stacks && !options.profile_all);
}

/* Never, as Scalene's own files have it. */
static void test_infinity(void **state)
{
    (void)state;
    CLEANUP(options_done) struct options options = option_defaults;
    configure_fine("profile-interval: .inf\nduration: +.INF\n", NULL, &options);
    assert_true(options.profile_interval_s == 0 && options.duration_s == 0);
}

static void test_printed_and_read_again(void **state)
{
    (void)state;
    CLEANUP(options_done) struct options first = option_defaults, second = option_defaults;
    configure_as(VERB_ATTACH,
                 "output: 'yes'\nprofile-only: [größe, 'it''s: #1', \"a\\tb\"]\npid: [7, 8]\n"
                 "rate: 0.1\nmax_overhead: 1e-3\nmalloc-threshold: 0\nprogram-path: '12'\n"
                 "memory: true\nformat: cli\n",
                 NULL, &first);
    AUTO_FREE char *text = written(&first);
    configure_as(VERB_ATTACH, text, NULL, &second);
    AUTO_FREE char *again = written(&second);
    assert_string_equal(text, again);
    assert_string_equal(second.output, "yes");
    assert_string_equal(second.profile_only, "größe,it's: #1,a\tb");
    assert_int_equal(second.pids.count, 2);
    assert_true(second.rate_hz == 0.1 && second.max_overhead == 1e-3);
    assert_int_equal(second.malloc_threshold, 0);
    assert_string_equal(second.program_path, "12");
    assert_int_equal(second.memory, WISH_YES);
    assert_int_equal(second.gpu, WISH_NONE);
}

/* What Scalene reads of its own files. */
static void test_scalene_file(void **state)
{
    (void)state;
    CLEANUP(options_done) struct options options = option_defaults;
    configure_fine("# scalene run -c scalene.yaml prog.py\n---\n"
                   "outfile: profile.json\ncpu-only: true\ngpu: true\nmemory: true\n"
                   "profile-all: true\nuse-virtual-time: true\nmemory_leak_detector: true\n"
                   "profile-system-libraries: true\non: true\nstacks: true\n"
                   "profile-only: shop,billing\nprofile-exclude: tests\nprofile-interval: 5\n"
                   "cpu-percent-threshold: 2\ncpu-sampling-rate: 0.01\n"
                   "allocation-sampling-window: 1048576\nmalloc-threshold: 100\n"
                   "program-path: .\ndisable-jit: true\n",
                   NULL, &options);
    assert_string_equal(options.output, "profile.json");
    assert_true(options.cpu_only && options.profile_all && options.virtual_time);
    assert_true(options.system_libraries && options.disable_jit);
    assert_float_equal(options.rate_hz, 100, 1e-9);
    assert_float_equal(options.profile_interval_s, 5, 0);
    assert_int_equal(options.allocation_window, 1048576);
}

/* Whatever name it was said under, and where only one can hold, whichever was said. */
static void test_command_line_beats_file(void **state)
{
    (void)state;
    static const struct {
        const char *said, *text;
    } rows[] = {
        { "rate", "cpu-sampling-rate: 0.5" },
        { "outfile", "output: f" },
        { "memory", "cpu-only: true" },
        { "off", "on: true" },
        { "profile-only", "profile-only: a" },
        { "stacks", "stacks: false" },
        { "pid", "pid: 12" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        struct option_set said = { { false } };
        options.verb = VERB_ATTACH;
        AUTO_FREE char *before = written(&options);
        said.has[option_find(VERB_ATTACH, rows[i].said, strlen(rows[i].said)) - option_rows] = true;
        configure_as(VERB_ATTACH, rows[i].text, &said, &options);
        AUTO_FREE char *after = written(&options);
        assert_string_equal(after, before);
        configure_as(VERB_ATTACH, rows[i].text, NULL, &options);
        AUTO_FREE char *without = written(&options);
        assert_string_not_equal(without, before);
    }
}

static void test_nothing_in_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "\n", "# nothing\n", "---\n", "{}\n", "~\n", "---\n..."
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        configure_fine(texts[i], NULL, &options);
        assert_true(options.rate_hz == 0 && options.stacks);
    }
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *told;
    } rows[] = {
        { "rate: 100\nprofle-all: true\n", ":2:", "'profle-all'; the nearest is profile-all" },
        { "Rate: 1\n", ":1:", "nearest is rate" },
        { "rate: fast\n", ":1:", "rate wants a number that is not negative, not fast" },
        { "rate: -1\n", ":1:", "not -1" },
        { "rate: '100'\n", ":1:", "not 100; leave out the quotes, which make it text" },
        { "rate: \"100\"\n", ":1:", "leave out the quotes" },
        { "rate: ''\n", ":1:", "not nothing" },
        { "rate:\nrate: 2\n", ":2:", "a second time, after line 1" },
        { "rate: yes\n", ":1:", "not yes" },
        { "rate: .inf\n", ":1:", "not .inf" },
        { "duration: -.inf\n", ":1:", "not -.inf" },
        { "rate: [1, 2]\n", ":1:", "nested" },
        { "rate: {a: 1}\n", ":1:", "nested" },
        { "malloc-threshold: 1.5\n", ":1:", "whole number" },
        { "stacks: 1\n", ":1:", "stacks wants true or false" },
        { "stacks: 'true'\n", ":1:", "stacks wants true or false, not true; leave out the quotes" },
        { "output: 12\n", ":1:", "put it into quotes" },
        { "output: true\n", ":1:", "put it into quotes" },
        { "format: html5\n", ":1:", "json" },
        { "profile-only: [a, [b]]\n", ":1:", "nested" },
        { "profile-only: [a,\n 3]\n", ":2:", "quotes" },
        { "profile-only: [a,\n ~]\n", ":2:", "quotes" },
        { "help: true\n", ":1:", "command line" },
        { "config: other.yaml\n", ":1:", "command line" },
        { "json: true\n", ":1:", "command line" },
        { "rate: 1\nrate: 2\n", ":2:", "a second time, after line 1" },
        { "output: a\n\noutfile: b\n", ":3:", "a second time, after line 1" },
        { "? [rate]\n: 1\n", ":1:", "nested" },
        { "a: &x 1\n", ":1:", "unknown key" },
        { "rate: &x 1\nduration: *x\n", ":2:", "an alias (*x)" },
        { "<<: *x\n", ":1:", "unknown key '<<'" },
        { "rate: !!python/object:os.system 1\n", ":1:", "tag" },
        { "rate: 1\n--- \nrate: 2\n", ":2:", "second document" },
        { "- rate\n", ":1:", "no list of options" },
        { "just text\n", ":1:", "no list of options" },
        { "rate: [1\n", ":1:", "nested" },
        { "rate: 1\n  stacks: 2\n", ":1:", "not 1 stacks" },
        { "rate: 1\n\tstacks: true\n", ":2:", "no YAML" },
        { "output: \"a\\0b\"\n", ":1:", "NUL" },
        { "output: a\001b\n", ":1:", "no YAML" },
        { "\xff\xfe\xff", ":1:", "no YAML" },
        { "\"\\e[2J\": 1\n", ":1:", "'\\x1b[2J'" },
        { "%YAML 9.9\n---\nrate: 1\n", ":1:", "no YAML" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        struct failure why;
        assert_int_equal(configure(rows[i].text, VERB_RUN, NULL, &options, &why), -EINVAL);
        if (strncmp(why.text, "scalene.yaml", 12) || !strstr(why.text, rows[i].where) ||
            !strstr(why.text, rows[i].told) || strpbrk(why.text, "\n\033"))
            fail_msg("%s: %s", rows[i].text, why.text);
        assert_true(options.rate_hz == 0); /* nothing of it holds */
    }
}

/* Quotes are named where they are what is wrong, and nowhere else. */
static void test_no_word_of_quotes(void **state)
{
    (void)state;
    static const char *const texts[] = { "format: jsn\n",     "format: 'jsn'\n", "rate: fast\n",
                                         "rate: 'fast'\n",    "rate: yes\n",     "rate: -1\n",
                                         "stacks: 'maybe'\n", "stacks: 1\n" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        struct failure why;
        assert_int_equal(configure(texts[i], VERB_RUN, NULL, &options, &why), -EINVAL);
        if (strstr(why.text, "quotes"))
            fail_msg("%s: %s", texts[i], why.text);
    }
}

/* As if the key were not there: no value, and nothing of the command line is beaten. */
static void test_null_is_not_set(void **state)
{
    (void)state;
    CLEANUP(options_done) struct options options = option_defaults;
    configure_fine("profile-only:\nprofile-exclude: ~\nrate: null\nstacks: Null\noutput:\n"
                   "memory: ~\nformat: # none\nprogram-path: ~\n",
                   NULL, &options);
    assert_null(options.profile_only);
    assert_null(options.profile_exclude);
    assert_null(options.output);
    assert_null(options.format);
    assert_true(options.rate_hz == 0 && options.stacks && options.memory == WISH_NONE);
    configure_fine("profile-only: ''\n", NULL, &options); /* which is text */
    assert_string_equal(options.profile_only, "");
}

/* A file may be for every way to profile: what is for another one is set aside, and named where it
 * asks for something. */
static void test_other_verbs(void **state)
{
    (void)state;
    static const struct {
        enum verb verb;
        const char *text, *set_aside;
    } rows[] = {
        { VERB_ATTACH, "disable-jit: true\nrate: 5\n", "disable-jit" },
        { VERB_ATTACH, "disable-jit: false\nrate: 5\n", NULL },
        { VERB_ATTACH, "disable-jit: true\npython: pypy\nrate: 5\n", "disable-jit,python" },
        { VERB_LAUNCH, "disable-jit: true\npython: pypy\nrate: 5\n", "python" },
        { VERB_RUN, "disable-jit: true\npython: pypy\nrate: 5\n", NULL },
        { VERB_ATTACH, "pid: 77\nrate: 5\n", NULL },
        { VERB_LAUNCH, "pid: 77\nrate: 5\n", "pid" },
        { VERB_RUN, "pid: [77, 78]\nrate: 5\n", "pid" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        struct failure why;
        assert_int_equal(configure(rows[i].text, rows[i].verb, NULL, &options, &why), 0);
        assert_true(options.rate_hz == 5);
        if (rows[i].set_aside)
            assert_string_equal(options.set_aside, rows[i].set_aside);
        else
            assert_null(options.set_aside);
        assert_true(rows[i].verb != VERB_ATTACH || !options.disable_jit);
        assert_true(rows[i].verb == VERB_ATTACH || !options.pids.count);
    }
    CLEANUP(options_done) struct options options = option_defaults;
    struct failure why;
    assert_int_equal(configure("disable-jit: 1\n", VERB_ATTACH, NULL, &options, &why), -EINVAL);
}

/* An output on the command line tells its format, whatever the file says. */
static void test_output_tells_format(void **state)
{
    (void)state;
    static const struct {
        const char *output, *format;
    } rows[] = { { "x.folded", NULL }, { "x.txt", "html" }, { "x", "html" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(options_done) struct options options = option_defaults;
        struct option_set said = { { false } };
        said.has[option_find(VERB_RUN, "output", 6) - option_rows] = true;
        options.output = rows[i].output;
        configure_fine("format: html\noutput: y.html\n", &said, &options);
        assert_string_equal(options.output, rows[i].output);
        if (rows[i].format)
            assert_string_equal(options.format, rows[i].format);
        else
            assert_null(options.format);
    }
}

/* Made to be much of something: each ends at once. */
static void test_huge(void **state)
{
    (void)state;
    enum { SIZE = 200000 };
    static const char *const pieces[] = { "[", "{", "- ", "a: ", "? ", "&a ", "\"", "x", "!", "%" };
    AUTO_FREE char *text = malloc(SIZE + 16);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t size = 0, step = strlen(pieces[i]);
        for (; size + step < SIZE; size += step)
            memcpy(text + size, pieces[i], step);
        text[size] = '\0';
        CLEANUP(options_done) struct options options = option_defaults;
        struct failure why;
        assert_int_equal(configure(text, VERB_RUN, NULL, &options, &why), -EINVAL);
        assert_non_null(strstr(why.text, "scalene.yaml:"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_takes_effect),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_printed_and_read_again),
        cmocka_unit_test(test_scalene_file),
        cmocka_unit_test(test_command_line_beats_file),
        cmocka_unit_test(test_nothing_in_it),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_word_of_quotes),
        cmocka_unit_test(test_null_is_not_set),
        cmocka_unit_test(test_other_verbs),
        cmocka_unit_test(test_output_tells_format),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
