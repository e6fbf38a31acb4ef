/* Mangled names of every scheme that native frames come with, and names that are none. */
#include "symbols/demangle.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

struct row {
    const char *mangled, *readable;
};

static const struct row ROWS[] = {
    /* C++ */
    { "_ZN5torch8autograd6Engine11thread_mainERKSt10shared_ptrINS0_9GraphTaskEE",
      "torch::autograd::Engine::thread_main" },
    { "_Z3fooi", "foo" },
    { "_Z3fooi.cold", "foo" },
    { "_Z3fooi.isra.0", "foo" },
    { "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back" },
    { "_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden" },
    /* Rust, the older scheme: the hash goes */
    { "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
    { "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740"
      "aa94f1d3aE",
      "<Test + 'static as foo::Bar<Test>>::bar" },
    /* Rust, v0 */
    { "_RNvC6_123foo3bar", "123foo::bar" },
    { "_RNvNtCs1234_7mycrate3mod4func", "mycrate::mod::func" },
};

static void test_readable(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        AUTO_FREE char *readable = symbol_demangle(ROWS[i].mangled);
        assert_non_null(readable);
        assert_string_equal(readable, ROWS[i].readable);
    }
}

static void test_not_mangled(void **state)
{
    static const char *const NAMES[] = {
        "",
        "_",
        "_Z",
        "_R",
        "main",
        "_PyEval_EvalFrameDefault",
        "_PyEval_EvalFrameDefault.cold",
        "list_sort_impl.isra.0",
        "_ZN",
        "\xff\xfe",
    };
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        assert_null(symbol_demangle(NAMES[i]));
}

/* Each "P" is a pointer to what follows: a demangler that recurses once for each must give up in
 * time. */
static void test_bottomless(void **state)
{
    (void)state;
    char name[5000] = "_Z1f";
    memset(name + 4, 'P', 3000);
    name[3004] = 'i';
    AUTO_FREE char *readable = symbol_demangle(name);
    assert_true(!readable || strcmp(readable, "f") == 0);
    memset(name + 4, 'P', sizeof name - 5);
    assert_null(symbol_demangle(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_not_mangled),
        cmocka_unit_test(test_bottomless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
