/* A report's table as text, and what must hold for one of any width. */
#pragma once

#include "output/cli/profile_table.h"
#include "output/cli/screen_text.h"
#include "sampler/base/cleanup.h"

#include <string.h>

static inline char *table_text(const struct report *report, const struct table_settings *settings)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(profile_table_write(out, report, settings), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Every line goes into the width, says nothing to the terminal, and ends with no space. */
static inline void assert_fit(const char *text, size_t width)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        AUTO_FREE char *line = strndup(text, length);
        char shown[16384];
        assert_true(screen_text(line, shown, sizeof shown) <= width);
        assert_string_equal(line, shown);
        assert_true(length == 0 || line[length - 1] != ' ');
        text += length + 1;
    }
}
