#include "output/model/file_match.h"

#include "output/model/key_index.h"
#include "output/model/line_text.h"

#include <errno.h>
#include <string.h>

/* ---- by content: a line that one file alone has votes for it ---- */

struct finder {
    const struct file_list *old_files, *new_files;
    bool *is_taken;         /* of each new file */
    struct key_index lines; /* telling lines of new files, */
    uint32_t *owners;       /* and by number the file that has it alone, or FILE_NONE */
    size_t owner_room;
    uint32_t *votes; /* for each new file */
};

static void finder_done(struct finder *finder)
{
    free(finder->is_taken);
    key_index_done(&finder->lines);
    free(finder->owners);
    free(finder->votes);
}

static int line_own(struct finder *finder, const char *text, uint32_t file)
{
    size_t known = finder->lines.count;
    int64_t number = key_index_add(&finder->lines, line_text_key(text));
    if (number < 0)
        return (int)number;
    if (finder->lines.room > finder->owner_room) {
        uint32_t *owners = realloc(finder->owners, finder->lines.room * sizeof *owners);
        if (!owners)
            return -ENOMEM;
        finder->owners = owners;
        finder->owner_room = finder->lines.room;
    }
    if ((size_t)number == known)
        finder->owners[number] = file;
    else if (finder->owners[number] != file)
        finder->owners[number] = FILE_NONE;
    return 0;
}

static int lines_own(struct finder *finder)
{
    for (size_t i = 0; i < finder->new_files->count; i++) {
        const struct report_file *file = finder->new_files->items[i];
        for (size_t n = 0; n < file->lines.count; n++) {
            const char *text = file->lines.items[n].line;
            int error = line_is_telling(text) ? line_own(finder, text, (uint32_t)i) : 0;
            if (error)
                return error;
        }
    }
    return 0;
}

/* Who got half of the votes that could be given, or more. */
static uint32_t file_elect(struct finder *finder, const struct report_file *file)
{
    uint32_t best = FILE_NONE;
    size_t voters = 0;
    memset(finder->votes, 0, finder->new_files->count * sizeof *finder->votes);
    for (size_t i = 0; i < file->lines.count; i++) {
        const char *text = file->lines.items[i].line;
        int64_t number =
            line_is_telling(text) ? key_index_find(&finder->lines, line_text_key(text)) : -EINVAL;
        uint32_t owner = number < 0 ? FILE_NONE : finder->owners[number];
        voters += number == -ENOENT || owner != FILE_NONE;
        if (owner == FILE_NONE || finder->is_taken[owner])
            continue;
        finder->votes[owner]++;
        if (best == FILE_NONE || finder->votes[owner] > finder->votes[best])
            best = owner;
    }
    return best != FILE_NONE && 2 * (size_t)finder->votes[best] >= voters ? best : FILE_NONE;
}

int files_match(const struct file_list *old_files, const struct file_list *new_files,
                uint32_t *ret_new_of_old)
{
    CLEANUP(finder_done)
    struct finder finder = {
        .old_files = old_files,
        .new_files = new_files,
        .is_taken = calloc(new_files->count + 1, sizeof(bool)),
        .votes = calloc(new_files->count + 1, sizeof(uint32_t)),
    };
    if (!finder.is_taken || !finder.votes)
        return -ENOMEM;
    int error = lines_own(&finder);
    for (size_t i = 0; i < old_files->count && !error; i++) {
        uint32_t found = file_elect(&finder, old_files->items[i]);
        ret_new_of_old[i] = found;
        if (found != FILE_NONE)
            finder.is_taken[found] = true;
    }
    return error;
}

/* ---- by path: a profile has them in order, but a strange one may not ---- */

struct named {
    const char *path;
    uint32_t number;
};

static int named_is_later(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->path, right->path);
    return order ? order : (left->number > right->number) - (left->number < right->number);
}

