/* Members of whole archives; archives that are cut off, that lie, and that are none. */
#define _GNU_SOURCE 1 /* memfd_create */
#include "sampler/app/zip_member.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "tests/unit/zip_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/mman.h>

#define LIMIT ((size_t)1 << 20)

/* The member as text, or NULL with `*ret_error` set. */
static char *member_of(const uint8_t *bytes, size_t size, const char *name, int *ret_error)
{
    AUTO_CLOSE int fd = memfd_create("zip", MFD_CLOEXEC);
    AUTO_FREE char *member = NULL;
    size_t member_size = 0;
    assert_int_equal(write(fd, bytes, size), size);
    *ret_error = zip_member_read(fd, name, LIMIT, &member, &member_size);
    if (*ret_error)
        assert_null(member);
    return member ? strndup(member, member_size) : NULL;
}

static void assert_member(const struct zip_image *zip, const char *name, const char *want)
{
    int error;
    AUTO_FREE char *got = member_of(zip->bytes, zip->size, name, &error);
    assert_int_equal(error, 0);
    assert_string_equal(got, want);
}

static void assert_error(const struct zip_image *zip, const char *name, int want)
{
    int error;
    assert_null(member_of(zip->bytes, zip->size, name, &error));
    assert_int_equal(error, want);
}

static void zip_fill(struct zip_image *zip, const char *front, const char *comment)
{
    zip_image_begin(zip, front);
    zip_image_add(zip, "__main__.py", "import pkg.mod\n", 0);
    zip_image_add(zip, "pkg/__init__.py", "", 1);
    zip_image_add(zip, "pkg/mod.py", "x = 1\nx = 1\nx = 1\nx = 1\nx = 1\n", 1);
    zip_image_end(zip, comment);
}

static void test_whole(void **state)
{
    static const char *const FRONTS[] = { "", "#!/usr/bin/env python3\n", "PK\5\6PK\1\2" };
    static const char *const COMMENTS[] = { "", "said of it", "PK\5\6 is no end" };
    static struct zip_image zip;
    (void)state;
    for (int i = 0; i < 9; i++) {
        zip_fill(&zip, FRONTS[i / 3], COMMENTS[i % 3]);
        assert_member(&zip, "__main__.py", "import pkg.mod\n");
        assert_member(&zip, "pkg/__init__.py", "");
        assert_member(&zip, "pkg/mod.py", "x = 1\nx = 1\nx = 1\nx = 1\nx = 1\n");
        assert_error(&zip, "pkg/other.py", -ENOENT);
        assert_error(&zip, "pkg", -ENOENT);
        assert_error(&zip, "", -ENOENT);
    }
}

static void test_none(void **state)
{
    static struct zip_image zip;
    (void)state;
    zip_image_begin(&zip, "");
    assert_error(&zip, "a", -EBADMSG); /* an empty file */
    zip_image_begin(&zip, "import sys\n");
    assert_error(&zip, "a", -EBADMSG);
    zip_image_begin(&zip, "");
    zip_image_end(&zip, "");
    assert_error(&zip, "a", -ENOENT);
}

/* No part of an archive is one. */
static void test_cut_off(void **state)
{
    static struct zip_image zip;
    int error;
    (void)state;
    zip_fill(&zip, "", "");
    for (size_t size = 0; size < zip.size; size++) {
        assert_null(member_of(zip.bytes, size, "pkg/mod.py", &error));
        assert_int_equal(error, -EBADMSG);
    }
    for (size_t gone = 1; gone < zip.directory_at; gone++) { /* its offsets are in front of it */
        assert_null(member_of(zip.bytes + gone, zip.size - gone, "__main__.py", &error));
        assert_int_equal(error, -EBADMSG);
    }
}

/* Whatever byte is wrong: an error, or the same text (not all bytes matter). */
static void test_wrong_bytes(void **state)
{
    static struct zip_image zip;
    (void)state;
    zip_fill(&zip, "", "");
    for (size_t at = 0; at < zip.size; at++)
        for (int value = 0; value < 256; value += 15) {
            uint8_t right = zip.bytes[at];
            int error;
            zip.bytes[at] = (uint8_t)value;
            AUTO_FREE char *got = member_of(zip.bytes, zip.size, "pkg/mod.py", &error);
            zip.bytes[at] = right;
            if (got)
                assert_string_equal(got, "x = 1\nx = 1\nx = 1\nx = 1\nx = 1\n");
            else
                assert_true(error == -EBADMSG || error == -ENOENT || error == -ENOTSUP ||
                            error == -EFBIG);
        }
}

static void test_lies(void **state)
{
    static const struct {
        size_t at; /* in the first entry of the directory */
        uint32_t value;
        int size, error;
    } ROWS[] = {
        { 8, 1, 2, -ENOTSUP },           /* encrypted */
        { 10, 14, 2, -ENOTSUP },         /* LZMA */
        { 20, 0x7fffffff, 4, -EBADMSG }, /* packed size */
        { 24, LIMIT + 1, 4, -EFBIG },    /* size */
        { 24, LIMIT, 4, -EBADMSG },      /* and that of what is stored is another */
        { 24, UINT32_MAX, 4, -ENOTSUP }, /* zip64 */
        { 28, 0xffff, 2, -EBADMSG },     /* length of its name */
        { 42, 0xfffffff0, 4, -EBADMSG }, /* where it begins */
        { 16, 0, 4, -EBADMSG },          /* checksum */
    };
    static struct zip_image zip;
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        zip_fill(&zip, "", "");
        zip_put(zip.bytes + zip.directory_at + ROWS[i].at, ROWS[i].value, ROWS[i].size);
        assert_error(&zip, "__main__.py", ROWS[i].error);
    }
}

/* A small file that would fill the memory. */
static void test_bomb(void **state)
{
    static struct zip_image zip;
    AUTO_FREE char *zeros = malloc(LIMIT + 2);
    (void)state;
    memset(zeros, '0', LIMIT + 1);
    zeros[LIMIT + 1] = '\0';
    zip_image_begin(&zip, "");
    zip.size = 0;
    /* deflated as it is, then said to be smaller */
    AUTO_FREE uint8_t *packed = malloc(ZIP_ROOM / 2);
    z_stream stream = { .next_in = (Bytef *)zeros,
                        .avail_in = (uInt)LIMIT + 1,
                        .next_out = packed,
                        .avail_out = ZIP_ROOM / 2 };
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    AUTO_FREE char *text = calloc(1, stream.total_out + 1);
    memset(text, 'x', stream.total_out); /* takes the room of the packed bytes */
    zip_image_add(&zip, "bomb.py", text, 0);
    memcpy(zip.bytes + 30 + 7, packed, stream.total_out);
    zip_put(zip.directory + 10, 8, 2);
    zip_put(zip.directory + 24, 100, 4);
    zip_image_end(&zip, "");
    deflateEnd(&stream);
    assert_error(&zip, "bomb.py", -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_none),
        cmocka_unit_test(test_cut_off), cmocka_unit_test(test_wrong_bytes),
        cmocka_unit_test(test_lies),    cmocka_unit_test(test_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
