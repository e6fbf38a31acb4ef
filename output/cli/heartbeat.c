#include "output/cli/heartbeat.h"

#include "output/cli/screen_text.h"
#include "output/model/format.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_SIZE = 2048 };

/* 0:07, 12:34, 1:02:03: of equal length from one second to the next. */
static int elapsed_print(char *into, size_t size, double elapsed_s)
{
    unsigned long long seconds = elapsed_s > 0 ? (unsigned long long)elapsed_s : 0;
    unsigned long long minutes = seconds / 60, hours = minutes / 60;
    if (hours)
        return snprintf(into, size, "%llu:%02llu:%02llu", hours, minutes % 60, seconds % 60);
    return snprintf(into, size, "%llu:%02llu", minutes, seconds % 60);
}

static int hottest_print(char *into, size_t size, const struct heartbeat *heartbeat)
{
    char percent[32];
    const char *slash = strrchr(heartbeat->hottest_file, '/');
    format_value(VALUE_PERCENT, &heartbeat->hottest_percent, percent, sizeof percent);
    return snprintf(into, size, "  %.1000s:%d %s", slash ? slash + 1 : heartbeat->hottest_file,
                    heartbeat->hottest_line, percent);
}

static int rate_print(char *into, size_t size, const struct heartbeat *heartbeat)
{
    return heartbeat->is_off ? snprintf(into, size, "off")
                             : snprintf(into, size, "%.0f Hz", heartbeat->rate_hz);
}

size_t heartbeat_text(const struct heartbeat *heartbeat, size_t columns, char *into, size_t size)
{
    char text[TEXT_SIZE], rss[32], rate[32];
    double megabytes = (double)heartbeat->rss_bytes / 1048576;
    double own = heartbeat->elapsed_s > 0 ? heartbeat->profiler_cpu_s / heartbeat->elapsed_s : 0;
    rate_print(rate, sizeof rate, heartbeat);
    int used = elapsed_print(text, sizeof text, heartbeat->elapsed_s);
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "  %" PRIu64 " samples  %s  %" PRIu64 " dropped  own CPU %.1f%%",
                     heartbeat->samples, rate, heartbeat->dropped, 100 * own);
    if (format_value(VALUE_MEGABYTES, &megabytes, rss, sizeof rss))
        used += snprintf(text + used, sizeof text - (size_t)used, "  RSS %s", rss);
    if (heartbeat->hottest_file)
        hottest_print(text + used, sizeof text - (size_t)used, heartbeat);
    return screen_text_fit(text, columns, into, size);
}

void heartbeat_draw(FILE *out, const struct heartbeat *heartbeat, size_t columns)
{
    char text[TEXT_SIZE];
    heartbeat_text(heartbeat, columns ? columns - 1 : 0, text, sizeof text);
    fprintf(out, "\r%s\033[K", text);
    fflush(out);
}

void heartbeat_erase(FILE *out)
{
    fputs("\r\033[K", out);
    fflush(out);
}
