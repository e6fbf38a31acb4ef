#include "output/cli/profile_head.h"

#include "output/cli/screen_text.h"
#include "output/cli/style.h"
#include "output/model/format.h"

#include <inttypes.h>
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

/* Where nothing was measured a view's cell is empty, but a sentence needs a number. */
static const char *number_text(enum value_kind kind, const void *value, char *text, size_t size)
{
    if (format_value(kind, value, text, size) == 0)
        snprintf(text, size, "0%s", kind == VALUE_SECONDS ? "s" : "");
    return text;
}

#define SECONDS(value) number_text(VALUE_SECONDS, &(double){ value }, (char[32]){ "" }, 32)
#define COUNT(value) number_text(VALUE_COUNT, &(int64_t){ value }, (char[32]){ "" }, 32)

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

static void command_write(const struct head *head)
{
    const struct report *report = head->report;
    const struct text_list *argv = report->processes.count && report->processes.items[0].argv.count
                                       ? &report->processes.items[0].argv
                                       : &report->args;
    struct words command = { "", 0 };
    for (size_t i = 0; i < argv->count; i++)
        words_add(&command, "%s%s", i ? " " : "", argv->items[i]);
    row_write(head, "Command", command.text);
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

static void times_write(const struct head *head)
{
    const struct report *report = head->report;
    const struct report_totals *totals = &report->totals;
    double elapsed_s = totals->elapsed_s > 0 ? totals->elapsed_s : report->elapsed_time_sec;
    double cpu_s = totals->cpu_python_s + totals->cpu_native_s + totals->cpu_kernel_s;
    struct words cpu = { "", 0 };
    char waits[TEXT_SIZE];
    if (elapsed_s > 0)
        row_write(head, "Elapsed", SECONDS(elapsed_s));
    if (report_base_s(report) <= 0)
        return;
    words_add(&cpu, "%s: Python %s, native %s, kernel %s", SECONDS(cpu_s),
              SECONDS(totals->cpu_python_s), SECONDS(totals->cpu_native_s),
              SECONDS(totals->cpu_kernel_s));
    row_write(head, "CPU", cpu.text);
    row_write(head, "Idle", SECONDS(totals->idle_s));
    format_value(VALUE_WAITS, &totals->wait_s, waits, sizeof waits);
    row_write(head, "Waiting", waits);
}

static void threads_write(const struct head *head)
{
    size_t threads = head->report->threads.count, processes = head->report->processes.count;
    struct words words = { "", 0 };
    if (processes == 0)
        return;
    words_add(&words, "%zu in %zu process%s", threads, processes, processes == 1 ? "" : "es");
    row_write(head, "Threads", words.text);
}

static void sampling_write(const struct head *head)
{
    const struct report_sampling *sampling = &head->report->sampling;
    double elapsed_s = head->report->totals.elapsed_s;
    struct words samples = { "", 0 }, pauses = { "", 0 };
    if (!is_told(head->report->profiler_name))
        return;
    words_add(&samples, "%s at %.0f Hz, %s dropped", COUNT(sampling->samples), sampling->rate_hz,
              COUNT(sampling->dropped));
    if (sampling->missed)
        words_add(&samples, ", %s missed", COUNT(sampling->missed));
    row_write(head, "Samples", samples.text);

    words_add(&pauses, "%s", SECONDS(sampling->paused_s));
    if (sampling->paused_s > 0 && elapsed_s > 0)
        words_add(&pauses, " (%.2f%%) in %s pauses, the longest %s",
                  100 * sampling->paused_s / elapsed_s, COUNT(sampling->pauses),
                  SECONDS(sampling->longest_pause_us / 1e6));
    row_write(head, "Paused", pauses.text);
    row_write(head, "Profiler", SECONDS(sampling->profiler_cpu_s));
}

static void memory_write(const struct head *head)
{
    char peak[32];
    struct words words = { "", 0 };
    if (!head->report->memory)
        return;
    number_text(VALUE_MEGABYTES, &head->report->max_footprint_mb, peak, sizeof peak);
    words_add(&words, "%s at most, growth rate %.1f%%", peak, head->report->growth_rate);
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
