#include "output/model/merge_paths.h"

#include "output/model/array.h"
#include "output/model/file_match.h"
#include "output/model/line_homes.h"
#include "output/model/line_text.h"
#include "output/model/merge_build.h"

#include <stdio.h>
#include <string.h>

/* Versions of one path. */
struct merge_place {
    const char *path;
    const struct report_file *newest;
    uint32_t leader; /* the place with which it is one file, which may be itself; or FILE_NONE */
    uint64_t *own;   /* a bit for each part that has the path, */
    uint64_t *all;   /* and of a leader for each that has the file */
};

/* Files to be matched, and of each the place. */
struct candidates {
    struct file_list files;
    uint32_t *places;
};

/* A folder, and the one whose paths are kept instead; both end with a slash. */
struct root {
    const char *from, *to; /* and more behind it */
    size_t from_length, to_length;
};

struct finder {
    const struct merge_part *parts;
    size_t part_count, words; /* of a set of parts */
    struct merge_paths *paths;
    struct merge_place *places; /* by path */
    size_t count;
    uint64_t *sets;
    struct key_index folders; /* that hold places, */
    uint64_t *folder_sets;    /* and the parts that have one there */
    struct root *roots;
    size_t root_count, root_room;
    struct candidates led,
        fresh; /* files that a part has not yet, and places it has that are new */
};

static void finder_done(struct finder *finder)
{
    free(finder->places);
    free(finder->sets);
    key_index_done(&finder->folders);
    free(finder->folder_sets);
    free(finder->roots);
    free(finder->led.files.items);
    free(finder->led.places);
    free(finder->fresh.files.items);
    free(finder->fresh.places);
}

/* ---- versions ---- */

/* The newest comes first, whatever the order of the parts is. */
static int version_is_later(const struct merge_version *left, const struct merge_version *right)
{
    bool left_blank = file_is_blank(left->file), right_blank = file_is_blank(right->file);
    if (left_blank != right_blank)
        return left_blank ? 1 : -1;
    if (!left_blank && left->started != right->started)
        return left->started < right->started ? 1 : -1;
    int order = -file_text_compare(left->file, right->file);
    return order ? order : strcmp(left->file->path, right->file->path);
}

static int path_is_later(const void *a, const void *b)
{
    const struct merge_version *left = a, *right = b;
    int order = strcmp(left->file->path, right->file->path);
    return order ? order : version_is_later(left, right);
}

static int place_is_later(const void *a, const void *b)
{
    const struct merge_version *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return version_is_later(left, right);
}

static int versions_read(struct finder *finder)
{
    struct merge_paths *paths = finder->paths;
    size_t count = 0;
    for (size_t i = 0; i < finder->part_count; i++)
        count += finder->parts[i].report->files.count;
    paths->versions = calloc(count + 1, sizeof *paths->versions);
    paths->files = calloc(count + 1, sizeof *paths->files);
    paths->kept = calloc(count + 1, sizeof *paths->kept);
    if (!paths->versions || !paths->files || !paths->kept)
        return -ENOMEM;
    for (size_t i = 0; i < finder->part_count; i++) {
        const struct report *report = finder->parts[i].report;
        for (size_t n = 0; n < report->files.count; n++)
            paths->versions[paths->version_count++] =
                (struct merge_version){ &finder->parts[i], &report->files.items[n],
                                        report->start_time_absolute, 0 };
    }
    qsort(paths->versions, count, sizeof *paths->versions, path_is_later);
    return 0;
}

/* ---- places, and the parts that have them ---- */

static void set_add(uint64_t *set, size_t part)
{
    set[part / 64] |= (uint64_t)1 << part % 64;
}

static bool set_has(const uint64_t *set, size_t part)
{
    return set[part / 64] >> part % 64 & 1;
}

static void set_join(const struct finder *finder, uint64_t *set, const uint64_t *more)
{
    for (size_t i = 0; i < finder->words; i++)
        set[i] |= more[i];
}

static bool sets_meet(const struct finder *finder, const uint64_t *a, const uint64_t *b)
{
    for (size_t i = 0; i < finder->words; i++)
        if (a[i] & b[i])
            return true;
    return false;
}

