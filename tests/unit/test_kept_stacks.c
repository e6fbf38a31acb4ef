/* Stacks that outlive the reader's round have texts of their own. */
#include "sampler/base/intern.h"
#include "sampler/loop/target_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void stack_fill(struct account *account, struct frame_event *frames, char texts[3][8])
{
    frames[0] = (struct frame_event){ .kind = FRAME_NATIVE, .name = texts[0], .module = texts[1] };
    frames[1] = (struct frame_event){ .kind = FRAME_PYTHON, .name = texts[2], .file = texts[1] };
    *account =
        (struct account){ .frames = frames, .frame_count = 2, .has_stack = true, .name = texts[0] };
}

static void stack_check(const struct account *account)
{
    assert_true(account->has_stack);
    assert_string_equal(account->name, "sleep");
    assert_string_equal(account->frames[0].name, "sleep");
    assert_string_equal(account->frames[0].module, "libc");
    assert_null(account->frames[0].file);
    assert_string_equal(account->frames[1].name, "main");
    assert_string_equal(account->frames[1].file, "libc");
}

static void test_texts_go(void **state)
{
    (void)state;
    char texts[3][8] = { "sleep", "libc", "main" };
    struct frame_event frames[2];
    struct account accounts[2];
    stack_fill(&accounts[0], frames, texts);
    accounts[1] = (struct account){ 0 };
    struct target target = { .accounts = accounts, .count = 2 };
    assert_int_equal(target_keep_texts(&target), 0);
    memset(texts, 'x', sizeof texts);
    stack_check(&accounts[0]);
    assert_false(accounts[1].has_stack);
    const char *kept = accounts[0].frames[0].name;
    assert_int_equal(target_keep_texts(&target), 0);
    assert_ptr_equal(accounts[0].frames[0].name, kept);
    intern_free(target.texts);
}

/* What nobody has any more makes room; what somebody has stays. */
static void test_many_texts(void **state)
{
    (void)state;
    char texts[3][8] = { "sleep", "libc", "main" }, other[64];
    struct frame_event frames[2], changing = { .kind = FRAME_PYTHON };
    struct account accounts[2];
    stack_fill(&accounts[0], frames, texts);
    accounts[1] = (struct account){ .frames = &changing, .frame_count = 1, .has_stack = true };
    struct target target = { .accounts = accounts, .count = 2 };
    size_t most = 0;
    for (int i = 0; i < 200000; i++) {
        snprintf(other, sizeof other, "made_%032d", i);
        changing.name = other;
        accounts[1].keeps_texts = false;
        assert_int_equal(target_keep_texts(&target), 0);
        assert_string_equal(accounts[1].frames[0].name, other);
        if (intern_size(target.texts) > most)
            most = intern_size(target.texts);
    }
    stack_check(&accounts[0]);
    assert_in_range(most, 1 << 20, 5 << 20);
    intern_free(target.texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_go),
        cmocka_unit_test(test_many_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
