#include "sampler/app/page_file.h"

#include "output/html/page.h"
#include "sampler/app/report_load.h"
#include "sampler/app/save.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int page_file_name(const char *profile, const char *suffix, char *into)
{
    static const char extension[] = ".json";
    struct stat stat_buffer;
    bool is_plain = profile && stat(profile, &stat_buffer) == 0 && S_ISREG(stat_buffer.st_mode);
    const char *name = is_plain ? profile : VIEW_USUAL_FILE;
    size_t length = strlen(name), end = strlen(extension);
    if (length > end && strcmp(name + length - end, extension) == 0)
        length -= end;
    int wanted = snprintf(into, SAVE_PATH_SIZE, "%.*s%s.html", (int)length, name, suffix);
    return wanted < SAVE_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

int page_file_assets(const char *page, struct failure *why)
{
    const char *slash = strrchr(page, '/');
    int folder = slash ? (int)(slash + 1 - page) : 0, error = 0;
    for (size_t i = 0; i < page_asset_count && !error; i++) {
        const struct page_asset *asset = &page_assets[i];
        char path[SAVE_PATH_SIZE], went_to[SAVE_PATH_SIZE];
        int length = snprintf(path, sizeof path, "%.*s%s", folder, page, asset->name);
        if (length >= SAVE_PATH_SIZE)
            return failure_set(why, -ENAMETOOLONG, "the name of the page's folder is too long");
        struct failure trouble = { 0 };
        error = save_text(path, asset->text, asset->size, went_to, &trouble) ?: trouble.code;
        if (error)
            *why = trouble;
    }
    return error;
}