static int places_take(struct finder *finder)
{
    size_t most = finder->paths->version_count + 1;
    finder->words = finder->part_count / 64 + 1;
    finder->places = calloc(most, sizeof *finder->places);
    finder->sets = calloc(most, 2 * finder->words * sizeof *finder->sets);
    finder->folder_sets = calloc(most, finder->words * sizeof *finder->folder_sets);
    finder->led.files.items = calloc(most, sizeof *finder->led.files.items);
    finder->led.places = calloc(most, sizeof *finder->led.places);
    finder->fresh.files.items = calloc(most, sizeof *finder->fresh.files.items);
    finder->fresh.places = calloc(most, sizeof *finder->fresh.places);
    bool fails = !finder->places || !finder->sets || !finder->folder_sets ||
                 !finder->led.files.items || !finder->led.places || !finder->fresh.files.items ||
                 !finder->fresh.places;
    return fails ? -ENOMEM : 0;
}

static void places_read(struct finder *finder)
{
    struct merge_place *place = NULL;
    for (size_t i = 0; i < finder->paths->version_count; i++) {
        struct merge_version *version = &finder->paths->versions[i];
        if (!place || strcmp(place->path, version->file->path) != 0) {
            uint64_t *sets = finder->sets + 2 * finder->words * finder->count;
            place = &finder->places[finder->count++];
            *place = (struct merge_place){ version->file->path, version->file, FILE_NONE, sets,
                                           sets + finder->words };
        }
        version->place = (uint32_t)(finder->count - 1);
        set_add(place->own, (size_t)(version->part - finder->parts));
    }
}

static struct key path_key(const char *path, size_t length)
{
    return line_text_key_add((struct key){ { 0 } }, path, length);
}

/* Up to the last slash, with it. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

static int folders_read(struct finder *finder)
{
    for (size_t i = 0; i < finder->count; i++) {
        const struct merge_place *place = &finder->places[i];
        int64_t number =
            key_index_add(&finder->folders, path_key(place->path, folder_length(place->path)));
        if (number < 0)
            return (int)number;
        set_join(finder, &finder->folder_sets[(size_t)number * finder->words], place->own);
    }
    return 0;
}

static struct merge_place *place_find(const struct finder *finder, const char *path)
{
    size_t low = 0, high = finder->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(finder->places[middle].path, path);
        if (order == 0)
            return &finder->places[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- which may be one ---- */

/* Have parts of both files directly in one folder above both? Then these are places in one tree. */
static bool share_tree(const struct finder *finder, const struct merge_place *a,
                       const struct merge_place *b)
{
    for (size_t i = 0; a->path[i] && a->path[i] == b->path[i]; i++) {
        if (a->path[i] != '/')
            continue;
        int64_t number = key_index_find(&finder->folders, path_key(a->path, i + 1));
        const uint64_t *set =
            &finder->folder_sets[(size_t)(number < 0 ? 0 : number) * finder->words];
        if (number >= 0 && sets_meet(finder, set, a->all) && sets_meet(finder, set, b->own))
            return true;
    }
    return false;
}

static bool may_join(const struct finder *finder, const struct merge_place *leader,
                     const struct merge_place *place)
{
    return !sets_meet(finder, leader->all, place->own) && !share_tree(finder, leader, place);
}

static void place_join(struct finder *finder, struct merge_place *leader, struct merge_place *place)
{
    place->leader = (uint32_t)(leader - finder->places);
    set_join(finder, leader->all, place->own);
    if (file_is_blank(leader->newest))
        leader->newest = place->newest;
}

/* ---- by content ---- */

/* The folders that remain of two paths without the end that they have in common. */
static int root_add(struct finder *finder, const char *from, const char *to)
{
    size_t from_length = strlen(from), to_length = strlen(to);
    while (from_length && to_length && from[from_length - 1] == to[to_length - 1]) {
        from_length--;
        to_length--;
    }
    size_t rest = strcspn(from + from_length, "/") + 1;
    if (rest > strlen(from + from_length))
        return 0;
    from_length += rest;
    to_length += rest;
    for (size_t i = 0; i < finder->root_count; i++)
        if (finder->roots[i].from_length == from_length &&
            finder->roots[i].to_length == to_length &&
            strncmp(finder->roots[i].from, from, from_length) == 0 &&
            strncmp(finder->roots[i].to, to, to_length) == 0)
            return 0;
    if (ARRAY_GROW(finder->roots, finder->root_count, finder->root_room))
        return -ENOMEM;
    finder->roots[finder->root_count++] = (struct root){ from, to, from_length, to_length };
    return 0;
}

