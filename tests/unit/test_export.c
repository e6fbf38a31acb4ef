/* Every export of recorded streams: its exact text, the same from a run and from its saved profile,
 * and nothing of a stack lost on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/exported_messages.h"
#include "tests/unit/golden.h"
#include "tests/unit/message_text.h"

static const char *const streams[] = { "shop", "memory", "marked" };
enum { STREAMS = sizeof streams / sizeof *streams };

static void test_run_and_saved_profile(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        AUTO_REPORT struct report *report = exported_report(streams[i]);
        AUTO_REPORT struct report *again = exported_again(report);
        for (size_t n = 0; n < format_count; n++) {
            size_t size = 0, saved_size = 0;
            AUTO_FREE char *bytes = exported_bytes(formats[n].name, report, &size);
            AUTO_FREE char *saved = exported_bytes(formats[n].name, again, &saved_size);
            assert_true(size > 0);
            if (size != saved_size || memcmp(bytes, saved, size) != 0)
                fail_msg("%s of %s is another one after saving", formats[n].name, streams[i]);
        }
    }
}

static void check_golden(const char *stream, const char *format, const char *extension)
{
    char golden[160];
    size_t size = 0;
    AUTO_REPORT struct report *report = exported_report(stream);
    AUTO_FREE char *bytes = exported_bytes(format, report, &size);
    assert_int_equal(strlen(bytes), size);
    snprintf(golden, sizeof golden, "export/%s%s", stream, extension);
    assert_golden(golden, bytes);
}

static void test_text_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        check_golden(streams[i], "collapsed", ".collapsed");
        check_golden(streams[i], "gecko", ".gecko.json");
        check_golden(streams[i], "speedscope", ".speedscope.json");
    }
}

static void check_message(const char *stream, const char *format, const ProtobufCMessage *message)
{
    char golden[160];
    AUTO_FREE char *text = message_text(message);
    snprintf(golden, sizeof golden, "export/%s.%s.txt", stream, format);
    assert_golden(golden, text);
}

static void test_message_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        AUTO_REPORT struct report *report = exported_report(streams[i]);
        Pprof__Profile *profile = exported_pprof(report);
        check_message(streams[i], "pprof", &profile->base);
        pprof__profile__free_unpacked(profile, NULL);
        Perfetto__Trace *trace = exported_perfetto(report);
        check_message(streams[i], "perfetto", &trace->base);
        perfetto__trace__free_unpacked(trace, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_and_saved_profile),
        cmocka_unit_test(test_text_goldens),
        cmocka_unit_test(test_message_goldens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
