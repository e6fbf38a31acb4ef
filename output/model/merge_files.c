/* Files of merged profiles: each once, with the text of its newest version. */
#include "output/model/line_homes.h"
#include "output/model/merge_build.h"

#include <math.h>
#include <string.h>

/* ---- functions, by name and line ---- */

/* A lambda and its like have no name, and stand on lines of others. */
static bool has_own_name(const struct line_stats *function)
{
    const char *dot = strrchr(function->line, '.');
    return (dot ? dot[1] : *function->line) != '<';
}

/* The function that is there already, by its place, else by a name that no other one there has. */
static struct line_stats *function_find(const struct line_homes *homes, struct report_file *file,
                                        const struct line_stats *from, int64_t lineno)
{
    struct line_stats *named = NULL, *renamed = NULL;
    size_t count = 0;
    for (size_t i = 0; i < file->functions.count; i++) {
        struct line_stats *function = &file->functions.items[i];
        bool is_named = strcmp(function->line, from->line) == 0;
        if (is_named && function->lineno == lineno)
            return function;
        if (!homes->differs || !has_own_name(from) || !has_own_name(function))
            continue;
        enum function_kinship kinship = line_homes_kinship(homes, from->lineno, function->lineno);
        if (kinship == KINSHIP_SAME)
            renamed = function;
        else if (is_named && kinship == KINSHIP_UNKNOWN) {
            named = function;
            count++;
        }
    }
    return renamed ? renamed : count == 1 ? named : NULL;
}

static int functions_add(struct merge *merge, const struct merge_version *version,
                         const struct line_homes *homes, double ended_s, struct report_file *to)
{
    int error = 0;
    for (size_t i = 0; i < version->file->functions.count && !error; i++) {
        const struct line_stats *from = &version->file->functions.items[i];
        int64_t lineno = line_homes_of_function(homes, from->lineno);
        struct line_stats *function = function_find(homes, to, from, lineno);
        if (!function) {
            function = &to->functions.items[to->functions.count++];
            function->lineno = lineno;
            function->line = report_text(merge->report, from->line);
        }
        error = function->line ? merge_line_add(merge, version->part, ended_s, from, function)
                               : -ENOMEM;
    }
    return error;
}

static int function_is_later(const void *a, const void *b)
{
    const struct line_stats *left = a, *right = b;
    if (left->lineno != right->lineno)
        return left->lineno < right->lineno ? -1 : 1;
    return strcmp(left->line, right->line);
}

/* ---- leaks and imports ---- */

