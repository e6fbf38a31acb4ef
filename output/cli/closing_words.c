#include "output/cli/closing_words.h"

#include "output/cli/screen_text.h"
#include "output/model/format.h"
#include "output/model/ranking.h"
#include "sampler/base/cleanup.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_SIZE = 4096, FACTS_SHOWN = 5 };

/* Below these a run was too short to say anything, and a program mostly waited. */
#define SHORT_S 1.0
#define BUSY_PART 0.05

#define VIRTUAL_TIME_ADVICE "  Virtual time counts CPU time alone: leave out --use-virtual-time.\n"

#define SECONDS(value) seconds_text(value, (char[32]){ "" }, 32)

static const char *seconds_text(double seconds, char *text, size_t size)
{
    if (format_value(VALUE_SECONDS, &seconds, text, size) == 0)
        snprintf(text, size, "0s");
    return text;
}

static void text_print(FILE *out, const char *text)
{
    char shown[TEXT_SIZE];
    screen_text(text, shown, sizeof shown);
    fputs(shown, out);
}

/* ---- saved ---- */

/* One word of a shell's command, whatever is in it. */
static void word_print(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:,+@%=";
    if (*word && *word != '-' && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputs(*word == '-' ? "'./" : "'", out);
    while (*word) {
        char part[TEXT_SIZE];
        size_t length = strcspn(word, "'");
        snprintf(part, sizeof part, "%.*s", (int)length, word);
        text_print(out, part);
        word += length;
        if (*word == '\'') {
            fputs("'\\''", out);
            word++;
        }
    }
    fputc('\'', out);
}

static void command_print(FILE *out, const char *label, const char *command, const char *file)
{
    fprintf(out, "  %-21s%s", label, command);
    if (file) {
        fputc(' ', out);
        word_print(out, file);
    }
    fputc('\n', out);
}

void closing_words_written(FILE *out, const char *what, const char *file)
{
    fprintf(out, "\nscalene-attach: %s saved to ", what);
    text_print(out, file);
    fputc('\n', out);
}

void closing_words_saved(FILE *out, const char *file, const char *usual)
{
    const char *named = strcmp(file, usual) == 0 ? NULL : file;
    closing_words_written(out, "profile", file);
    command_print(out, "To view in browser:", "scalene-attach view", named);
    command_print(out, "To view in terminal:", "scalene-attach view --cli", named);
}

/* ---- nothing to show ---- */

static double cpu_seconds(const struct report *report)
{
    const struct report_totals *totals = &report->totals;
    return totals->cpu_python_s + totals->cpu_native_s + totals->cpu_kernel_s;
}

static bool no_python_ran(const struct report *report)
{
    for (size_t i = 0; i < report->processes.count; i++)
        if (report->processes.items[i].python)
            return false;
    return report->processes.count > 0;
}

static void no_python_explain(FILE *out, const struct report *report)
{
    fputs("no Python ran:\n", out);
    for (size_t i = 0; i < report->processes.count && i < FACTS_SHOWN; i++) {
        const struct report_process *process = &report->processes.items[i];
        fprintf(out, "  process %" PRId64, process->pid);
        if (process->argv.count) {
            fputs(" (", out);
            text_print(out, process->argv.items[0]);
            fputc(')', out);
        }
        fputs(": ", out);
        text_print(out, process->note ? process->note : "is no Python");
        fputc('\n', out);
    }
    fputs("  Name a Python program: scalene-attach -- python3 prog.py\n", out);
}

static void unseen_explain(FILE *out, const struct report *report)
{
    const struct report_sampling *sampling = &report->sampling;
    if (sampling->dropped > 0) {
        fprintf(out, "each of %" PRId64 " looks at a stack found it moving, and was dropped.\n",
                sampling->dropped);
        fputs("  Let threads be paused for a moment: leave out --nonblocking.\n", out);
        return;
    }
    fprintf(out, "no sample was taken in %s.\n", SECONDS(report->totals.elapsed_s));
    if (report->totals.elapsed_s < SHORT_S)
        fputs("  Let it run for longer, or look more often: --rate 1000\n", out);
}

static void waited_explain(FILE *out, const struct report *report)
{
    char waits[TEXT_SIZE];
    fprintf(out, "in %s the program only waited", SECONDS(report->totals.elapsed_s));
    if (format_value(VALUE_WAITS, &report->totals.wait_s, waits, sizeof waits))
        fprintf(out, " (%s)", waits);
}

/* Where there is no time, how often they were met tells which lines come first. */
static void places_print(FILE *out, const struct report *report)
{
    const struct selection met = { .sort = column_find("samples"), .top = FACTS_SHOWN };
    struct ranking ranking = { 0 };
    if (ranking_new(report, &met, RANKING_OF_LINES, &ranking))
        return;
    AUTO_FREE struct ranked *lines = ranking.items;
    for (size_t i = 0; i < ranking.count; i++) {
        fputs("  ", out);
        text_print(out, lines[i].file->path);
        fprintf(out, ":%" PRId64 "\n", lines[i].stats->lineno);
    }
}

/* Only waited, and no file is hidden. */
static void idleness_explain(FILE *out, const struct report *report,
                             const struct profile_settings *settings)
{
    if (!settings->virtual_time) {
        fputs(".\n  Profile it while it works, or for longer.\n", out);
        return;
    }
    fputs(report->files.count ? ", in:\n" : ".\n", out);
    places_print(out, report);
    fputs(VIRTUAL_TIME_ADVICE, out);
}

/* Those that hide files from every other option; NULL: none. */
static const char *filters_given(const struct profile_settings *settings)
{
    bool only = settings->only && *settings->only;
    bool exclude = settings->exclude && *settings->exclude;
    if (only && exclude)
        return "--profile-only and --profile-exclude, which hide files";
    return only      ? "--profile-only, which hides files"
           : exclude ? "--profile-exclude, which hides files"
                     : NULL;
}

/* --profile-only alone shows no library. */
static void hidden_advise(FILE *out, const struct report *report,
                          const struct profile_settings *settings)
{
    const char *filters = filters_given(settings);
    if (report->hidden.by_decorator)
        fputs("  Only functions with @profile are shown: take it away, or run one of them.\n", out);
    if (filters)
        fprintf(out, "  Leave out %s%s.\n", filters,
                settings->profile_all ? "" : "; those of libraries are shown with --profile-all");
    else if (!report->hidden.by_decorator)
        fputs("  Show every file with --profile-all, or some of them with --profile-all "
              "--profile-only NAME,…\n",
              out);
    if (settings->virtual_time && report_base_s(report) < 0.5 * report->totals.elapsed_s)
        fputs(VIRTUAL_TIME_ADVICE, out);
}

static void hidden_explain(FILE *out, const struct report *report,
                           const struct profile_settings *settings)
{
    for (size_t i = 0; i < report->hidden.count && i < FACTS_SHOWN; i++) {
        fprintf(out, "  %8s  ", SECONDS(report->hidden.items[i].seconds));
        text_print(out, report->hidden.items[i].path);
        fputc('\n', out);
    }
    hidden_advise(out, report, settings);
}

static void time_explain(FILE *out, const struct report *report,
                         const struct profile_settings *settings)
{
    bool waited =
        !report_has_time(report) || cpu_seconds(report) <= BUSY_PART * report_base_s(report);
    if (waited)
        waited_explain(out, report);
    else
        fprintf(out, "%s of CPU and idle time passed", SECONDS(report_base_s(report)));
    if (report->hidden.count) {
        fprintf(out, "%s in files that are not shown:\n", waited ? "," : "");
        hidden_explain(out, report, settings);
    } else if (waited) {
        idleness_explain(out, report, settings);
    } else {
        fputs(", none of it below Python code with a file of its own.\n"
              "  Profile it while Python code runs, or for longer.\n",
              out);
    }
}

void closing_words_nothing(FILE *out, const struct report *report,
                           const struct profile_settings *settings)
{
    fputs("scalene-attach: nothing to show: ", out);
    if (no_python_ran(report))
        no_python_explain(out, report);
    else if (report->sampling.samples == 0)
        unseen_explain(out, report);
    else
        time_explain(out, report, settings);
    for (size_t i = 0; i < report->notes.count && i < FACTS_SHOWN; i++) {
        fputs("  Note: ", out);
        text_print(out, report->notes.items[i]);
        fputc('\n', out);
    }
}
