#include "sampler/app/status.h"

#include "output/cli/screen_text.h"
#include "output/json/json_writer.h"
#include "output/model/format.h"

#include <inttypes.h>
#include <stdarg.h>

enum { TEXT_SIZE = 4096 };

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

/* ---- for people ---- */

static __attribute__((format(printf, 3, 4))) void row_write(FILE *into, const char *label,
                                                            const char *format, ...)
{
    char text[TEXT_SIZE], shown[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    screen_text(text, shown, sizeof shown);
    fprintf(into, "  %-12s%s\n", label, shown);
}

/* A view's cell may be empty, a row's may not. */
static const char *seconds_text(double seconds, char *text, size_t size)
{
    if (format_value(VALUE_SECONDS, &seconds, text, size) == 0)
        snprintf(text, size, "0s");
    return text;
}

#define SECONDS(value) seconds_text(value, (char[32]){ "" }, 32)

static void sampling_write_text(FILE *into, const struct sampling_event *sampling)
{
    row_write(into, "Elapsed", "%s", SECONDS(sampling->elapsed_s));
    row_write(into, "Samples", "%" PRIu64 " at %.0f Hz, %" PRIu64 " dropped, %" PRIu64 " missed",
              sampling->samples, sampling->rate_hz, sampling->dropped, sampling->missed);
    row_write(into, "Paused", "%s in %" PRIu64 " pauses, the longest %s",
              SECONDS(sampling->paused_s), sampling->pauses,
              SECONDS(sampling->longest_pause_us / 1e6));
    row_write(into, "Profiler", "%s, %.1f MB at most", SECONDS(sampling->profiler_cpu_s),
              megabytes(sampling->profiler_peak_rss_bytes));
}

void status_write_text(FILE *into, const struct status *status)
{
    const struct profile_glance *glance = &status->glance;
    fprintf(into, "process %d is profiled by process %d (scalene-attach %s): %s\n", status->target,
            status->profiler, status->version, status->is_on ? "on" : "off");
    sampling_write_text(into, status->sampling);
    row_write(into, "Processes", "%zu, %.1f MB", status->processes, megabytes(status->rss_bytes));
    if (glance->hottest_file)
        row_write(into, "Hottest", "%s:%d %.1f%%", glance->hottest_file, glance->hottest_line,
                  glance->hottest_percent);
    row_write(into, "Output", "%s", status->output ? status->output : "a table, at the end");
}

/* ---- as JSON ---- */

static void put_text(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

static void put_count(struct json_writer *json, const char *key, uint64_t count)
{
    json_key(json, key);
    json_integer(json, (int64_t)count);
}

static void put_number(struct json_writer *json, const char *key, double number)
{
    json_key(json, key);
    json_float(json, number);
}

/* The keys of the profile's own `sampling`, as far as they are known while it goes on. */
static void sampling_write_json(struct json_writer *json, const struct sampling_event *sampling)
{
    json_key(json, "sampling");
    json_begin(json, '{');
    put_number(json, "rate_hz", sampling->rate_hz);
    put_count(json, "samples", sampling->samples);
    put_count(json, "retried", sampling->retried);
    put_count(json, "dropped", sampling->dropped);
    put_count(json, "missed", sampling->missed);
    put_count(json, "pauses", sampling->pauses);
    put_number(json, "longest_pause_us", sampling->longest_pause_us);
    put_number(json, "paused_s", sampling->paused_s);
    put_number(json, "profiler_cpu_s", sampling->profiler_cpu_s);
    put_number(json, "profiler_peak_rss_mb", megabytes(sampling->profiler_peak_rss_bytes));
    json_end(json, '}');
}

static void hottest_write_json(struct json_writer *json, const struct profile_glance *glance)
{
    json_key(json, "hottest");
    if (!glance->hottest_file) {
        json_word(json, "null");
        return;
    }
    json_begin(json, '{');
    put_text(json, "file", glance->hottest_file);
    put_count(json, "line", (uint64_t)glance->hottest_line);
    put_number(json, "percent", glance->hottest_percent);
    json_end(json, '}');
}

static void profiler_write_json(struct json_writer *json, const struct status *status)
{
    json_key(json, "profiler");
    json_begin(json, '{');
    put_text(json, "name", "scalene-attach");
    put_text(json, "version", status->version);
    put_count(json, "pid", (uint64_t)status->profiler);
    json_end(json, '}');
}

void status_write_json(FILE *into, const struct status *status)
{
    struct json_writer json = { .into = into };
    json_begin(&json, '{');
    put_count(&json, "pid", (uint64_t)status->target);
    profiler_write_json(&json, status);
    put_text(&json, "mode", status->mode);
    put_text(&json, "state", status->is_on ? "on" : "off");
    put_number(&json, "elapsed_s", status->sampling->elapsed_s);
    put_count(&json, "processes", status->processes);
    put_number(&json, "rss_mb", megabytes(status->rss_bytes));
    sampling_write_json(&json, status->sampling);
    hottest_write_json(&json, &status->glance);
    put_text(&json, "output", status->output);
    json_end(&json, '}');
}
