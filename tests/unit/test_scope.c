/* Which files have lines of their own, and who only joins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/scope.h"
#include "output/model/source_path.h"

static const struct profile_settings plain = { .program = "/home/me/app/main.py",
                                               .program_path = "/home/me/app" };

struct shown_case {
    const char *path;
    bool shown;
};

static void check(const struct profile_settings *settings, const struct shown_case *cases,
                  size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((scope_find(settings, cases[i].path, "f") == SCOPE_SHOWN) != cases[i].shown)
            fail_msg("%s: %s", cases[i].path, cases[i].shown ? "should be shown" : "should not");
}

#define CHECK(settings, cases) check(settings, cases, sizeof(cases) / sizeof *(cases))

static void test_plain(void **state)
{
    (void)state;
    static const struct shown_case cases[] = {
        { "/home/me/app/main.py", true },
        { "/home/me/app/sub/x.py", true },
        { "/home/me/application/x.py", false },
        { "/home/me/other.py", false },
        { "/usr/lib/python3.12/threading.py", false },
        { "/home/me/app/venv/lib/python3.12/site-packages/numpy/x.py", false },
        { "/home/me/app/venv/lib64/python3.13t/json/decoder.py", false },
        { "/home/me/app/lib/python3-tools/x.py", true },
        { "/home/me/app/lib/python312.zip/os.py", false },
        { "/home/me/app/pip-23.2.1-py3-none-any.whl/pip/x.py", false },
        { "<string>", true },
        { "<stdin>", true },
        { "<ipython-input-3-abc>", true },
        { "/tmp/ipykernel_4711/2733432525.py", true },
        { "/home/you/ipykernel_tools/x.py", false },
        { "/home/you/ipykernel_7.py", false },
        { "<frozen importlib._bootstrap>", false },
        { "<attrs generated init app.Point>", false },
        { "", false },
    };
    CHECK(&plain, cases);
    assert_int_equal(scope_find(&plain, NULL, "f"), SCOPE_HIDDEN);
    assert_int_equal(scope_find(&plain, "<string>", "__create_fn__.<locals>.__init__"),
                     SCOPE_HIDDEN);
    assert_int_equal(scope_find(&plain, "<string>", NULL), SCOPE_SHOWN);
    assert_int_equal(scope_find(&plain, "/build/app/x.py", "f"), SCOPE_ELSEWHERE);
    assert_int_equal(scope_find(&plain, "/build/lib/python3.12/x.py", "f"), SCOPE_HIDDEN);
}

/* Of several programs each has a folder. */
static void test_several_programs(void **state)
{
    (void)state;
    static const char *const more[] = { "/srv/b", "/v/lib/python3.12/site-packages/c", "/v", NULL };
    static const struct shown_case cases[] = {
        { "/home/me/app/x.py", true },
        { "/srv/b/x.py", true },
        { "/srv/b/lib/python3.12/site-packages/d/x.py", false },
        { "/srv/bb/x.py", false },
        { "/v/lib/python3.12/site-packages/c/x.py", true },
        { "/v/lib/python3.12/site-packages/d/x.py", false },
    };
    struct profile_settings settings = plain;
    settings.more_paths = more;
    CHECK(&settings, cases);
}

/* The program itself lies where libraries lie. */
static void test_program_in_library(void **state)
{
    (void)state;
    struct profile_settings settings = plain;
    static const char *const libraries[] = { "/opt/site", NULL };
    static const struct shown_case cases[] = {
        { "/v/lib/python3.12/site-packages/app/x.py", true },
        { "/v/lib/python3.12/site-packages/other/x.py", false },
    };
    static const struct shown_case below_library[] = {
        { "/opt/site/app/x.py", true },
        { "/opt/site/other/x.py", false },
    };
    settings.program_path = "/v/lib/python3.12/site-packages/app/";
    CHECK(&settings, cases);
    settings.program_path = "/opt/site/app";
    settings.library_paths = libraries;
    CHECK(&settings, below_library);
}

