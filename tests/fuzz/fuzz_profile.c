/* Any text as a profile: refused with a sentence, or read and written so that it reads the same
 * again, and written in every format there is. */
#include "output/json/profile_json.h"
#include "sampler/app/formats.h"
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

/* From both readings the same bytes. */
static void formats_write(const struct report *report, const struct report *again)
{
    const struct table_settings table = { .width = 80 };
    for (size_t i = 0; i < format_count; i++) {
        const struct report *const reports[] = { report, again };
        AUTO_FREE char *first = NULL, *second = NULL;
        char **const texts[] = { &first, &second };
        size_t sizes[2];
        for (size_t n = 0; n < 2; n++) {
            FILE *into = open_memstream(texts[n], &sizes[n]);
            must(into && format_write(&formats[i], reports[n], &table, into) == 0);
            must(fclose(into) == 0);
        }
        must(sizes[0] == sizes[1] && memcmp(first, second, sizes[0]) == 0);
    }
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
    formats_write(report, again);
    return 0;
}
