#include "output/cli/profile_head.h"

#include "output/cli/screen_text.h"
#include "output/cli/style.h"
#include "output/model/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum {
    TEXT_SIZE = 4096,
    LABEL_COLUMNS = 12,
    VERSIONS_SHOWN = 4,
};

struct head {
    FILE *out;
    const struct report *report;
    size_t width;
    bool coloured;
};

/* What a profile does not tell is NULL or empty. */
static bool is_told(const char *text)
{
    return text && *text;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Where nothing was measured a view's cell is empty, but a sentence needs a number. */
static const char *number_text(enum value_kind kind, const void *value, char *text, size_t size)
{
    if (format_value(kind, value, text, size) == 0)
        snprintf(text, size, "0%s", kind == VALUE_SECONDS ? "s" : kind == VALUE_PERCENT ? "%" : "");
    return text;
}

#define NUMBER(kind, type, value)                                                                  \
    number_text(VALUE_##kind, &(type){ value }, (char[32]){ "" }, sizeof(char[32]))
#define SECONDS(value) NUMBER(SECONDS, double, value)
#define MEGABYTES(value) NUMBER(MEGABYTES, double, value)
#define PERCENT(value) NUMBER(PERCENT, double, value)
#define COUNT(value) NUMBER(COUNT, int64_t, value)
#define RATE(value) COUNT((int64_t)fmin(fmax(rint(value), 0), 1e15))

/* Text that grows piece by piece and is cut where it is full. */
struct words {
    char text[TEXT_SIZE];
    size_t used;
};

static __attribute__((format(printf, 2, 3))) void words_add(struct words *words, const char *format,
                                                            ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof words->text - words->used;
    int length = vsnprintf(words->text + words->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        words->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void row_write(const struct head *head, const char *label, const char *text)
{
    char shown[TEXT_SIZE];
    if (!*text)
        return;
    fputs("  ", head->out);
    style_print(head->out, head->coloured, STYLE_PLACE, label);
    screen_text_fit(text, head->width - LABEL_COLUMNS, shown, sizeof shown);
    fprintf(head->out, "%*s%s\n", (int)(LABEL_COLUMNS - 2 - strlen(label)), "", shown);
}

static void title_write(const struct head *head)
{
    const struct report *report = head->report;
    struct words title = { "", 0 };
    char shown[TEXT_SIZE];
    words_add(&title, "%s", is_told(report->profiler_name) ? report->profiler_name : "Profile");
    if (is_told(report->profiler_version))
        words_add(&title, " %s", report->profiler_version);
    size_t columns = screen_text_fit(title.text, head->width, shown, sizeof shown);
    style_print(head->out, head->coloured, STYLE_HEADING, shown);
    if (is_told(report->program) && columns + 3 < head->width) {
        screen_path_fit(report->program, head->width - columns - 2, shown, sizeof shown);
        fprintf(head->out, ": %s", shown);
    }
    fputc('\n', head->out);
}

/* Where it finds no room whole, what an interpreter was told says more than its folder. */
static void command_write(const struct head *head)
{
    const struct report *report = head->report;
    const struct text_list *argv = report->processes.count && report->processes.items[0].argv.count
                                       ? &report->processes.items[0].argv
                                       : &report->args;
    struct words whole = { "", 0 }, brief = { "", 0 };
    char shown[TEXT_SIZE];
    for (size_t i = 0; i < argv->count; i++) {
        words_add(&whole, "%s%s", i ? " " : "", argv->items[i]);
        words_add(&brief, "%s%s", i ? " " : "", i ? argv->items[i] : file_name(argv->items[i]));
    }
    bool fits = screen_text(whole.text, shown, sizeof shown) <= head->width - LABEL_COLUMNS;
    row_write(head, "Command", fits ? whole.text : brief.text);
}

/* Every release once, with the first of its executables. */
static void python_write(const struct head *head)
{
    const char *told[VERSIONS_SHOWN];
    size_t count = 0;
    struct words versions = { "", 0 };
    for (size_t i = 0; i < head->report->processes.count && count < VERSIONS_SHOWN; i++) {
        const struct report_process *process = &head->report->processes.items[i];
        bool known = !is_told(process->python);
        for (size_t j = 0; j < count && !known; j++)
            known = strcmp(told[j], process->python) == 0;
        if (known)
            continue;
        words_add(&versions, "%s%s", count ? ", " : "", process->python);
        if (is_told(process->executable))
            words_add(&versions, " (%s)", process->executable);
        told[count++] = process->python;
    }
    row_write(head, "Python", versions.text);
}

/* A part of a row, behind what is there already. */
#define WORDS_PART(words, format, ...)                                                             \
    words_add((words), "%s" format, (words)->used ? ", " : "", __VA_ARGS__)

/* The sum of what is told, and its parts. */
static void cpu_write(const struct head *head)
{
    const struct report_totals *totals = &head->report->totals;
    const struct {
        const char *name;
        const double *seconds;
    } parts[] = { { "Python", &totals->cpu_python_s },
                  { "native", &totals->cpu_native_s },
                  { "kernel", &totals->cpu_kernel_s } };
    struct words told = { "", 0 }, cpu = { "", 0 };
    double sum_s = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!report_tells(head->report, parts[i].seconds))
            continue;
        WORDS_PART(&told, "%s %s", parts[i].name, SECONDS(*parts[i].seconds));
        sum_s += *parts[i].seconds;
    }
    if (told.used)
        words_add(&cpu, "%s: %s", SECONDS(sum_s), told.text);
    row_write(head, "CPU", cpu.text);
}

static void times_write(const struct head *head)
{
    const struct report *report = head->report;
    const struct report_totals *totals = &report->totals;
    double elapsed_s = totals->elapsed_s > 0 ? totals->elapsed_s : report->elapsed_time_sec;
    char waits[TEXT_SIZE];
    if (elapsed_s > 0)
        row_write(head, "Elapsed", SECONDS(elapsed_s));
    if (report_base_s(report) <= 0)
        return;
    cpu_write(head);
    if (report_tells(report, &totals->idle_s))
        row_write(head, "Idle", SECONDS(totals->idle_s));
    format_value(VALUE_WAITS, &totals->wait_s, waits, sizeof waits);
    row_write(head, "Waiting", waits);
}

/* The kernel lists more than an interpreter knows, and more runs than what could be profiled. */
static void threads_write(const struct head *head)
{
    const struct report *report = head->report;
    size_t threads = 0, processes = 0, others = 0;
    struct words words = { "", 0 };
    for (size_t i = 0; i < report->threads.count; i++)
        threads += report_thread_is_python(&report->threads.items[i]);
    for (size_t i = 0; i < report->processes.count; i++)
        processes += is_told(report->processes.items[i].python);
    others = report->processes.count - processes;
    if (!processes || !report_tells(report, &report->threads))
        return;
    words_add(&words, "%zu in %zu process%s", threads, processes, processes == 1 ? "" : "es");
    if (others)
        words_add(&words, "; %zu other%s not profiled", others, others == 1 ? "" : "s");
    row_write(head, "Threads", words.text);
}

static void samples_write(const struct head *head)
{
    const struct report_sampling *sampling = &head->report->sampling;
    struct words samples = { "", 0 };
    if (report_tells(head->report, &sampling->samples))
        words_add(&samples, "%s", COUNT(sampling->samples));
    if (report_tells(head->report, &sampling->rate_hz))
        words_add(&samples, "%sat %s Hz", samples.used ? " " : "", RATE(sampling->rate_hz));
    if (report_tells(head->report, &sampling->dropped))
        WORDS_PART(&samples, "%s dropped", COUNT(sampling->dropped));
    if (sampling->missed)
        WORDS_PART(&samples, "%s missed", COUNT(sampling->missed));
    row_write(head, "Samples", samples.text);
}

static void pauses_write(const struct head *head)
{
    const struct report_sampling *sampling = &head->report->sampling;
    double percent = 100 * sampling->paused_s / head->report->totals.elapsed_s;
    struct words pauses = { "", 0 };
    words_add(&pauses, "%s", SECONDS(sampling->paused_s));
    if (percent > 0 && percent < 1e4) /* as far as both are known, and can be */
        words_add(&pauses, " (%.2f%%) in %s pauses, the longest %s", percent,
                  COUNT(sampling->pauses), SECONDS(sampling->longest_pause_us / 1e6));
    row_write(head, "Paused", pauses.text);
}

static void sampling_write(const struct head *head)
{
    const struct report_sampling *sampling = &head->report->sampling;
    if (!is_told(head->report->profiler_name))
        return;
    samples_write(head);
    if (report_tells(head->report, &sampling->paused_s))
        pauses_write(head);
    if (report_tells(head->report, &sampling->profiler_cpu_s))
        row_write(head, "Profiler", SECONDS(sampling->profiler_cpu_s));
}

/* Where memory was not profiled, what the kernel says of the largest Python. */
static void resident_write(const struct head *head)
{
    double peak_mb = 0;
    char text[32];
    struct words words = { "", 0 };
    for (size_t i = 0; i < head->report->processes.count; i++)
        if (is_told(head->report->processes.items[i].python))
            peak_mb = fmax(peak_mb, head->report->processes.items[i].peak_rss_mb);
    if (format_value(VALUE_MEGABYTES, &peak_mb, text, sizeof text) == 0)
        return;
    words_add(&words, "%s at most (RSS)", text);
    row_write(head, "Memory", words.text);
}

enum { CELLS = 27, CELLS_NARROW = 16, CELLS_LEAST = 8 }; /* as in Scalene, where there is room */

static size_t spark_cells(size_t width)
{
    return width < 70 ? CELLS_LEAST : width < 100 ? CELLS_NARROW : CELLS;
}

static void memory_told(const struct report *report, struct words *words)
{
    if (report_tells(report, &report->max_footprint_mb))
        WORDS_PART(words, "%s at most", MEGABYTES(report->max_footprint_mb));
    if (report_tells(report, &report->growth_rate))
        WORDS_PART(words, "growth rate %s", PERCENT(report->growth_rate));
}

/* Whole, or not at all. */
static void peak_place_add(const struct report *report, struct words *words, size_t room)
{
    char place[TEXT_SIZE], shown[TEXT_SIZE];
    if (!is_told(report->max_footprint_fname) || report->max_footprint_lineno <= 0)
        return;
    snprintf(place, sizeof place, ", at %.1000s:%" PRId64, file_name(report->max_footprint_fname),
             report->max_footprint_lineno);
    if (screen_text(place, shown, sizeof shown) <= room)
        words_add(words, "%s", place);
}

/* Its peak and whether it grows; in front of them its course, and behind them where the peak was,
 * as far as they leave room. */
static void memory_write(const struct head *head)
{
    const struct report *report = head->report;
    size_t room = head->width - LABEL_COLUMNS;
    size_t cells = spark_cells(head->width);
    char course[4 * CELLS + 1] = "";
    struct words told = { "", 0 }, words = { "", 0 };
    if (!report->memory) {
        resident_write(head);
        return;
    }
    memory_told(report, &told);
    if (told.used + 1 + cells <= room &&
        format_spark(&report->samples, cells, course, sizeof course))
        words_add(&words, "%s ", course);
    words_add(&words, "%s", told.text);
    size_t used = screen_text(words.text, (char[TEXT_SIZE]){ "" }, TEXT_SIZE);
    if (told.used)
        peak_place_add(report, &words, room > used ? room - used : 0);
    row_write(head, "Memory", words.text);
}

void profile_head_write(FILE *out, const struct report *report, size_t width, bool coloured)
{
    const struct head head = { out, report, width, coloured };
    title_write(&head);
    command_write(&head);
    python_write(&head);
    times_write(&head);
    threads_write(&head);
    sampling_write(&head);
    memory_write(&head);
}

/* ---- notes ---- */

/* Words that go into the width; a word that is wider stands alone and is cut. */
static void paragraph_write(const struct head *head, const char *text)
{
    enum { INDENT = 4 };
    size_t used = head->width, room = head->width - INDENT;
    const char *lead = "  - ";
    while (*(text += strspn(text, " \n")) != '\0') {
        char word[TEXT_SIZE], shown[TEXT_SIZE];
        size_t length = strcspn(text, " \n");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : TEXT_SIZE - 1,
                 text);
        size_t columns = screen_text_fit(word, room, shown, sizeof shown);
        bool fits = used + 1 + columns <= room;
        fprintf(head->out, "%s%s", fits ? " " : lead, shown);
        used = fits ? used + 1 + columns : columns;
        lead = "\n    ";
        text += length;
    }
    fputc('\n', head->out);
}

enum { GROUPS_SHOWN = 10, COMMANDS_SHOWN = 4 };

/* Processes of which the same is to be said: a shell may have started any number of them. */
struct note_group {
    const struct report_process *first;
    size_t count, command_count;
    const char *commands[COMMANDS_SHOWN]; /* that differ */
    bool has_more_commands;
};

static void group_add(struct note_group *group, const struct report_process *process)
{
    const char *command = process->argv.count ? process->argv.items[0] : NULL;
    group->count++;
    if (!command)
        return;
    for (size_t i = 0; i < group->command_count; i++)
        if (strcmp(group->commands[i], command) == 0)
            return;
    if (group->command_count < COMMANDS_SHOWN)
        group->commands[group->command_count++] = command;
    else
        group->has_more_commands = true;
}

/* Its group among those there are or one more; NULL when there is no room for one. */
static struct note_group *group_find(struct note_group *groups, size_t *count,
                                     const struct report_process *process)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(groups[i].first->note, process->note) == 0)
            return &groups[i];
    if (*count == GROUPS_SHOWN)
        return NULL;
    groups[*count] = (struct note_group){ .first = process };
    return &groups[(*count)++];
}

