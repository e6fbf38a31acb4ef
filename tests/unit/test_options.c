/* The command line: every option in every spelling, the nearest word for a wrong one, and the help
 * that lists them. */
#include "sampler/app/options.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { WORD_LIMIT = 16 };

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
    return options_parse(count, words, ret, why);
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
    struct options view = parse_fine("view p.json --cli -r");
    assert_int_equal(view.verb, VERB_VIEW);
    assert_true(view.reduced && view.cli);
    assert_string_equal(view.words[0], "p.json");
}

static void test_memory(void **state)
{
    (void)state;
    struct options usual = parse_fine("-- ls");
    assert_true(usual.leak_detector && !usual.memory && !usual.cpu_only && !usual.gpu);
    assert_int_equal(usual.allocation_window, 524287);
    assert_int_equal(usual.malloc_threshold, 100);
    struct options told = parse_fine("--memory --no-memory-leak-detector --malloc-threshold 0 "
                                     "--allocation-sampling-window=32768 run a.py");
    assert_true(told.memory && !told.leak_detector);
    assert_int_equal(told.allocation_window, 32768);
    assert_int_equal(told.malloc_threshold, 0);
    assert_true(parse_fine("--cpu-only --pid 7").cpu_only);
    assert_true(parse_fine("--gpu run a.py").gpu);
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
    assert_true(parse_fine("--off --pid 7").off);
    assert_true(parse_fine("run --off prog.py").off);
    assert_false(parse_fine("--pid 7 -o off").off);
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
        { "dump --pid 99999999999999999999", "--pid", "none" },
        { "dump --json=yes", "--json", "no value" },
        { "dump --find guess", "--find", "cookie" },
        { "dump --pid 1 --duration 3", "--duration", "dump" },
        { "--pid 1 --json", "--json", "profiling" },
        { "--pid 1 --rate fast", "--rate", "'fast'" },
        { "--pid 1 --duration -3", "--duration", "'-3'" },
        { "--allocation-sampling-window 0 -- ls", "--allocation-sampling-window", "'0'" },
        { "--allocation-sampling-window 4k -- ls", "bytes", "'4k'" },
        { "--allocation-sampling-window 99999999999999999999 -- ls", "bytes", "'999" },
        { "--malloc-threshold -1 -- ls", "--malloc-threshold", "'-1'" },
        { "--malloc-threshold 1.5 -- ls", "whole", "'1.5'" },
        { "--no-memory -- ls", "'--no-memory'", "nearest" },
        { "--pid 1 runn", "'runn'", "run" },
        { "--pid 1 stpo", "'stpo'", "stop" },
        { "stop --pid 1 now", "'now'", "too many" },
        { "stop --pid 1 --json", "--json", "stop" },
        { "word -- sleep 1", "'word'", "--" },
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

static char *help_text(bool advanced)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    options_write_help(out, advanced);
    fclose(out);
    return text;
}

/* What the help lists is what the parser takes, whatever an option's type. */
static void test_help_lists_every_option(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool advanced;
    } rows[] = {
#define LEVEL_BASIC false
#define LEVEL_ADVANCED true
#define PREFIX_FLAG "--"
#define PREFIX_PIDS "--"
#define PREFIX_NUMBER "--"
#define PREFIX_COUNT "--"
#define PREFIX_BYTES "--"
#define PREFIX_TEXT "--"
#define PREFIX_METHOD "--"
#define PREFIX_SWITCH "--[no-]"
#define OPTION(member, type, value, name, letter, metavar, verbs, level, help)                     \
    { PREFIX_##type name " ", LEVEL_##level },
#include "sampler/app/options.def"
#undef OPTION
    };
    AUTO_FREE char *basic = help_text(false);
    AUTO_FREE char *advanced = help_text(true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(strstr(advanced, rows[i].name));
        assert_int_equal(!strstr(basic, rows[i].name), rows[i].advanced);
    }
    assert_non_null(strstr(basic, "scalene-attach dump --pid N"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_spelling_of_a_pid),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_words_that_are_not_ours),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_steering),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_help_lists_every_option),
    };
    setenv("NO_COLOR", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
