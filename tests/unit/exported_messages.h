/* Exports that are messages of protobuf, unpacked. */
#pragma once

#include "tests/unit/exported.h"
#include <perfetto.pb-c.h>
#include <pprof.pb-c.h>

#include <zlib.h>

/* The caller frees the bytes. */
static inline uint8_t *unzipped(const char *bytes, size_t size, size_t *ret_size)
{
    size_t room = 1 << 16;
    uint8_t *plain = NULL;
    z_stream zip = { .next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (unsigned)size };
    assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
    int status = Z_OK;
    while (status == Z_OK) {
        room *= 2;
        plain = realloc(plain, room);
        assert_non_null(plain);
        zip.next_out = plain + zip.total_out;
        zip.avail_out = (unsigned)(room - zip.total_out);
        status = inflate(&zip, Z_NO_FLUSH);
    }
    assert_int_equal(status, Z_STREAM_END);
    assert_int_equal(zip.avail_in, 0);
    *ret_size = zip.total_out;
    inflateEnd(&zip);
    return plain;
}

static inline Pprof__Profile *exported_pprof(const struct report *report)
{
    size_t size = 0, plain_size = 0;
    AUTO_FREE char *bytes = exported_bytes("pprof", report, &size);
    AUTO_FREE uint8_t *plain = unzipped(bytes, size, &plain_size);
    Pprof__Profile *profile = pprof__profile__unpack(NULL, plain_size, plain);
    assert_non_null(profile);
    return profile;
}

static inline Perfetto__Trace *exported_perfetto(const struct report *report)
{
    size_t size = 0;
    AUTO_FREE char *bytes = exported_bytes("perfetto", report, &size);
    Perfetto__Trace *trace = perfetto__trace__unpack(NULL, size, (const uint8_t *)bytes);
    assert_non_null(trace);
    return trace;
}
