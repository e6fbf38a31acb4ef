/* Any two texts as profiles, merged and compared: neither harms, sums stay sums, and what is merged
 * reads as a profile again. The two are parted by a byte of zero; without one it is both. */
#include "output/cli/diff_table.h"
#include "output/html/page.h"
#include "output/json/profile_json.h"
#include "output/model/merge.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

DEFINE_CLEANUP(struct report *, report_free)
DEFINE_CLEANUP(struct comparison *, comparison_free)

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_merge(const struct report *const *parts)
{
    CLEANUP(report_freep) struct report *merged = NULL, *again = NULL;
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    struct failure why = { 0 };
    must(report_merge(parts, 2, "1.0", &merged) == 0);
    must(merged->processes.count == parts[0]->processes.count + parts[1]->processes.count);
    must(merged->threads.count == parts[0]->threads.count + parts[1]->threads.count);
    FILE *into = open_memstream(&text, &size);
    must(into && profile_json_write(merged, into) == 0 && fclose(into) == 0);
    must(profile_json_read(text, size, "p.json", "1.0", &again, &why) == 0);
}

static void check_diff(const struct report *const *parts)
{
    CLEANUP(comparison_freep) struct comparison *comparison = NULL;
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    const struct diff_settings settings = { 80, false, 10, "old", "new" };
    const struct diff_json_settings json = { "1.0", "old", "new", 0 };
    must(comparison_new(parts[0], parts[1], &comparison) == 0);
    FILE *into = open_memstream(&text, &size);
    must(into && diff_table_write(into, comparison, &settings) == 0);
    must(page_write_diff(comparison, &json, PAGE_INLINE, into) == 0 && fclose(into) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(report_freep) struct report *first = NULL, *second = NULL;
    const uint8_t *end = memchr(data, '\0', size);
    const char *texts[2] = { (const char *)data, end ? (const char *)end + 1 : (const char *)data };
    size_t sizes[2] = { end ? (size_t)(end - data) : size,
                        end ? size - (size_t)(end + 1 - data) : size };
    if (profile_json_read(texts[0], sizes[0], "a.json", "1.0", &first, NULL) ||
        profile_json_read(texts[1], sizes[1], "b.json", "1.0", &second, NULL))
        return 0;
    check_merge((const struct report *const[]){ first, second });
    check_diff((const struct report *const[]){ first, second });
    return 0;
}
