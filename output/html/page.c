#include "output/html/page.h"

#include "output/html/embedded.h"
#include "output/json/profile_json.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/utf8.h"

#include <errno.h>
#include <string.h>

const struct page_asset page_assets[] = {
    { "scalene-attach-page.css", page_css, sizeof page_css - 1, page_css_sha256 },
    { "scalene-attach-text.js", text_js, sizeof text_js - 1, text_js_sha256 },
    { "scalene-attach-profile.js", profile_js, sizeof profile_js - 1, profile_js_sha256 },
    { "scalene-attach-diff.js", diff_js, sizeof diff_js - 1, diff_js_sha256 },
};
const size_t page_asset_count = sizeof page_assets / sizeof *page_assets;

enum { ASSET_STYLE, ASSET_TEXT, ASSET_PROFILE, ASSET_DIFF };

struct page {
    FILE *into;
    enum page_assets assets;
    int script; /* beside that of all pages */
    const char *title, *json;
};

/* ---- what fills the frame's blanks ---- */

static void title_write(const struct page *page)
{
    for (const char *at = page->title; *at; at++) {
        if (strchr("&<>", *at) || (unsigned char)*at < 0x20)
            fprintf(page->into, "&#%d;", (unsigned char)*at < 0x20 ? ' ' : *at);
        else
            putc(*at, page->into);
    }
}

/*
 * In JSON these stand in strings alone, where an escape says the same: no "</script" and no "<!--"
 * is left, nor what some readers take for the end of a line.
 */
static void data_write(const struct page *page)
{
    for (const char *at = page->json; *at;) {
        size_t plain = strcspn(at, "&<>\xE2");
        fwrite(at, 1, plain, page->into);
        at += plain;
        if (strncmp(at, "\xE2\x80\xA8", 3) == 0 || strncmp(at, "\xE2\x80\xA9", 3) == 0) {
            fprintf(page->into, "\\u20%02x", (unsigned char)at[2] - 0x80);
            at += 3;
        } else if (*at == '\xE2') {
            putc(*at++, page->into);
        } else if (*at) {
            fprintf(page->into, "\\u%04x", *at++);
        }
    }
}

/* Inline, only what has these very hashes; beside, only what lies in the page's folder. */
static void policy_write(const struct page *page)
{
    if (page->assets == PAGE_BESIDE)
        fputs("style-src 'self' file:; script-src 'self' file:", page->into);
    else
        fprintf(page->into, "style-src 'sha256-%s'; script-src 'sha256-%s' 'sha256-%s'",
                page_assets[ASSET_STYLE].sha256, page_assets[ASSET_TEXT].sha256,
                page_assets[page->script].sha256);
}

static void style_write(const struct page *page)
{
    const struct page_asset *style = &page_assets[ASSET_STYLE];
    if (page->assets == PAGE_BESIDE)
        fprintf(page->into, "<link rel=\"stylesheet\" href=\"%s\">", style->name);
    else
        fprintf(page->into, "<style>%s</style>", style->text);
}

static void script_write(const struct page *page)
{
    const int scripts[] = { ASSET_TEXT, page->script };
    for (size_t i = 0; i < 2; i++) {
        const struct page_asset *script = &page_assets[scripts[i]];
        if (page->assets == PAGE_BESIDE)
            fprintf(page->into, "<script src=\"%s\"></script>", script->name);
        else
            fprintf(page->into, "<script>%s</script>", script->text);
    }
}

static const struct blank {
    const char *name;
    void (*write)(const struct page *page);
} blanks[] = {
    { "{{policy}}", policy_write }, { "{{title}}", title_write },   { "{{style}}", style_write },
    { "{{data}}", data_write },     { "{{script}}", script_write },
};

static const struct blank *blank_at(const char *text)
{
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++)
        if (strncmp(text, blanks[i].name, strlen(blanks[i].name)) == 0)
            return &blanks[i];
    return NULL;
}

static int page_write(const struct page *page)
{
    for (const char *at = page_html; *at;) {
        const struct blank *blank = blank_at(at);
        if (blank)
            blank->write(page);
        else
            putc(*at, page->into);
        at += blank ? strlen(blank->name) : 1;
    }
    return ferror(page->into) ? -EIO : 0;
}

/* ---- pages ---- */

/* The JSON's text, which the caller frees; what wrote it may have failed. */
static int json_end(FILE *into, int error)
{
    return fclose(into) && !error ? -ENOMEM : error;
}

int page_write_profile(const struct report *report, enum page_assets assets, FILE *into)
{
    AUTO_FREE char *json = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&json, &size);
    int error = text ? json_end(text, profile_json_write(report, text)) : -ENOMEM;
    const char *program = report->program && *report->program ? report->program : "profile";
    AUTO_FREE char *title = utf8_repair(program);
    if (error || !title)
        return error ? error : -ENOMEM;
    return page_write(&(struct page){ into, assets, ASSET_PROFILE, title, json });
}

int page_write_diff(const struct comparison *comparison, const struct diff_json_settings *settings,
                    enum page_assets assets, FILE *into)
{
    AUTO_FREE char *json = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&json, &size);
    int error = text ? json_end(text, diff_json_write(comparison, settings, text)) : -ENOMEM;
    if (error)
        return error;
    return page_write(&(struct page){ into, assets, ASSET_DIFF, "two profiles", json });
}

int page_write_beside(const struct report *report, FILE *into)
{
    return page_write_profile(report, PAGE_BESIDE, into);
}

int page_write_standalone(const struct report *report, FILE *into)
{
    return page_write_profile(report, PAGE_INLINE, into);
}
