/* Which script a command runs, whose code is the user's, and whether it needs a `profile`. */
#include "sampler/app/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORDS = 8, MANY = 3000 };

static void test_commands(void **state)
{
    (void)state;
    static const struct {
        const char *argv[WORDS], *path, *folder;
    } cases[] = {
        { { "python3", "main.py", "-m" }, "/w/main.py", "/w" },
        { { "/usr/bin/python3.12", "-u", "-X", "dev", "src/main.py" }, "/w/src/main.py", "/w/src" },
        { { "python3", "-Xdev", "-Werror", "-OO", "/main.py" }, "/main.py", "/" },
        { { "python3", "-W", "error", "../main.py" }, "/main.py", "/" },
        { { "python3", "--check-hash-based-pycs", "always", "main" }, "/w/main", "/w" },
        { { "python3", "-IW", "error", "main" }, "/w/main", "/w" },
        { { "python3", "-m", "package", "tests/t.py" }, "", "/w" },
        { { "python3", "-mpackage", "tests/t.py" }, "", "/w" },
        { { "python3", "-Im", "package", "tests/t.py" }, "", "/w" },
        { { "python3", "-c", "pass", "main.py" }, "", "/w" },
        { { "python3", "-Bcpass", "main.py" }, "", "/w" },
        { { "python3", "-", "main.py" }, "", "/w" },
        { { "python3" }, "", "/w" },
        { { "src/main.py", "x" }, "/w/src/main.py", "/w/src" },
        { { "/home/me/.pyenv/versions/3.11/bin/pytest" }, "", "" },
        { { "/home/me/.pyenv/versions/3.11/bin/python3", "main.py" }, "/w/main.py", "/w" },
        { { "/v/bin/python3", "/v/bin/gunicorn", "app:app" }, "/v/bin/gunicorn", "" },
        { { "python3", "bin/tool.py" }, "/w/bin/tool.py", "/w/bin" },
        { { "python3", "made/main.pyc" }, "/w/made/main.pyc", "" },
        { { "sh", "-c", "python3 main.py" }, "", "" },
        { { NULL }, "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program program;
        program_find(cases[i].argv, "/w", &program);
        if (strcmp(program.path, cases[i].path) != 0 || strcmp(program.folder, cases[i].folder))
            fail_msg("%s %s …: %s in %s", cases[i].argv[0], cases[i].argv[1], program.path,
                     program.folder);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *argv[WORDS], *first, *next; /* NULL: nothing more */
        bool is_module;
    } cases[] = {
        { { "python3", "main.py", "-m" }, "main.py", "-m", false },
        { { "/usr/bin/python3.12", "-u", "-X", "dev", "main.py" }, "main.py", NULL, false },
        { { "python3", "-m", "package", "-c" }, "", "-c", true },
        { { "python3", "-Impackage", "x" }, "", "x", true },
        { { "python3", "-m" }, "", NULL, true },
        { { "python3", "-c", "pass", "x" }, "-c", "x", false },
        { { "python3", "-Bcpass", "x" }, "-c", "x", false },
        { { "python3", "-", "x" }, "-", "x", false },
        { { "python3" }, "", NULL, false },
        { { "python3", "-u" }, "", NULL, false },
        { { "./shb", "-m", "x" }, "./shb", "-m", false },
        { { "sh", "-c", "python3 main.py" }, "sh", "-c", false },
        { { NULL }, "", NULL, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program program;
        const char *first;
        const char *const *rest = program_arguments(cases[i].argv, &first);
        assert_string_equal(first, cases[i].first);
        assert_string_equal(*rest ?: "nothing", cases[i].next ?: "nothing");
        program_find(cases[i].argv, "/w", &program);
        assert_int_equal(program.is_module, cases[i].is_module);
    }
}

static void file_make(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void folder_make(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static bool may_be_marked(const char *folder, const char *const *argv)
{
    struct program program;
    program_find(argv, folder, &program);
    return program_may_be_marked(&program, argv);
}

static void test_marks(void **state)
{
    (void)state;
    char folder[] = "/tmp/program-XXXXXX", command[64];
    const char *script[] = { "python3", "main.py", NULL },
               *module[] = { "python3", "-mmain", NULL };
    const char *code[] = { "python3", "-c", "@profile\ndef f(): pass", NULL };
    const char *shell[] = { "sh", "-c", "python3 main.py", NULL };
    assert_non_null(mkdtemp(folder));
    folder_make(folder, "package");
    folder_make(folder, "package/inner");
    folder_make(folder, "site-packages");
    file_make(folder, "main.py", "import package  # no @profile here\n");
    file_make(folder, "package/README", "@profile\n");
    file_make(folder, "site-packages/other.py", "@profile\n");
    assert_false(may_be_marked(folder, script));
    assert_false(may_be_marked(folder, module));
    assert_true(may_be_marked(folder, code));
    assert_true(may_be_marked(folder, shell));
    file_make(folder, "package/inner/work.py", "class A:\n    @profile\n    def f(self): pass\n");
    assert_true(may_be_marked(folder, script));
    assert_true(may_be_marked(folder, module));
    file_make(folder, "package/inner/work.py", "");
    assert_false(may_be_marked(folder, script));
    for (int i = 0; i < MANY; i++) {
        snprintf(command, sizeof command, "package/%d.txt", i);
        file_make(folder, command, "");
    }
    assert_true(may_be_marked(folder, script));
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
