/* Help, man page and completions say every row of options.def and verbs.def: none can be missing,
 * and the help fits any terminal. */
#include "sampler/app/document.h"

#include "output/model/columns.h"
#include "sampler/app/option_rows.h"
#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "output/cli/screen_text.h"

static char *text_of(void (*write)(FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    write(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void basic_help(FILE *out)
{
    help_write(out, VERB_NONE, false);
}

static void advanced_help(FILE *out)
{
    help_write(out, VERB_NONE, true);
}

static void view_help(FILE *out)
{
    help_write(out, VERB_VIEW, true);
}

static void dump_help(FILE *out)
{
    help_write(out, VERB_DUMP, true);
}

static void man_page(FILE *out)
{
    man_page_write(out, "1.2.3");
}

/* A name, and not the beginning of another one. */
static bool says(const char *text, const char *before, const char *name, const char *behind)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s%s", before, name);
    for (const char *at = text; (at = strstr(at, wanted)); at++)
        if (strchr(behind, at[strlen(wanted)]))
            return true;
    return false;
}

/* Hyphens of roff have a backslash. */
static const char *roff_name(const char *name, char *into)
{
    char *to = into;
    for (; *name; *to++ = *name++)
        if (*name == '-')
            *to++ = '\\';
    *to = '\0';
    return into;
}

static void test_every_option(void **state)
{
    (void)state;
    AUTO_FREE char *basic = text_of(basic_help), *advanced = text_of(advanced_help);
    AUTO_FREE char *man = text_of(man_page), *bash = text_of(completion_write_bash);
    AUTO_FREE char *zsh = text_of(completion_write_zsh), *fish = text_of(completion_write_fish);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        const char *dashes = row->type == TYPE_SWITCH ? "--[no-]" : "--";
        char roff[64];
        assert_true(says(advanced, dashes, row->name, " \n"));
        assert_int_equal(says(basic, dashes, row->name, " \n"), row->level == LEVEL_BASIC);
        assert_true(says(man, row->type == TYPE_SWITCH ? "[no\\-]" : "\\fB\\-\\-",
                         roff_name(row->name, roff), "\\"));
        assert_true(says(bash, "--", row->name, " )"));
        assert_true(says(zsh, "--", row->name, "=}'"));
        assert_true(says(fish, " -l ", row->name, " "));
        assert_true(strlen(row->help) > 5 && strlen(row->name) < 32);
    }
}

/* What can be asked for by its key is explained. */
static void test_every_column(void **state)
{
    (void)state;
    AUTO_FREE char *man = text_of(man_page), *bash = text_of(completion_write_bash);
    for (size_t i = 0; i < column_count; i++) {
        assert_true(says(man, ".B ", columns[i].key, "\n"));
        assert_true(says(bash, " ", columns[i].key, " '") || says(bash, "'", columns[i].key, " "));
    }
}

static void test_every_verb(void **state)
{
    (void)state;
    AUTO_FREE char *help = text_of(basic_help), *man = text_of(man_page);
    AUTO_FREE char *bash = text_of(completion_write_bash), *zsh = text_of(completion_write_zsh);
    AUTO_FREE char *fish = text_of(completion_write_fish);
    for (enum verb verb = 1; verb < VERB_COUNT; verb++) {
        const char *word = verb_rows[verb].word;
        assert_non_null(strstr(help, verb_rows[verb].synopsis));
        if (!word)
            continue;
        assert_true(says(man, ".B ", word, " "));
        assert_true(says(bash, "'", word, "'") && says(zsh, "'", word, "'"));
        assert_true(says(fish, "-f -a ", word, " "));
        assert_int_equal(verb_find(word), verb);
    }
}

static void test_one_verb(void **state)
{
    (void)state;
    AUTO_FREE char *text = text_of(view_help);
    assert_non_null(strstr(text, "--reduced"));
    assert_null(strstr(text, "--rate"));
    assert_null(strstr(text, "dump --pid"));
    AUTO_FREE char *dump = text_of(dump_help);
    assert_null(strstr(dump, "may be given again")); /* which attaching alone takes */
    assert_non_null(strstr(dump, "JSON instead of text\n"));
}

static void test_fits(void **state)
{
    (void)state;
    static const char *const widths[] = { "72", "80", "100", "132" };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        setenv("COLUMNS", widths[i], 1);
        AUTO_FREE char *text = text_of(advanced_help);
        for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            char shown[512];
            size_t width = screen_text(line, shown, sizeof shown);
            if (width > strtoul(widths[i], NULL, 10))
                fail_msg("%zu columns: %s", width, line);
        }
    }
    unsetenv("COLUMNS");
}

/* The contract's colours, and nothing but colours more than without. */
static void test_colours(void **state)
{
    (void)state;
    setenv("CLICOLOR_FORCE", "1", 1);
    unsetenv("NO_COLOR");
    AUTO_FREE char *coloured = text_of(basic_help);
    static const char *const wanted[] = {
        "\033[1;34musage:\033[0m", "\033[1;35mscalene-attach\033[0m",
        "\033[1;36m--pid\033[0m",  "\033[1;32m-p\033[0m",
        "\033[1;33mN\033[0m",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_non_null(strstr(coloured, wanted[i]));
    setenv("NO_COLOR", "1", 1);
    AUTO_FREE char *plain = text_of(basic_help);
    assert_null(strchr(plain, '\033'));
    unsetenv("CLICOLOR_FORCE");
}

static void test_which(void **state)
{
    (void)state;
    struct failure why = { .text = "" };
    assert_int_equal(document_run("troff", "1", &why), -EINVAL);
    assert_non_null(strstr(why.text, "man, bash, zsh or fish"));
    assert_int_equal(document_run(NULL, "1", &why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option), cmocka_unit_test(test_every_verb),
        cmocka_unit_test(test_every_column), cmocka_unit_test(test_one_verb),
        cmocka_unit_test(test_fits),         cmocka_unit_test(test_colours),
        cmocka_unit_test(test_which),
    };
    setenv("NO_COLOR", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