/* Their contents are much the same. */
static int pair_judge(struct finder *finder, struct merge_place *leader, struct merge_place *place)
{
    bool is_named = strcmp(leader->path + folder_length(leader->path),
                           place->path + folder_length(place->path)) == 0;
    if (is_named && may_join(finder, leader, place)) {
        place_join(finder, leader, place);
        return root_add(finder, place->path, leader->path);
    }
    if (!sets_meet(finder, leader->all, place->own) &&
        file_text_compare(leader->newest, place->newest) == 0 &&
        finder->paths->apart_count++ == 0) {
        finder->paths->apart[0] = leader->path;
        finder->paths->apart[1] = place->path;
    }
    return 0;
}

static void candidate_add(struct candidates *list, const struct finder *finder, size_t place)
{
    list->places[list->files.count] = (uint32_t)place;
    list->files.items[list->files.count++] = finder->places[place].newest;
}

static int contents_join(struct finder *finder)
{
    struct candidates *led = &finder->led, *fresh = &finder->fresh;
    AUTO_FREE uint32_t *found = calloc(led->files.count + 1, sizeof *found);
    int error = found ? files_match(&led->files, &fresh->files, found) : -ENOMEM;
    for (size_t i = 0; i < led->files.count && !error; i++)
        if (found[i] != FILE_NONE)
            error = pair_judge(finder, &finder->places[led->places[i]],
                               &finder->places[fresh->places[found[i]]]);
    return error;
}

/* ---- by path, below folders that are known to be others elsewhere ---- */

static int root_follow(struct finder *finder, const struct root *root, struct merge_place *place)
{
    AUTO_FREE char *path = NULL;
    if (strncmp(place->path, root->from, root->from_length) != 0)
        return 0;
    size_t size = root->to_length + strlen(place->path + root->from_length) + 1;
    if (!(path = malloc(size)))
        return -ENOMEM;
    snprintf(path, size, "%.*s%s", (int)root->to_length, root->to, place->path + root->from_length);
    const struct merge_place *there = place_find(finder, path);
    if (!there || there->leader == FILE_NONE)
        return 0;
    struct merge_place *leader = &finder->places[there->leader];
    if (may_join(finder, leader, place))
        place_join(finder, leader, place);
    return 0;
}

static int roots_follow(struct finder *finder, struct merge_place *place)
{
    int error = 0;
    for (size_t i = 0; i < finder->root_count && place->leader == FILE_NONE && !error; i++)
        error = root_follow(finder, &finder->roots[i], place);
    return error;
}

/* ---- part by part ---- */

/* The paths of a part that no part before it has: each is a file of those, or a new one. */
static int part_settle(struct finder *finder, size_t part)
{
    struct candidates *led = &finder->led, *fresh = &finder->fresh;
    int error = 0;
    led->files.count = fresh->files.count = 0;
    for (size_t i = 0; i < finder->count; i++) {
        const struct merge_place *place = &finder->places[i];
        if (place->leader == i && !set_has(place->all, part))
            candidate_add(led, finder, i);
        if (place->leader == FILE_NONE && set_has(place->own, part))
            candidate_add(fresh, finder, i);
    }
    if (led->files.count && fresh->files.count)
        error = contents_join(finder);
    for (size_t i = 0; i < fresh->files.count && !error; i++) {
        struct merge_place *place = &finder->places[fresh->places[i]];
        if (place->leader == FILE_NONE)
            error = roots_follow(finder, place);
        if (place->leader == FILE_NONE) {
            place->leader = fresh->places[i];
            memcpy(place->all, place->own, finder->words * sizeof *place->all);
        }
    }
    return error;
}

struct turn {
    double started;
    size_t part;
};