static struct named *named_new(const struct report *report)
{
    struct named *named = calloc(report->files.count + 1, sizeof *named);
    for (size_t i = 0; i < report->files.count && named; i++)
        named[i] = (struct named){ report->files.items[i].path, (uint32_t)i };
    if (named)
        qsort(named, report->files.count, sizeof *named, named_is_later);
    return named;
}

static int paths_match(const struct report *old_report, const struct report *new_report,
                       uint32_t *new_of_old)
{
    AUTO_FREE struct named *old_names = named_new(old_report);
    AUTO_FREE struct named *new_names = named_new(new_report);
    size_t i = 0, j = 0;
    if (!old_names || !new_names)
        return -ENOMEM;
    while (i < old_report->files.count && j < new_report->files.count) {
        int order = strcmp(old_names[i].path, new_names[j].path);
        if (order == 0)
            new_of_old[old_names[i].number] = new_names[j].number;
        i += order <= 0;
        j += order >= 0;
    }
    return 0;
}

/* ---- the whole ---- */

/* Those of a report that have found no other; the list's own memory is the caller's. */
static int files_left(const struct report *report, const bool *is_taken, struct file_list *ret)
{
    const struct report_file **items = calloc(report->files.count + 1, sizeof *items);
    *ret = (struct file_list){ items, 0 };
    for (size_t i = 0; i < report->files.count && items; i++)
        if (!is_taken[i])
            items[ret->count++] = &report->files.items[i];
    return items ? 0 : -ENOMEM;
}

static int contents_match(const struct report *old_report, const struct report *new_report,
                          uint32_t *new_of_old)
{
    struct file_list old_left = { 0 }, new_left = { 0 };
    AUTO_FREE bool *old_taken = calloc(old_report->files.count + 1, sizeof *old_taken);
    AUTO_FREE bool *new_taken = calloc(new_report->files.count + 1, sizeof *new_taken);
    AUTO_FREE uint32_t *found = calloc(old_report->files.count + 1, sizeof *found);
    if (!old_taken || !new_taken || !found)
        return -ENOMEM;
    for (size_t i = 0; i < old_report->files.count; i++)
        if (new_of_old[i] != FILE_NONE)
            old_taken[i] = new_taken[new_of_old[i]] = true;
    int error = files_left(old_report, old_taken, &old_left);
    if (!error)
        error = files_left(new_report, new_taken, &new_left);
    if (!error)
        error = files_match(&old_left, &new_left, found);
    for (size_t i = 0; i < old_left.count && !error; i++)
        if (found[i] != FILE_NONE)
            new_of_old[old_left.items[i] - old_report->files.items] =
                (uint32_t)(new_left.items[found[i]] - new_report->files.items);
    free(old_left.items);
    free(new_left.items);
    return error;
}

static int pairs_write(const struct report *old_report, const struct report *new_report,
                       const uint32_t *new_of_old, struct file_pairs *ret)
{
    size_t old_count = old_report->files.count, count = new_report->files.count;
    struct file_pair *items = calloc(old_count + count + 1, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        items[i].new_file = &new_report->files.items[i];
    for (size_t i = 0; i < old_count; i++) {
        uint32_t found = new_of_old[i];
        items[found == FILE_NONE ? count++ : found].old_file = &old_report->files.items[i];
    }
    *ret = (struct file_pairs){ items, count };
    return 0;
}

int file_pairs_init(struct file_pairs *pairs, const struct report *old_report,
                    const struct report *new_report)
{
    size_t size = (old_report->files.count + 1) * sizeof(uint32_t);
    AUTO_FREE uint32_t *new_of_old = malloc(size);
    if (!new_of_old)
        return -ENOMEM;
    memset(new_of_old, 0xFF, size);
    int error = paths_match(old_report, new_report, new_of_old);
    if (!error)
        error = contents_match(old_report, new_report, new_of_old);
    return error ? error : pairs_write(old_report, new_report, new_of_old, pairs);
}

void file_pairs_done(struct file_pairs *pairs)
{
    free(pairs->items);
    *pairs = (struct file_pairs){ 0 };
}
