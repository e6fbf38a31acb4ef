/* Interned texts: one address for equal texts, that stays; a size that counts; an empty pool is
 * like a new one. */
#include "sampler/base/intern.h"

#include "sampler/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

DEFINE_CLEANUP(struct intern *, intern_free)

enum { TEXTS = 5000 }; /* many times the buckets it begins with */

static void test_equal_texts_have_equal_addresses(void **state)
{
    (void)state;
    CLEANUP(intern_freep) struct intern *pool = NULL;
    assert_int_equal(intern_new(&pool), 0);
    char copy[] = "größe";
    const char *text = intern_text(pool, copy);
    assert_ptr_not_equal(text, copy);
    assert_string_equal(text, "größe");
    copy[0] = 'G';
    assert_string_equal(text, "größe");
    assert_ptr_equal(intern_text(pool, "größe"), text);
    assert_ptr_not_equal(intern_text(pool, copy), text);
    assert_string_equal(intern_text(pool, ""), "");
    assert_ptr_equal(intern_text(pool, ""), intern_text(pool, ""));
}

static void test_addresses_stay_while_it_grows(void **state)
{
    (void)state;
    CLEANUP(intern_freep) struct intern *pool = NULL;
    static const char *texts[TEXTS];
    char text[32];
    assert_int_equal(intern_new(&pool), 0);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof text, "name %d", i);
        texts[i] = intern_text(pool, text);
    }
    size_t size = intern_size(pool);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof text, "name %d", i);
        assert_string_equal(texts[i], text);
        assert_ptr_equal(intern_text(pool, text), texts[i]);
    }
    assert_int_equal(intern_size(pool), size);
}

static void test_size_counts_what_is_held(void **state)
{
    (void)state;
    CLEANUP(intern_freep) struct intern *pool = NULL;
    char text[4096];
    assert_int_equal(intern_new(&pool), 0);
    assert_int_equal(intern_size(pool), 0);
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    intern_text(pool, text);
    assert_in_range(intern_size(pool), sizeof text, sizeof text + 64);
    intern_empty(pool);
    assert_int_equal(intern_size(pool), 0);
    assert_string_equal(intern_text(pool, "a"), "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_texts_have_equal_addresses),
        cmocka_unit_test(test_addresses_stay_while_it_grows),
        cmocka_unit_test(test_size_counts_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
