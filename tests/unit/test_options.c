/* The command line: every option in every spelling, and the nearest word for a wrong one. */
#include "sampler/app/option_rows.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { WORD_LIMIT = 16 };

/* What the options of a test borrow from. */
static struct options taken[64];
static size_t taken_count;

static int give_back(void **state)
{
    (void)state;
    while (taken_count)
        options_done(&taken[--taken_count]);
    return 0;
}

/* Parses words that spaces separate. */
static int parse(const char *line, struct options *ret, struct failure *why)
{
    /* what the options keep of the words is good until the next line is parsed */
    static char copy[256], name[] = "scalene-attach";
    static char *words[WORD_LIMIT + 1] = { name };
    char *rest = NULL;
    int count = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_in_range(count, 1, WORD_LIMIT - 1);
        words[count++] = word;
    }
    words[count] = NULL;
    *why = (struct failure){ .code = 0 };
    int error = options_parse(count, words, ret, why);
    assert_true(taken_count < sizeof taken / sizeof *taken);
    taken[taken_count++] = *ret;
    return error;
}

static struct options parse_fine(const char *line)
{
    struct options options;
    struct failure why;
    if (parse(line, &options, &why))
        fail_msg("%s: %s", line, why.text);
    return options;
}

static void test_every_spelling_of_a_pid(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "dump --pid 4711", "dump --pid=4711", "dump -p 4711", "dump -p4711", "--pid 4711 dump",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options options = parse_fine(lines[i]);
        assert_int_equal(options.verb, VERB_DUMP);
        assert_int_equal(options.pids.count, 1);
        assert_int_equal(options.pids.items[0], 4711);
        assert_false(options.native || options.json || options.nonblocking || options.help);
    }
}

static void test_flags(void **state)
{
    (void)state;
    struct options options = parse_fine("dump --pid 1 --native --json --nonblocking --find cookie");
    assert_true(options.native && options.json && options.nonblocking);
    assert_int_equal(options.find, 1 << 2);
    assert_false(options.help || options.version);
    assert_true(parse_fine("-h").help);
    assert_true(parse_fine("--help-advanced").help_advanced);
    assert_true(parse_fine("--version").version);
    assert_int_equal(parse_fine("").verb, VERB_NONE);
}

/* What stands behind a program's name is the program's; what stands behind -- is a command. */
static void test_words_that_are_not_ours(void **state)
{
    (void)state;
    struct options run = parse_fine("run -o f.json -r 50 --no-native prog.py --pid x --quiet");
    assert_int_equal(run.verb, VERB_RUN);
    assert_string_equal(run.output, "f.json");
    assert_true(run.rate_hz == 50 && !run.native_stacks && !run.quiet && run.subprocesses);
    assert_string_equal(run.words[0], "prog.py");
    assert_string_equal(run.words[1], "--pid");
    assert_string_equal(run.words[3], "--quiet");
    assert_string_equal(parse_fine("run -m mod").words[0], "-m");
    assert_string_equal(parse_fine("run --- -c code").words[0], "-c");
    struct options launch = parse_fine("-d 2.5 -- python3 --version");
    assert_int_equal(launch.verb, VERB_LAUNCH);
    assert_true(launch.duration_s == 2.5 && !launch.version);
    assert_string_equal(launch.words[0], "python3");
    struct options attach = parse_fine("--pid 7 -p 8 --quiet");
    assert_int_equal(attach.verb, VERB_ATTACH);
    assert_int_equal(attach.pids.count, 2);
    assert_true(attach.quiet);
    struct options view = parse_fine("view --cli p.json -r other.json");
    assert_int_equal(view.verb, VERB_VIEW);
    assert_true(view.reduced && view.cli);
    assert_string_equal(view.words[0], "p.json");
    assert_string_equal(view.words[1], "other.json");
    assert_null(view.words[2]);
    assert_null(parse_fine("view --cli").words);
    struct options list = parse_fine("view --sort Peak --top 5 --file a*.py --function f --json");
    assert_string_equal(list.sort, "Peak");
    assert_int_equal(list.view_top, 5);
    assert_string_equal(list.file, "a*.py");
    assert_string_equal(list.function, "f");
    assert_true(list.json);
}

