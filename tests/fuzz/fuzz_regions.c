/* Any text: each line's regions contain it or are none, lie within the text, and are nested; names
 * and imports are there. */
#include "output/model/regions.h"
#include "output/model/source_text.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void must_contain(struct line_range range, size_t line, size_t line_count)
{
    must(range.first >= 1 && range.first <= line && line <= range.last && range.last <= line_count);
}

static void lines_check(const struct source_regions *regions)
{
    for (size_t i = 0; i < regions->line_count; i++) {
        const struct line_regions *line = &regions->lines[i];
        must_contain(line->region, i + 1, regions->line_count);
        must_contain(line->loop, i + 1, regions->line_count);
        if (line->function.first || line->function.last)
            must_contain(line->function, i + 1, regions->line_count);
    }
}

static void functions_check(const struct source_regions *regions)
{
    for (size_t i = 0; i < regions->function_count; i++) {
        const struct source_function *function = &regions->functions[i];
        size_t size = strlen(function->name), qualified = strlen(function->qualified_name);
        must(qualified >= size);
        must(strcmp(function->qualified_name + qualified - size, function->name) == 0);
        must_contain(function->lines, function->lines.first, regions->line_count);
        must(function->first_line >= 1 && function->first_line <= function->lines.first);
        must(!function->is_profiled || function->decorators.count > 0);
        for (size_t j = 0; j < function->decorators.count; j++)
            must(function->decorators.items[j] != NULL);
    }
    for (size_t i = 0; i < regions->import_count; i++) {
        must(strlen(regions->imports[i].text) > 0);
        must(regions->imports[i].line >= 1 && regions->imports[i].line <= regions->line_count);
    }
}

static void text_check(const char *text, size_t size)
{
    AUTO_REGIONS struct source_regions *regions = NULL;
    must(source_regions_new(text, size, &regions) == 0);
    lines_check(regions);
    functions_check(regions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = NULL;
    size_t text_size;
    text_check((const char *)data, size);
    must(source_text_new((const char *)data, size, &text, &text_size) >= 0);
    must(strlen(text) == text_size);
    text_check(text, text_size);
    return 0;
}
