/* A dump as JSON is its golden text, and JSON to a parser that is strict. */
#include "output/json/dump_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <yyjson.h>

#include "tests/unit/golden.h"
#include "tests/unit/sample_dump.h"

static void test_golden(void **state)
{
    (void)state;
    AUTO_FREE char *text = dump_json_write(&sample_dump);
    assert_non_null(text);
    assert_golden("dump/sample.json", text);
}

/* A target may have names that are no UTF-8; what we write is all the same. */
static void test_is_json(void **state)
{
    (void)state;
    AUTO_FREE char *text = dump_json_write(&sample_dump);
    yyjson_read_err error = { .code = 0 };
    yyjson_doc *doc = yyjson_read_opts(text, strlen(text), YYJSON_READ_NOFLAG, NULL, &error);
    if (!doc)
        fail_msg("at byte %zu: %s", error.pos, error.msg);
    yyjson_val *threads = yyjson_obj_get(yyjson_doc_get_root(doc), "threads");
    assert_int_equal(yyjson_arr_size(threads), sample_dump.thread_count);
    yyjson_val *second = yyjson_arr_get(threads, 1);
    assert_int_equal(yyjson_get_uint(yyjson_obj_get(second, "ident")), UINT64_MAX);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(second, "name")), "🐍 \033]0;title\a");
    yyjson_doc_free(doc);
}

static void test_no_threads(void **state)
{
    (void)state;
    const struct dump_event dump = { .pid = 1, .command = "python", .python = "3.8.0" };
    AUTO_FREE char *text = dump_json_write(&dump);
    assert_string_equal(text, "{\n  \"pid\": 1,\n  \"python\": \"3.8.0\",\n  \"threads\": []\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_is_json),
        cmocka_unit_test(test_no_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
