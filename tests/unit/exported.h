/* Reports for the tests of exports, and what a format makes of them. */
#pragma once

#include "output/json/profile_json.h"
#include "sampler/app/formats.h"
#include "tests/unit/replay.h"

static inline struct report *exported_report(const char *name)
{
    char path[128], stream[160];
    snprintf(path, sizeof path, "/srv/%s", strcmp(name, "memory") == 0 ? "cache" : name);
    snprintf(stream, sizeof stream, "streams/%s.stream", name);
    struct profile_settings settings = replay_settings(path);
    settings.memory = settings.leak_detector = strcmp(name, "memory") == 0;
    settings.allocation_window = 524287;
    return replay_report(stream, &settings);
}

/* The caller frees the bytes. */
static inline char *exported_bytes(const char *format, const struct report *report,
                                   size_t *ret_size)
{
    const struct table_settings table = { .width = 80, .malloc_threshold = 100 };
    char *bytes = NULL;
    FILE *into = open_memstream(&bytes, ret_size);
    assert_non_null(into);
    assert_non_null(format_find(format));
    assert_int_equal(format_write(format_find(format), report, &table, into), 0);
    assert_int_equal(fclose(into), 0);
    return bytes;
}

/* As a saved profile would tell it. */
static inline struct report *exported_again(const struct report *report)
{
    struct report *again = NULL;
    struct failure why = { 0 };
    size_t size = 0;
    AUTO_FREE char *text = exported_bytes("json", report, &size);
    if (profile_json_read(text, size, "p.json", "1.2.3", &again, &why))
        fail_msg("%s", why.text);
    return again;
}