static void test_options(void **state)
{
    (void)state;
    static const char *const only[] = { "core", "<string>", NULL };
    static const char *const exclude[] = { "tests", NULL };
    struct profile_settings settings = plain;
    static const struct shown_case all[] = {
        { "/usr/lib/python3.12/os.py", true },
        { "/anywhere/x.py", true },
        { "<frozen os>", true },
        { "/home/me/app/tests/x.py", false },
    };
    static const struct shown_case system[] = { { "/usr/lib/python3.12/os.py", true },
                                                { "/anywhere/x.py", false },
                                                { "/home/me/app/x.py", true } };
    static const struct shown_case some[] = { { "/home/me/app/core/x.py", true },
                                              { "/home/me/app/x.py", false },
                                              { "/else/core/x.py", false },
                                              { "<string>", true },
                                              { "/home/me/app/main.py", false } };
    static const struct shown_case rootless[] = { { "/anywhere/x.py", true },
                                                  { "/usr/lib/python3.12/os.py", false } };
    settings.profile_all = true;
    settings.exclude = exclude;
    CHECK(&settings, all);
    settings = plain;
    settings.system_libraries = true;
    CHECK(&settings, system);
    settings = plain;
    settings.only = only;
    CHECK(&settings, some);
    settings = plain;
    settings.program_path = "";
    CHECK(&settings, rootless);
}

static void test_joins(void **state)
{
    (void)state;
    assert_true(scope_is_join("/usr/lib/python3.12/threading.py", "Thread.join"));
    assert_true(scope_is_join("/usr/lib/python3.8/threading.py", "_wait_for_tstate_lock"));
    assert_true(scope_is_join("/x/concurrent/futures/_base.py", "Future.result"));
    assert_false(scope_is_join("/usr/lib/python3.12/threading.py", "Condition.wait"));
    assert_false(scope_is_join("/home/me/app/join.py", "join"));
    assert_false(scope_is_join(NULL, "join"));
    assert_false(scope_is_join("/usr/lib/python3.12/threading.py", NULL));
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *argv[6], *name;
    } cases[] = {
        { { "python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()" },
          "<multiprocessing>" },
        { { "python3", "-c", "import sys; from multiprocessing.forkserver import main; main" },
          "<multiprocessing>" },
        { { "python3", "-X", "dev", "-c", "from multiprocessing.forkserver import main; main" },
          "<multiprocessing>" },
        { { "python3", "-c", "from multiprocessing import Pool; Pool().map(f, x)" }, NULL },
        { { "python3", "main.py" }, NULL },
        { { "python3", "-c" }, NULL },
        { { NULL }, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = scope_string_of(cases[i].argv);
        assert_string_equal(name ?: "none", cases[i].name ?: "none");
    }
    assert_null(scope_string_of(NULL));
    assert_null(scope_string_below("<frozen site>", NULL));
    assert_null(scope_string_below("/home/me/site.py", "main"));
    assert_string_equal(scope_string_below("/usr/lib/python3.8/site.py", "addpackage"), "<site>");
    assert_string_equal(scope_string_below("/usr/lib/python3.8/dataclasses.py", "_create_fn"),
                        "<generated>");
    assert_null(scope_string_below("/usr/lib/python3.8/cProfile.py", "run"));
}

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *file, *cwd, *path;
    } cases[] = {
        { "/a/b.py", "/w", "/a/b.py" },
        { "b.py", "/w", "/w/b.py" },
        { "./b.py", "/w/", "/w/b.py" },
        { "../b.py", "/w/x", "/w/b.py" },
        { "/a/./c//../b.py", NULL, "/a/b.py" },
        { "/../../b.py", NULL, "/b.py" },
        { "<string>", "/w", "<string>" },
        { "b.py", NULL, "b.py" },
        { "b.py", "relative", "b.py" },
        { "", "/w", "/w" },
        { "...", "/w", "/w/..." },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[64];
        source_path_write(cases[i].file, cases[i].cwd, path, sizeof path);
        assert_string_equal(path, cases[i].path);
    }
    char tight[8];
    source_path_write("/abc/defghijk.py", NULL, tight, sizeof tight);
    assert_string_equal(tight, "/abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_several_programs),
        cmocka_unit_test(test_program_in_library),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
