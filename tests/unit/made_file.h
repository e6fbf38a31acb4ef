/* A file of a profile made from source text: its lines, regions and functions as a profile has
 * them, and seconds where a test puts them. */
#pragma once

#include "output/model/regions.h"
#include "output/model/report.h"

#include <string.h>

enum { MADE_LINES_MAX = 4096, MADE_FUNCTIONS_MAX = 16 };

struct made_file {
    char bytes[65536];
    struct line_stats lines[MADE_LINES_MAX], functions[MADE_FUNCTIONS_MAX];
    struct line_range ranges[MADE_FUNCTIONS_MAX]; /* of the functions */
    char names[MADE_FUNCTIONS_MAX][64];
    struct report_file file;
};

static inline void made_regions_set(struct made_file *made, const char *text)
{
    AUTO_REGIONS struct source_regions *regions = NULL;
    assert_int_equal(source_regions_new(text, strlen(text), &regions), 0);
    assert_int_equal(regions->line_count, made->file.lines.count);
    assert_true(regions->function_count <= MADE_FUNCTIONS_MAX);
    for (size_t i = 0; i < regions->line_count; i++) {
        made->lines[i].start_function_line = regions->lines[i].function.first;
        made->lines[i].end_function_line = regions->lines[i].function.last;
    }
    for (size_t i = 0; i < regions->function_count; i++) {
        snprintf(made->names[i], sizeof made->names[i], "%s", regions->functions[i].qualified_name);
        made->functions[i].line = made->names[i];
        made->functions[i].lineno = regions->functions[i].first_line;
        made->ranges[i] = regions->functions[i].lines;
    }
    made->file.functions.count = regions->function_count;
}

/* Lines of `text`, which end with \n; the profile's have theirs left out. */
static inline struct made_file *made_file_new(const char *path, const char *text)
{
    struct made_file *made = calloc(1, sizeof *made);
    char *next = NULL;
    assert_true(made && strlen(text) < sizeof made->bytes);
    strcpy(made->bytes, text);
    made->file = (struct report_file){ .path = path };
    made->file.lines.items = made->lines;
    made->file.functions.items = made->functions;
    for (char *at = made->bytes; *at; at = next) {
        size_t number = made->file.lines.count++;
        next = strchr(at, '\n');
        assert_true(next && number < MADE_LINES_MAX);
        *next++ = '\0';
        made->lines[number].line = at;
        made->lines[number].lineno = (int64_t)number + 1;
    }
    made_regions_set(made, text);
    return made;
}

/* Seconds of Python for the line, and for each function around it. */
static inline void made_file_spend(struct made_file *made, size_t lineno, double seconds)
{
    made->lines[lineno - 1].cpu_python_s += seconds;
    for (size_t i = 0; i < made->file.functions.count; i++)
        if (made->ranges[i].first <= lineno && lineno <= made->ranges[i].last)
            made->functions[i].cpu_python_s += seconds;
}