int merge_texts(struct report *report, const struct text_list *from, struct text_list *to)
{
    const char **items = arena_take(&report->arena, (from->count + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < from->count; i++)
        if (!(items[i] = report_text(report, from->items[i])))
            return -ENOMEM;
    *to = (struct text_list){ items, from->count };
    return 0;
}

static struct report_leak *leak_find(struct report_file *file, const char *lineno)
{
    for (size_t i = 0; i < file->leaks.count; i++)
        if (strcmp(file->leaks.items[i].lineno, lineno) == 0)
            return &file->leaks.items[i];
    return NULL;
}

static int frames_copy(struct merge *merge, const struct text_list *from, struct text_list *to)
{
    int error = merge_texts(merge->report, from, to);
    for (size_t i = 0; i < from->count && !error; i++) {
        AUTO_FREE char *frame = NULL;
        error = merge_paths_frame(&merge->paths, from->items[i], &frame);
        if (!error && frame && !(to->items[i] = report_text(merge->report, frame)))
            error = -ENOMEM;
    }
    return error;
}

/* The stack is that of the part in which most is held. */
static int leak_add(struct merge *merge, const struct merge_version *version,
                    const struct line_homes *homes, const struct report_leak *from,
                    struct report_file *to)
{
    char lineno[32];
    int64_t line = strtoll(from->lineno, NULL, 10);
    snprintf(lineno, sizeof lineno, "%lld", (long long)line_homes_of_line(homes, line));
    struct report_leak *leak = leak_find(to, lineno);
    if (!leak) {
        leak = &to->leaks.items[to->leaks.count++];
        leak->lineno = report_text(merge->report, lineno);
        if (!leak->lineno)
            return -ENOMEM;
    }
    bool is_larger = !leak->stack.items || from->live_mb > leak->live_mb;
    leak->likelihood = fmax(leak->likelihood, from->likelihood);
    leak->velocity_mb_s += from->velocity_mb_s * version->part->elapsed_s;
    leak->live_mb += from->live_mb;
    return is_larger ? frames_copy(merge, &from->stack, &leak->stack) : 0;
}

static int leak_is_later(const void *a, const void *b)
{
    const struct report_leak *left = a, *right = b;
    int64_t one = strtoll(left->lineno, NULL, 10), other = strtoll(right->lineno, NULL, 10);
    return (one > other) - (one < other);
}

static int leaks_add(struct merge *merge, const struct merge_version *version,
                     const struct line_homes *homes, struct report_file *to)
{
    int error = 0;
    for (size_t i = 0; i < version->file->leaks.count && !error; i++)
        error = leak_add(merge, version, homes, &version->file->leaks.items[i], to);
    return error;
}

static bool has_text(const struct text_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

static int imports_add(struct merge *merge, const struct text_list *from, struct text_list *to)
{
    for (size_t i = 0; i < from->count; i++) {
        if (has_text(to, from->items[i]))
            continue;
        const char *text = report_text(merge->report, from->items[i]);
        if (!text)
            return -ENOMEM;
        to->items[to->count++] = text;
    }
    return 0;
}

/* ---- one file ---- */

/* Text and regions of the kept version, and room for what all of them have. */
static int file_begin(struct merge *merge, const struct merge_file *versions,
                      const struct report_file *kept, struct report_file *file)
{
    struct report *report = merge->report;
    size_t functions = 0, leaks = 0, imports = 0;
    for (size_t i = 0; i < versions->count; i++) {
        const struct report_file *version = versions->versions[i].file;
        functions += version->functions.count;
        leaks += version->leaks.count;
        imports += version->imports.count;
    }
    file->path = report_text(report, kept->path);
    file->lines.items = arena_take(&report->arena, kept->lines.count * sizeof *file->lines.items);
    file->lines.count = kept->lines.count;
    file->functions.items = arena_take(&report->arena, functions * sizeof *file->functions.items);
    file->leaks.items = arena_take(&report->arena, leaks * sizeof *file->leaks.items);
    file->imports.items = arena_take(&report->arena, imports * sizeof *file->imports.items);
    if (!file->path || !file->lines.items || !file->functions.items || !file->leaks.items ||
        !file->imports.items)
        return -ENOMEM;
    for (size_t i = 0; i < kept->lines.count; i++) {
        const struct line_stats *from = &kept->lines.items[i];
        struct line_stats *to = &file->lines.items[i];
        to->line = report_text(report, from->line);
        to->lineno = (int64_t)i + 1;
        to->start_region_line = from->start_region_line;
        to->end_region_line = from->end_region_line;
        to->start_outermost_loop = from->start_outermost_loop;
        to->end_outermost_loop = from->end_outermost_loop;
        to->start_function_line = from->start_function_line;
        to->end_function_line = from->end_function_line;
        if (!to->line)
            return -ENOMEM;
    }
    return 0;
}

static int version_add(struct merge *merge, const struct merge_version *version, double ended_s,
                       const struct line_homes *homes, struct report_file *to)
{
    int error = 0;
    for (size_t i = 0; i < version->file->lines.count && to->lines.count && !error; i++) {
        int64_t home = line_homes_of_line(homes, (int64_t)i + 1);
        error = merge_line_add(merge, version->part, ended_s, &version->file->lines.items[i],
                               &to->lines.items[home - 1]);
    }
    to->percent_cpu_time += version->file->percent_cpu_time * version->part->base_s;
    if (!error)
        error = functions_add(merge, version, homes, ended_s, to);
    if (!error)
        error = leaks_add(merge, version, homes, to);
    return error ? error : imports_add(merge, &version->file->imports, &to->imports);
}

static void file_finish(struct merge *merge, struct report_file *file)
{
    double base_s = merge->joint.base_s, elapsed_s = merge->joint.elapsed_s;
    file->percent_cpu_time = base_s > 0 ? fmin(file->percent_cpu_time / base_s, 100) : 0;
    for (size_t i = 0; i < file->lines.count; i++)
        merge_line_finish(merge, &file->lines.items[i]);
    for (size_t i = 0; i < file->functions.count; i++)
        merge_line_finish(merge, &file->functions.items[i]);
    for (size_t i = 0; i < file->leaks.count; i++)
        file->leaks.items[i].velocity_mb_s /= elapsed_s > 0 ? elapsed_s : 1;
    qsort(file->functions.items, file->functions.count, sizeof *file->functions.items,
          function_is_later);
    qsort(file->leaks.items, file->leaks.count, sizeof *file->leaks.items, leak_is_later);
}

static int note_versions(struct merge *merge, const char *path, double gone_s)
{
    char gone[96] = "";
    if (gone_s > 0)
        snprintf(gone, sizeof gone,
                 ", and the %.3g s of those that are gone count for what is left around them",
                 gone_s);
    return report_add_note(merge->report,
                           "%.512s is not the same in all of the merged profiles: the newest text "
                           "is kept, and other lines are found in it again%s",
                           path, gone);
}

static int file_merge(struct merge *merge, const struct merge_file *versions,
                      struct report_file *file)
{
    double ended_s = 0, gone_s = 0;
    bool differs = false;
    const struct report_file *kept = versions->versions[0].file;
    int error = file_begin(merge, versions, kept, file);
    for (size_t i = 0; i < versions->count && !error; i++) {
        const struct merge_version *version = &versions->versions[i];
        CLEANUP(line_homes_done) struct line_homes homes = { 0 };
        error = line_homes_init(&homes, version->file, kept);
        if (!error)
            error = version_add(merge, version, ended_s, &homes, file);
        ended_s = fmax(ended_s, version->part->elapsed_s);
        gone_s += homes.gone_s;
        differs |= homes.lines != NULL;
    }
    if (error)
        return error;
    file_finish(merge, file);
    return differs ? note_versions(merge, kept->path, gone_s) : 0;
}

/* ---- all of them ---- */

int merge_files(struct merge *merge)
{
    struct report *report = merge->report;
    const struct merge_paths *paths = &merge->paths;
    report->files.items = arena_take(&report->arena, paths->count * sizeof *report->files.items);
    int error = report->files.items ? 0 : -ENOMEM;
    for (size_t i = 0; i < paths->count && !error; i++)
        error = file_merge(merge, &paths->files[i], &report->files.items[report->files.count++]);
    return error;
}
