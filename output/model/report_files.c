/* Files, lines and functions of a report, with source text and regions. */
#include "output/model/report_build.h"

#include "sampler/base/error.h"

#include <string.h>

/* What the tallies say of one file. */
struct file_sum {
    uint64_t base_ns, samples;
    double allocated_bytes, allocations;
    int last_line;
    size_t functions;
};

static void sums_fill(const struct profile *profile, struct file_sum *sums)
{
    const struct places *places = &profile->places;
    for (size_t i = 0; i < places->tally_index.count; i++) {
        const struct tally *tally = &places->tallies[i];
        struct file_sum *sum = &sums[tally->file];
        if (!places_show(places, tally)) {
            continue;
        } else if (tally->name) {
            sum->functions++;
        } else {
            sum->base_ns += tally_base_ns(tally);
            sum->samples += tally->samples;
            sum->allocated_bytes += tally->memory ? tally->memory->allocated_bytes : 0;
            sum->allocations += tally->memory ? tally->memory->allocations : 0;
            sum->last_line = tally->line > sum->last_line ? tally->line : sum->last_line;
        }
    }
}

/* ---- lines ---- */

static size_t count_lines(const struct source_file *source)
{
    size_t count = 0;
    for (size_t i = 0; i < source->size; i++)
        count += source->text[i] == '\n';
    return count + (source->size > 0 && source->text[source->size - 1] != '\n');
}

/* Each line with its \n, as Scalene has it; lines beyond the text are empty. */
static int lines_fill(struct report *report, const struct source_file *source,
                      struct report_file *file)
{
    const char *at = source->text ?: "", *end = at + source->size;
    for (size_t i = 0; i < file->lines.count; i++) {
        size_t length = 0;
        if (at < end) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            length = (size_t)((newline ? newline + 1 : end) - at);
        }
        char *text = arena_take(&report->arena, length + 1);
        if (!text)
            return -ENOMEM;
        if (length)
            memcpy(text, at, length);
        at += length;
        file->lines.items[i].line = text;
        file->lines.items[i].lineno = (int64_t)i + 1;
    }
    return 0;
}

static void regions_set(struct line_stats *line, const struct line_regions *regions)
{
    line->start_region_line = regions->region.first;
    line->end_region_line = regions->region.last;
    line->start_outermost_loop = regions->loop.first;
    line->end_outermost_loop = regions->loop.last;
    line->start_function_line = regions->function.first;
    line->end_function_line = regions->function.last;
}

/* Functions come by line, inner ones after the one they are in. */
static void coroutines_mark(struct report_file *file, const struct source_regions *source)
{
    for (size_t i = 0; i < source->function_count; i++) {
        const struct source_function *function = &source->functions[i];
        for (size_t n = function->lines.first; n <= function->lines.last && n <= file->lines.count;
             n++)
            file->lines.items[n - 1].is_coroutine = function->is_coroutine;
        for (size_t n = 0; n < file->functions.count; n++)
            if (file->functions.items[n].lineno == function->first_line)
                file->functions.items[n].is_coroutine = function->is_coroutine;
    }
}

static int imports_copy(struct report *report, const struct source_regions *source,
                        struct text_list *ret)
{
    const char **items = arena_take(&report->arena, source->import_count * sizeof *items);
    size_t count = 0;
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < source->import_count; i++) {
        bool is_new = true;
        for (size_t n = 0; n < count && is_new; n++)
            is_new = strcmp(items[n], source->imports[i].text) != 0;
        if (!is_new)
            continue;
        items[count] = report_text(report, source->imports[i].text);
        if (!items[count++])
            return -ENOMEM;
    }
    *ret = (struct text_list){ items, count };
    return 0;
}

static int regions_fill(struct report *report, const struct source_file *source,
                        struct report_file *file)
{
    AUTO_REGIONS struct source_regions *regions = NULL;
    int error = source_regions_new(source->text ?: "", source->size, &regions);
    if (error)
        return error;
    for (size_t i = 0; i < file->lines.count; i++) {
        struct line_range own = { (uint32_t)i + 1, (uint32_t)i + 1 };
        struct line_regions alone = { .region = own, .loop = own };
        regions_set(&file->lines.items[i], i < regions->line_count ? &regions->lines[i] : &alone);
    }
    coroutines_mark(file, regions);
    return imports_copy(report, regions, &file->imports);
}