static int turn_is_later(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    if (left->started != right->started)
        return left->started < right->started ? 1 : -1;
    return (left->part > right->part) - (left->part < right->part);
}

static int parts_settle(struct finder *finder)
{
    AUTO_FREE struct turn *turns = calloc(finder->part_count + 1, sizeof *turns);
    int error = turns ? 0 : -ENOMEM;
    for (size_t i = 0; i < finder->part_count && !error; i++)
        turns[i] = (struct turn){ finder->parts[i].report->start_time_absolute, i };
    if (!error)
        qsort(turns, finder->part_count, sizeof *turns, turn_is_later);
    for (size_t i = 0; i < finder->part_count && !error; i++)
        error = part_settle(finder, turns[i].part);
    return error;
}

/* ---- the whole ---- */

static int file_is_later(const void *a, const void *b)
{
    const struct merge_file *left = a, *right = b;
    return strcmp(left->versions->file->path, right->versions->file->path);
}

/* Every path of the file but the one that is kept. */
static int moved_add(struct merge_paths *paths, const struct merge_file *file)
{
    const char *kept = file->versions->file->path;
    for (size_t i = 0; i < file->count; i++) {
        const char *path = file->versions[i].file->path;
        if (strcmp(path, kept) == 0)
            continue;
        int64_t number = key_index_add(&paths->moved, path_key(path, strlen(path)));
        if (number < 0)
            return (int)number;
        paths->kept[number] = kept;
        if (number == 0)
            memcpy(paths->joined, (const char *[]){ path, kept }, sizeof paths->joined);
    }
    return 0;
}

static int files_write(struct finder *finder)
{
    struct merge_paths *paths = finder->paths;
    int error = 0;
    for (size_t i = 0; i < paths->version_count; i++)
        paths->versions[i].place = finder->places[paths->versions[i].place].leader;
    qsort(paths->versions, paths->version_count, sizeof *paths->versions, place_is_later);
    for (size_t i = 0; i < paths->version_count; i++) {
        if (i == 0 || paths->versions[i].place != paths->versions[i - 1].place)
            paths->files[paths->count++].versions = &paths->versions[i];
        paths->files[paths->count - 1].count++;
    }
    qsort(paths->files, paths->count, sizeof *paths->files, file_is_later);
    for (size_t i = 0; i < paths->count && !error; i++)
        error = moved_add(paths, &paths->files[i]);
    return error;
}

int merge_paths_init(struct merge_paths *paths, const struct merge_part *parts, size_t count)
{
    CLEANUP(finder_done)
    struct finder finder = { .parts = parts, .part_count = count, .paths = paths };
    int error = versions_read(&finder);
    if (!error)
        error = places_take(&finder);
    if (error)
        return error;
    places_read(&finder);
    error = folders_read(&finder);
    if (!error)
        error = parts_settle(&finder);
    return error ? error : files_write(&finder);
}

void merge_paths_done(struct merge_paths *paths)
{
    free(paths->versions);
    free(paths->files);
    free(paths->kept);
    key_index_done(&paths->moved);
    *paths = (struct merge_paths){ 0 };
}

/* NULL: kept as it is. */
static const char *kept_find(const struct merge_paths *paths, const char *path, size_t length)
{
    int64_t number =
        paths->moved.count ? key_index_find(&paths->moved, path_key(path, length)) : -ENOENT;
    return number < 0 ? NULL : paths->kept[number];
}

const char *merge_paths_kept(const struct merge_paths *paths, const char *path)
{
    return kept_find(paths, path, strlen(path)) ?: path;
}

/* A path may have spaces: the longest that is known is meant. */
int merge_paths_frame(const struct merge_paths *paths, const char *frame, char **ret)
{
    *ret = NULL;
    for (size_t length = paths->moved.count ? strlen(frame) : 0; length > 0; length--) {
        const char *kept = frame[length] == ' ' ? kept_find(paths, frame, length) : NULL;
        if (!kept)
            continue;
        size_t size = strlen(kept) + strlen(frame + length) + 1;
        if (!(*ret = malloc(size)))
            return -ENOMEM;
        snprintf(*ret, size, "%s%s", kept, frame + length);
        return 0;
    }
    return 0;
}