static void group_write(const struct head *head, const struct note_group *group)
{
    struct words words = { "", 0 };
    if (group->count == 1)
        words_add(&words, "process %" PRId64, group->first->pid);
    else
        words_add(&words, "%zu processes", group->count);
    for (size_t i = 0; i < group->command_count; i++)
        words_add(&words, "%s%s", i ? ", " : " (", group->commands[i]);
    if (group->command_count)
        words_add(&words, "%s)", group->has_more_commands ? " and others" : "");
    words_add(&words, ": %s", group->first->note);
    paragraph_write(head, words.text);
}

static void process_notes_write(const struct head *head)
{
    struct note_group groups[GROUPS_SHOWN];
    size_t count = 0, left_out = 0;
    for (size_t i = 0; i < head->report->processes.count; i++) {
        const struct report_process *process = &head->report->processes.items[i];
        struct note_group *group =
            is_told(process->note) ? group_find(groups, &count, process) : NULL;
        if (group)
            group_add(group, process);
        left_out += is_told(process->note) && !group;
    }
    for (size_t i = 0; i < count; i++)
        group_write(head, &groups[i]);
    if (left_out)
        fprintf(head->out, "  - %zu more processes have notes\n", left_out);
}

static bool has_notes(const struct report *report)
{
    for (size_t i = 0; i < report->processes.count; i++)
        if (is_told(report->processes.items[i].note))
            return true;
    return report->notes.count > 0;
}

void profile_notes_write(FILE *out, const struct report *report, size_t width, bool coloured)
{
    const struct head head = { out, report, width, coloured };
    if (!has_notes(report))
        return;
    fputc('\n', out);
    style_print(out, coloured, STYLE_HEADING, "Notes");
    fputc('\n', out);
    for (size_t i = 0; i < report->notes.count; i++)
        paragraph_write(&head, report->notes.items[i]);
    process_notes_write(&head);
}
