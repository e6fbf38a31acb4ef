/* What was found in a source, as text: a line for each line, each function, each import. */
#pragma once

#include "output/model/regions.h"

static inline void regions_write(FILE *file, const struct source_regions *regions)
{
    for (size_t i = 0; i < regions->line_count; i++) {
        const struct line_regions *line = &regions->lines[i];
        fprintf(file, "line %zu: region %u-%u loop %u-%u function %u-%u\n", i + 1,
                line->region.first, line->region.last, line->loop.first, line->loop.last,
                line->function.first, line->function.last);
    }
    for (size_t i = 0; i < regions->function_count; i++) {
        const struct source_function *function = &regions->functions[i];
        fprintf(file, "%s %s: from %u, %u-%u", function->is_coroutine ? "async def" : "def",
                function->qualified_name, function->first_line, function->lines.first,
                function->lines.last);
        for (size_t j = 0; j < function->decorators.count; j++)
            fprintf(file, " @%s", function->decorators.items[j]);
        fputs("\n", file);
    }
    for (size_t i = 0; i < regions->import_count; i++)
        fprintf(file, "line %u: %s\n", regions->imports[i].line, regions->imports[i].text);
}
