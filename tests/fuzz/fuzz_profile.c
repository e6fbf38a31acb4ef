/* Any text as a profile: refused with a sentence, or read and written so that it reads the same
 * again. */
#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)

static void must(bool condition)
{
    if (!condition)
        abort();
}

static char *write_text(const struct report *report, size_t *ret_size)
{
    char *text = NULL;
    FILE *into = open_memstream(&text, ret_size);
    must(into && profile_json_write(report, into) == 0);
    must(fclose(into) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(report_freep) struct report *report = NULL, *again = NULL;
    AUTO_FREE char *first = NULL, *second = NULL;
    struct failure why = { 0 };
    size_t length = 0, second_length = 0;
    int error = profile_json_read((const char *)data, size, "p.json", "1.0", &report, &why);
    must(error ? error == why.code && *why.text && !report : !*why.text);
    if (error)
        return 0;
    first = write_text(report, &length);
    error = profile_json_read(first, length, "p.json", "1.0", &again, &why);
    must(error == 0);
    second = write_text(again, &second_length);
    must(length == second_length && memcmp(first, second, length) == 0);
    return 0;
}
