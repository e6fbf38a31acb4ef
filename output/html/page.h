/*
 * A profile, or two side by side, as a page that a browser opens from its file: the data as JSON in
 * it, and a script that draws. Nothing is loaded from elsewhere, and nothing of a profile is ever
 * taken for a part of the page: the browser is told to run our own script alone.
 */
#pragma once

#include "output/compare/comparison.h"
#include "output/json/diff_json.h"

#include <stdio.h>

/* Style and script in the page, or in files of their own beside it, which pages share. */
enum page_assets { PAGE_INLINE, PAGE_BESIDE };

/* 0, -ENOMEM, or -EIO (ferror tells). */
int page_write_profile(const struct report *report, enum page_assets assets, FILE *into);
int page_write_diff(const struct comparison *comparison, const struct diff_json_settings *settings,
                    enum page_assets assets, FILE *into);

/* The two ways for a table of formats. */
int page_write_beside(const struct report *report, FILE *into);
int page_write_standalone(const struct report *report, FILE *into);

/* What stands beside pages: a file's name and its text. */
struct page_asset {
    const char *name, *text;
    size_t size;
    const char *sha256; /* in base64 */
};

extern const struct page_asset page_assets[];
extern const size_t page_asset_count;
