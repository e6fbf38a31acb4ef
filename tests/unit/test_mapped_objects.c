/* Which mapped objects are looked at, in which order, and what their names say. */
#include "sampler/base/cleanup.h"
#include "symbols/mapped_objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void test_version_of_path(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t version;
    } rows[] = {
        { "/usr/lib/libpython3.8.so.1.0", 0x03080000 },
        { "/usr/lib/libpython3.13t.so.1.0", 0x030d0000 },
        { "/usr/lib/libpython2.7.so.1.0", 0x02070000 },
        { "/usr/lib/libpython3.6m.so.1.0", 0x03060000 },
        { "/usr/bin/python3.15", 0x030f0000 },
        { "/opt/python3.8/bin/python3.9", 0x03090000 },
        { "/x/_json.cpython-311-x86_64-linux-gnu.so", 0x030b0000 },
        { "/x/_json.cpython-38-x86_64-linux-gnu.so", 0x03080000 },
        { "/uv/cpython-3.12.4-linux-x86_64-gnu/bin/app", 0x030c0000 },
        { "/usr/lib/python3.10/lib-dynload/x.so", 0x030a0000 },
        { "/opt/python3.8/bin/python3", 0x03080000 },
        { "/usr/bin/python3", 0 },
        { "/usr/bin/python", 0 },
        { "/usr/lib/libpython3.so", 0 },
        { "/usr/bin/python4.0", 0 },
        { "/usr/bin/perl5.36", 0 },
        { "python-", 0 },
        { "", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(version_of_path(rows[i].path), rows[i].version);
}

static long list_objects(const char *text, struct maps *maps, struct mapped_object **ret)
{
    assert_int_equal(maps_parse(text, strlen(text), maps), 0);
    return mapped_objects_list(maps, "/bin/host", ret);
}

static void test_order(void **state)
{
    (void)state;
    static const char *const wanted[] = { "/lib/libpython3.8.so", "/bin/host", "/lib/MyPython.so",
                                          "/lib/a.so", "/lib/_x.cpython-38.so" };
    CLEANUP(maps_done) struct maps maps = { 0 };
    AUTO_FREE struct mapped_object *objects = NULL;
    long count = list_objects("01000-02000 rwxp 0 fe:00 1 /lib/a.so\n"
                              "02000-03000 rwxp 0 fe:00 2 /lib/_x.cpython-38.so\n"
                              "03000-04000 rwxp 0 fe:00 3 /bin/host\n"
                              "04000-05000 rwxp 0 fe:00 4 /lib/MyPython.so\n"
                              "05000-06000 rwxp 0 fe:00 5 /lib/libpython3.8.so\n",
                              &maps, &objects);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(objects[i].mappings->path, wanted[i]);
    assert_int_equal(version_of_maps(&maps), 0x03080000);
}

/* Mapped data, fonts and archives are not worth opening. */
static void test_what_cannot_hold_a_runtime(void **state)
{
    (void)state;
    CLEANUP(maps_done) struct maps maps = { 0 };
    AUTO_FREE struct mapped_object *objects = NULL;
    long count = list_objects("01000-02000 r-xp 0 fe:00 1 /lib/constant.so\n"
                              "02000-03000 rw-p 0 fe:00 2 /var/lib/data.db\n"
                              "03000-04000 rw-p 0 00:00 0 \n"
                              "04000-05000 rwxp 0 00:00 0 [heap]\n",
                              &maps, &objects);
    assert_int_equal(count, 0);
}

static void test_bss_belongs_to_its_object(void **state)
{
    (void)state;
    CLEANUP(maps_done) struct maps maps = { 0 };
    AUTO_FREE struct mapped_object *objects = NULL;
    long count = list_objects("01000-02000 r-xp 00000 fe:00 1 /bin/host\n"
                              "02000-03000 rw-p 01000 fe:00 1 /bin/host\n"
                              "03000-04000 rw-p 00000 00:00 0 \n"
                              "05000-06000 rw-p 00000 00:00 0 \n"
                              "07000-08000 r-xp 00000 fe:00 2 /lib/a.so\n"
                              "08000-09000 r--p 01000 fe:00 2 /lib/a.so\n"
                              "09000-0a000 rw-p 00000 00:00 0 \n"
                              "0a000-0b000 rw-p 02000 fe:00 2 /lib/a.so\n"
                              "0b000-0c000 rw-p 00000 00:00 0 [heap]\n",
                              &maps, &objects);
    assert_int_equal(count, 2);
    assert_int_equal(objects[0].count, 3);
    assert_int_equal(objects[1].count, 4);
}

static void test_mapped_twice_is_two_objects(void **state)
{
    (void)state;
    CLEANUP(maps_done) struct maps maps = { 0 };
    AUTO_FREE struct mapped_object *objects = NULL;
    long count = list_objects("01000-02000 r-xp 00000 fe:00 1 /bin/host\n"
                              "02000-03000 rw-p 01000 fe:00 1 /bin/host\n"
                              "03000-04000 r-xp 00000 fe:00 1 /bin/host\n"
                              "04000-05000 rw-p 01000 fe:00 1 /bin/host\n",
                              &maps, &objects);
    assert_int_equal(count, 2);
    assert_int_equal(objects[0].mappings->start, 0x1000);
    assert_int_equal(objects[1].mappings->start, 0x3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_of_path),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_what_cannot_hold_a_runtime),
        cmocka_unit_test(test_bss_belongs_to_its_object),
        cmocka_unit_test(test_mapped_twice_is_two_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