static void test_memory(void **state)
{
    (void)state;
    struct options usual = parse_fine("-- ls");
    assert_true(usual.leak_detector && !usual.cpu_only);
    assert_true(usual.memory == WISH_NONE && usual.gpu == WISH_NONE);
    assert_int_equal(usual.allocation_window, 524287);
    assert_int_equal(usual.malloc_threshold, 100);
    struct options told = parse_fine("--memory --no-memory-leak-detector --malloc-threshold 0 "
                                     "--allocation-sampling-window=32768 run a.py");
    assert_true(told.memory == WISH_YES && !told.leak_detector);
    assert_int_equal(told.allocation_window, 32768);
    assert_int_equal(told.malloc_threshold, 0);
    assert_true(parse_fine("--cpu-only --pid 7").cpu_only);
    assert_int_equal(parse_fine("--gpu run a.py").gpu, WISH_YES);
    assert_int_equal(parse_fine("--gpu --no-gpu run a.py").gpu, WISH_NO);
    assert_int_equal(parse_fine("--no-memory run a.py").memory, WISH_NO);
}

/* A verb of its own, or an option of a run: the same words, told apart by where they stand. */
static void test_steering(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum verb verb;
    } rows[] = {
        { "on --pid 7", VERB_ON },       { "--pid 7 off", VERB_OFF },
        { "flush -p7 -q", VERB_FLUSH },  { "stop --pid 7", VERB_STOP },
        { "status -p 7", VERB_STATUS },  { "status -p 7 --json", VERB_STATUS },
        { "--on --pid 7", VERB_ATTACH }, { "--pid 7 --off", VERB_ATTACH },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options options = parse_fine(rows[i].line);
        assert_int_equal(options.verb, rows[i].verb);
        assert_int_equal(options.pids.items[0], 7);
        assert_int_equal(verb_steers(options.verb), rows[i].verb != VERB_ATTACH);
    }
    assert_true(options_rest(&(struct options){ .off = WISH_YES }));
    assert_int_equal(parse_fine("--off --pid 7").off, WISH_YES);
    assert_true(parse_fine("--off --pid 7").asks_profiler);
    assert_int_equal(parse_fine("run --off prog.py").off, WISH_YES);
    assert_int_equal(parse_fine("--pid 7 -o off").off, WISH_NONE);
    assert_false(parse_fine("--pid 7 -o off").asks_profiler);
}

/* What is a number of seconds, or a list, may be said in several ways. */
static void test_values(void **state)
{
    (void)state;
    assert_float_equal(parse_fine("--cpu-sampling-rate 0.01 -- ls").rate_hz, 100, 1e-9);
    assert_string_equal(parse_fine("--profile-only a --profile-only=b,c -- ls").profile_only,
                        "a,b,c");
    assert_string_equal(parse_fine("--outfile a --output b -- ls").output, "b");
    assert_string_equal(parse_fine("-f cli -- ls").format, "cli");
    assert_true(parse_fine("--profile-all --no-profile-all -- ls").profile_all == false);
}