/* ---- numbers ---- */

static int function_is_later(const void *a, const void *b)
{
    const struct line_stats *left = a, *right = b;
    if (left->lineno != right->lineno)
        return left->lineno < right->lineno ? -1 : 1;
    return strcmp(left->line, right->line);
}

static int tally_write(struct report *report, const struct tally *tally,
                       const struct tally_base *base, struct line_stats *ret)
{
    int error = tally_finish(tally, base, &report->arena, ret);
    for (size_t i = 0; i < ret->native_top.count && !error; i++) {
        struct native_share *share = &ret->native_top.items[i];
        share->symbol = report_text(report, share->symbol ?: "");
        share->module = report_text(report, share->module ?: "");
        if (!share->symbol || !share->module)
            return -ENOMEM;
    }
    return error;
}

static int function_write(struct report *report, const struct tally *tally,
                          const struct tally_base *base, struct report_file *file)
{
    struct line_stats *function = &file->functions.items[file->functions.count++];
    function->line = report_text(report, tally->name);
    function->lineno = tally->line > 0 ? tally->line : 1;
    return function->line ? tally_write(report, tally, base, function) : -ENOMEM;
}

/* `numbers[file]` is 1 + the file's place in the report; 0: left out. */
static int tallies_write(struct report *report, const struct profile *profile,
                         const uint32_t *numbers, struct report_gaps *gaps)
{
    const struct places *places = &profile->places;
    struct tally_base base = { report_base_s(report), profile->squares, report->start_time_perf,
                               report_memory_base(profile) };
    int error = 0;
    for (size_t i = 0; i < places->tally_index.count && !error; i++) {
        const struct tally *tally = &places->tallies[i];
        if (!numbers[tally->file] || !places_show(places, tally))
            continue;
        struct report_file *file = &report->files.items[numbers[tally->file] - 1];
        gaps->moments += tally_moments_dropped(tally);
        if (tally->name)
            error = function_write(report, tally, &base, file);
        else if ((size_t)tally->line <= file->lines.count)
            error = tally_write(report, tally, &base, &file->lines.items[tally->line - 1]);
        else
            gaps->far_lines += tally->samples;
    }
    for (size_t i = 0; i < report->files.count; i++)
        qsort(report->files.items[i].functions.items, report->files.items[i].functions.count,
              sizeof(struct line_stats), function_is_later);
    return error;
}

/* ---- files ---- */

static int source_note_add(struct report *report, struct report_gaps *gaps, const char *before,
                           const char *path, const char *after)
{
    if (gaps->source_notes == SOURCE_NOTES_MAX) {
        gaps->more_source_notes++;
        return 0;
    }
    gaps->source_notes++;
    return report_add_note(report, "%s%s%s", before, path, after);
}

/* What may have changed under the program's feet. A name like <string> promises no source. */
static int note_source(struct report *report, const struct profile *profile,
                       const struct source_file *source, size_t line_count, int last_line,
                       struct report_gaps *gaps)
{
    double since = profile->settings.code_since ?: report->start_time_absolute;
    int error = 0;
    if (!source->has_source && source->path[0] != '<')
        error = source_note_add(report, gaps, "the source of ", source->path, " cannot be read");
    if (source->is_guessed)
        error = source_note_add(report, gaps, "the encoding that ", source->path,
                                " names is not known here: its text is shown as Latin-1");
    if (!error && source->has_source &&
        (source->modified_s > since || (size_t)last_line > line_count))
        error = source_note_add(report, gaps, "", source->path,
                                " has changed: its lines may not be those that ran");
    return error;
}

