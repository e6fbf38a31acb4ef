/* The table of columns, the keys in the JSON and the members that they show are one and the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/json/profile_json.h"
#include "output/model/columns.h"
#include "tests/unit/golden.h"
#include "tests/unit/replay.h"

#include <yyjson.h>

DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < column_count; i++) {
        assert_ptr_equal(column_find(columns[i].key), &columns[i]); /* no key twice */
        assert_true(*columns[i].title && *columns[i].group && *columns[i].help);
        assert_true(columns[i].width >= 0 && columns[i].width < 40);
    }
    assert_null(column_find("no such key"));
}

static void test_values(void **state)
{
    (void)state;
    struct line_stats stats = { .lineno = 7, .idle_s = 1.5, .end_function_line = 9 };
    assert_int_equal(*(const int64_t *)column_value(column_find("lineno"), &stats), 7);
    assert_float_equal(*(const double *)column_value(column_find("idle_s"), &stats), 1.5, 0);
    assert_true(column_is_used(column_find("idle_s"), &stats, 1));
    assert_false(column_is_used(column_find("cpu_kernel_s"), &stats, 1));
    assert_false(column_is_used(column_find("idle_s"), &stats, 0));
}

/* The keys of a record are those of the columns, but for the group it has not. */
static void check_keys(yyjson_val *record, const char *without)
{
    size_t expected = 0;
    assert_true(yyjson_is_obj(record));
    for (size_t i = 0; i < column_count; i++) {
        bool has = !without || strcmp(columns[i].group, without) != 0;
        if (has != (yyjson_obj_get(record, columns[i].key) != NULL))
            fail_msg("%s: %s", columns[i].key, has ? "missing" : "too much");
        expected += has;
    }
    assert_int_equal(yyjson_obj_size(record), expected);
}

static void test_json(void **state)
{
    (void)state;
    char path[1024];
    yyjson_read_err error;
    tests_path(path, sizeof path, "golden/profile/shop.json");
    CLEANUP(yyjson_doc_freep) yyjson_doc *doc = yyjson_read_file(path, 0, NULL, &error);
    assert_non_null(doc);
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *written = yyjson_obj_get(root, "columns");
    assert_int_equal(yyjson_arr_size(written), column_count);
    for (size_t i = 0; i < column_count; i++) {
        yyjson_val *row = yyjson_arr_get(written, i);
        assert_string_equal(yyjson_get_str(yyjson_obj_get(row, "key")), columns[i].key);
        assert_string_equal(yyjson_get_str(yyjson_obj_get(row, "kind")),
                            value_kind_name(columns[i].kind));
    }
    yyjson_val *file = yyjson_obj_get(yyjson_obj_get(root, "files"), "/srv/shop/main.py");
    check_keys(yyjson_arr_get(yyjson_obj_get(file, "lines"), 0), NULL);
    check_keys(yyjson_arr_get(yyjson_obj_get(file, "functions"), 0), "region");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