/* Each sentence names what is wrong and the nearest that is right. */
static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *line, *word, *help;
    } rows[] = {
        { "dump --pidd 1", "'--pidd'", "--pid" },
        { "dump --jsn", "'--jsn'", "--json" },
        { "dump --nativ", "'--nativ'", "--native" },
        { "dump --non-blocking", "'--non-blocking'", "--nonblocking" },
        { "dump --help-advance", "'--help-advance'", "--help-advanced" },
        { "dump --a-word-that-is-much-longer-than-any-option-could-ever-be=1", "--a-word",
          "nearest" },
        { "dmp --pid 1", "'dmp'", "dump" },
        { "dump -x", "'-x'", "-h" },
        { "dump dump", "'dump'", "too many" },
        { "dump --pid", "--pid", "N" },
        { "dump --pid= ", "--pid", "''" },
        { "dump --pid 0", "--pid", "'0'" },
        { "dump --pid -1", "--pid", "'-1'" },
        { "dump --pid 12x", "--pid", "'12x'" },
        { "dump --pid 2147483648", "--pid", "'2147483648'" },
        { "dump --pid 99999999999999999999", "--pid", "process id" },
        { "dump --json=yes", "--json", "no value" },
        { "dump --find guess", "--find", "cookie" },
        { "dump --pid 1 --duration 3", "--duration", "dump" },
        { "--pid 1 --json", "--json", "profiling" },
        { "--pid 1 --rate fast", "--rate", "'fast'" },
        { "--pid 1 --max-overhead 0", "--max-overhead wants", "more than 0 (--nonblocking never" },
        { "--pid 1 --duration -3", "--duration", "'-3'" },
        { "--allocation-sampling-window 0 -- ls", "--allocation-sampling-window", "'0'" },
        { "--allocation-sampling-window 4k -- ls", "bytes", "'4k'" },
        { "--allocation-sampling-window 99999999999999999999 -- ls", "bytes", "'999" },
        { "--malloc-threshold -1 -- ls", "--malloc-threshold", "'-1'" },
        { "--malloc-threshold 1.5 -- ls", "whole", "'1.5'" },
        { "--no-version -- ls", "'--no-version'", "nearest" },
        { "--no-rate -- ls", "'--no-rate'", "nearest" },
        { "view --sort peek", "'peek'", "nearest is peak" },
        { "view --sort n_peek_mb", "'n_peek_mb'", "nearest is n_peak_mb" },
        { "view --top -1", "whole", "'-1'" },
        { "--format yaml -- ls", "--format", "json" },
        { "--cpu-sampling-rate 0 -- ls", "seconds", "'0'" },
        { "--config /nowhere/at/all.yaml -- ls", "/nowhere/at/all.yaml", "No such file" },
        { "--pid 1 runn", "'runn'", "run" },
        { "--pid 1 stpo", "'stpo'", "stop" },
        { "stop --pid 1 now", "'now'", "too many" },
        { "stop --pid 1 --json", "--json", "stop" },
        { "word -- sleep 1", "'word'", "--" },
        { "--pid 77 -- sleep 1", "--pid does not go with", "a command" },
        { "run --pid 77 prog.py", "--pid does not go with", "run" },
        { "-p77 run prog.py", "--pid does not go with", "run" },
        { "diff --json --html a b", "--html and --json", "exclude" },
        { "diff --top 1 a b --html", "--html and --top", "exclude" },
        { "view --json --html", "--html and --json", "exclude" },
        { "view --standalone --sort peak", "--standalone and --sort", "exclude" },
        { "view --cli --html", "--html and --cli", "exclude" },
        { "view -r --html", "--html and --reduced", "exclude" },
        { "view --html --file a", "--html and --file", "exclude" },
        { "view --html --cpu-percent-threshold 1", "--html and --cpu-percent-threshold",
          "exclude" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options options;
        struct failure why;
        assert_int_equal(parse(rows[i].line, &options, &why), -EINVAL);
        assert_int_equal(why.code, -EINVAL);
        if (!strstr(why.text, rows[i].word) || !strstr(why.text, rows[i].help))
            fail_msg("%s: %s", rows[i].line, why.text);
        assert_null(strchr(why.text, '\n'));
    }
}

/* What is given and taken back excludes nothing; a row that names no option would never hold. */
static void test_exclusions(void **state)
{
    (void)state;
    assert_true(parse_fine("view --json --no-json --html").html);
    assert_true(parse_fine("view --html --no-html --sort peak").sort != NULL);
    assert_int_equal(parse_fine("diff --json --top 3 a b").top, 3);
    assert_true(parse_fine("diff --json a b").top < 0);
    for (size_t i = 0; i < exclusion_count; i++) {
        const struct exclusion_row *row = &exclusion_rows[i];
        assert_non_null(option_find(row->verb, row->name, strlen(row->name)));
        for (const char *other = row->others; *other;) {
            size_t length = strcspn(other, " ");
            const struct option_row *found = option_find(row->verb, other, length);
            assert_true(found && option_goes_with(found, row->verb));
            other += length + (other[length] == ' ');
        }
    }
}

#define OPTIONS_TEST(test) cmocka_unit_test_teardown(test, give_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPTIONS_TEST(test_every_spelling_of_a_pid),
        OPTIONS_TEST(test_flags),
        OPTIONS_TEST(test_words_that_are_not_ours),
        OPTIONS_TEST(test_memory),
        OPTIONS_TEST(test_values),
        OPTIONS_TEST(test_steering),
        OPTIONS_TEST(test_errors),
        OPTIONS_TEST(test_exclusions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