static int file_write(struct report *report, const struct profile *profile,
                      const struct source_file *source, const struct file_sum *sum,
                      struct report_file *file, struct report_gaps *gaps)
{
    size_t lines = source->text ? count_lines(source) : 0, last = (size_t)sum->last_line;
    last = last < FAR_LINES_MAX ? last : FAR_LINES_MAX;
    double base = report_base_s(report);
    file->path = report_text(report, source->path);
    file->percent_cpu_time = base > 0 ? 100 * ((double)sum->base_ns / 1e9) / base : 0;
    file->lines.count = lines > last ? lines : last;
    file->lines.items = arena_take(&report->arena, file->lines.count * sizeof *file->lines.items);
    file->functions.items =
        arena_take(&report->arena, sum->functions * sizeof *file->functions.items);
    if (!file->path || !file->lines.items || !file->functions.items)
        return -ENOMEM;
    int error = lines_fill(report, source, file);
    return error ? error : note_source(report, profile, source, lines, sum->last_line, gaps);
}

static bool is_seen(const struct file_sum *sum)
{
    return sum->samples + sum->base_ns > 0 || sum->allocated_bytes > 0;
}

/* By its share of the time or of the memory, or by how often it allocated. */
static bool is_wanted(const struct report *report, const struct profile *profile,
                      const struct file_sum *sum)
{
    double base_ns = 1e9 * report_base_s(report), all = profile->memory.allocated_bytes;
    double threshold = profile->settings.cpu_percent_threshold;
    if (sum->samples + sum->base_ns > 0 && 100 * (double)sum->base_ns >= threshold * base_ns)
        return true;
    return sum->allocated_bytes > 0 &&
           (100 * sum->allocated_bytes >= threshold * all ||
            sum->allocations >= (double)profile->settings.malloc_threshold);
}

struct named_file {
    const char *path;
    uint32_t number;
};

static int name_is_later(const void *a, const void *b)
{
    return strcmp(((const struct named_file *)a)->path, ((const struct named_file *)b)->path);
}

/* The files to report, by path. Their count. */
static size_t files_choose(const struct report *report, const struct profile *profile,
                           const struct file_sum *sums, struct named_file *ret,
                           struct report_gaps *gaps)
{
    size_t count = 0;
    for (uint32_t i = 0; i < profile->places.file_index.count; i++) {
        gaps->shown_s += (double)sums[i].base_ns / 1e9;
        if (is_wanted(report, profile, &sums[i])) {
            ret[count++] = (struct named_file){ profile->places.files[i].path, i };
        } else if (is_seen(&sums[i])) {
            gaps->small_files++;
            gaps->small_files_s += (double)sums[i].base_ns / 1e9;
        }
    }
    qsort(ret, count, sizeof *ret, name_is_later);
    return count;
}

static int files_write(struct report *report, const struct profile *profile,
                       const struct file_sum *sums, const struct named_file *chosen, size_t count,
                       struct report_gaps *gaps)
{
    size_t all = profile->places.file_index.count;
    AUTO_FREE uint32_t *numbers = calloc(all + 1, sizeof *numbers);
    report->files.items = arena_take(&report->arena, count * sizeof *report->files.items);
    report->files.count = count;
    if (!numbers || !report->files.items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = chosen[i].number;
        numbers[number] = (uint32_t)i + 1;
        int error = file_write(report, profile, &profile->places.files[number], &sums[number],
                               &report->files.items[i], gaps);
        if (error)
            return error;
    }
    int error = tallies_write(report, profile, numbers, gaps);
    if (!error)
        error = report_add_leaks(report, profile, numbers);
    for (size_t i = 0; i < count && !error; i++)
        error =
            regions_fill(report, &profile->places.files[chosen[i].number], &report->files.items[i]);
    return error;
}

int report_add_files(struct report *report, const struct profile *profile, struct report_gaps *gaps)
{
    size_t all = profile->places.file_index.count;
    AUTO_FREE struct file_sum *sums = calloc(all + 1, sizeof *sums);
    AUTO_FREE struct named_file *chosen = calloc(all + 1, sizeof *chosen);
    if (!sums || !chosen)
        return -ENOMEM;
    sums_fill(profile, sums);
    size_t count = files_choose(report, profile, sums, chosen, gaps);
    return files_write(report, profile, sums, chosen, count, gaps);
}
