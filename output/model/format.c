#include "output/model/format.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text that may be cut; `length` goes on counting, as with snprintf. */
struct out {
    char *text;
    size_t size, length;
};

static __attribute__((format(printf, 2, 3))) void put(struct out *out, const char *format, ...)
{
    char *at = out->length < out->size ? out->text + out->length : NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(at, at ? out->size - out->length : 0, format, arguments);
    va_end(arguments);
    out->length += length > 0 ? (size_t)length : 0;
}

/* Exactly in the middle between two texts of so many digits? Multiplied without rounding. */
static bool is_middle(double value, int digits)
{
    static const double halves[] = { 2, 20, 200 };
    double nearest = rint(value * halves[digits]);
    return fma(value, halves[digits], -nearest) == 0 && fmod(nearest, 2) == 1;
}

/* Nothing real is so large, but a profile may say so; more digits would only push all else away. */
#define LARGE 1e10
#define LARGE_S (3600 * 1e7)
#define LARGEST 1e300 /* no number at all, like what is infinite: none of its units overflows */

static bool is_number(double value)
{
    return fabs(value) <= LARGEST;
}

/* The middle goes up, as in the page's toFixed, and not to the even digit as in printf. */
static void put_fixed(struct out *out, int digits, double value)
{
    if (fabs(value) >= LARGE)
        put(out, "%.3g", value);
    else
        put(out, "%.*f", digits, is_middle(value, digits) ? nextafter(value, INFINITY) : value);
}

/* Three digits where they say something: 1.23, 12.3, 123. The limits are where rounding adds a
 * digit. */
static void put_three(struct out *out, double value)
{
    put_fixed(out, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
}

/* One digit behind the point, and never so few that it looks like nothing. */
static void put_tenths(struct out *out, double value, const char *unit)
{
    if (value > 0 && value < 0.05) {
        put(out, "<0.1%s", unit);
    } else if (value != 0) {
        put_fixed(out, 1, value);
        put(out, "%s", unit);
    }
}

static void put_percent(struct out *out, double percent)
{
    if (percent < 99.95) {
        put_tenths(out, percent, "%");
        return;
    }
    put_fixed(out, 0, percent);
    put(out, "%%");
}

static void put_points(struct out *out, double points)
{
    if (points <= 0)
        return;
    put(out, "±");
    put_fixed(out, 1, points < 0.1 ? 0.1 : points);
}

static void put_fraction(struct out *out, double fraction)
{
    if (fraction <= 0)
        return;
    if (fraction < 0.005) {
        put(out, "<1%%");
        return;
    }
    put_fixed(out, 0, 100 * fraction);
    put(out, "%%");
}

static void put_seconds(struct out *out, double seconds)
{
    if (!is_number(seconds) || seconds <= 0)
        return;
    if (seconds >= LARGE_S) {
        put(out, "%.3gh", seconds / 3600);
    } else if (seconds >= 3599.5) {
        double minutes = floor(seconds / 60 + 0.5);
        put(out, "%.0fh%02.0fm", floor(minutes / 60), fmod(minutes, 60));
    } else if (seconds >= 0.9995) {
        put_three(out, seconds);
        put(out, "s");
    } else if (seconds >= 0.0009995) {
        put_three(out, 1e3 * seconds);
        put(out, "ms");
    } else {
        put_fixed(out, 0, seconds < 1e-6 ? 1 : 1e6 * seconds);
        put(out, "us");
    }
}

static void put_megabytes(struct out *out, double megabytes)
{
    static const char units[] = "BKMGTP";
    if (megabytes <= 0)
        return;
    double amount = 1048576 * megabytes;
    size_t unit = 0;
    for (; amount >= 999.5 && units[unit + 1]; unit++)
        amount /= 1024;
    if (unit == 0)
        put_fixed(out, 0, amount < 1 ? 1 : amount);
    else
        put_three(out, amount);
    put(out, "%c", units[unit]);
}

static void put_rate(struct out *out, double megabytes)
{
    put_megabytes(out, megabytes);
    if (megabytes > 0)
        put(out, "/s");
}

static void put_number(struct out *out, double number)
{
    put_tenths(out, number, "");
}

static void put_count(struct out *out, int64_t count)
{
    static const char units[] = "kMGTPE";
    if (count == 0)
        return;
    if (count < 100000) {
        put(out, "%lld", (long long)count);
        return;
    }
    double amount = (double)count / 1000;
    size_t unit = 0;
    for (; amount >= 999.5; unit++)
        amount /= 1000;
    put_three(out, amount);
    put(out, "%c", units[unit]);
}

static void put_source(struct out *out, const char *source)
{
    put(out, "%.*s", (int)strcspn(source, "\r\n"), source);
}

enum { SPARK_CELLS = 10, SPARK_CELLS_MAX = 64 };

/* A bar for each cell of equal width, over the largest value in it; a cell without points has none.
 */
static void put_spark(struct out *out, const struct point_list *list, size_t cells)
{
    enum { STEPS = 8 };
    double most[SPARK_CELLS_MAX] = { 0 }, top = 0;
    size_t last = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t cell = list->count <= cells ? i : i * cells / list->count;
        double told = list->items[i].megabytes, megabytes = is_number(told) ? told : 0;
        most[cell] = megabytes > most[cell] ? megabytes : most[cell];
        top = megabytes > top ? megabytes : top;
        last = cell + 1;
    }
    for (size_t i = 0; i < last; i++) {
        int step = top > 0 ? (int)(most[i] / top * (STEPS - 1) + 0.5) : 0;
        put(out, "\xe2\x96%c", 0x81 + step); /* U+2581 to U+2588 */
    }
}

static void put_texts(struct out *out, const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        put(out, "%s%s", i ? ", " : "", list->items[i]);
}

/* The two that took the most. */
static void put_waits(struct out *out, const struct wait_times *waits)
{
    size_t taken = WAIT_KINDS;
    for (int round = 0; round < 2; round++) {
        size_t most = WAIT_KINDS;
        for (size_t i = 0; i < WAIT_KINDS; i++) {
            if (i != taken && is_number(waits->seconds[i]) &&
                waits->seconds[i] > (most < WAIT_KINDS ? waits->seconds[most] : 0))
                most = i;
        }
        if (most == WAIT_KINDS)
            return;
        put(out, "%s%s ", round ? ", " : "", thread_state_name(THREAD_WAIT_GIL + most));
        put_seconds(out, waits->seconds[most]);
        taken = most;
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_native(struct out *out, const struct native_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct native_share *share = &list->items[i];
        const char *module = *share->module ? file_name(share->module) : IN_NO_FILE;
        if (*share->symbol)
            put(out, "%s%s (%s) ", i ? ", " : "", share->symbol, module);
        else
            put(out, "%s%s ", i ? ", " : "", module);
        put_seconds(out, share->seconds);
    }
}

static void put_text(struct out *out, const char *text)
{
    if (text)
        put(out, "%s", text);
}

static void put_double(struct out *out, enum value_kind kind, double value)
{
    static void (*const puts[])(struct out * out, double value) = {
        [VALUE_PERCENT] = put_percent,     [VALUE_POINTS] = put_points,
        [VALUE_FRACTION] = put_fraction,   [VALUE_SECONDS] = put_seconds,
        [VALUE_MEGABYTES] = put_megabytes, [VALUE_RATE] = put_rate,
        [VALUE_NUMBER] = put_number,
    };
    if (is_number(value))
        puts[kind](out, value);
}

static void put_value(struct out *out, enum value_kind kind, const void *value)
{
    switch (kind) {
    case VALUE_TEXT:
        return put_text(out, *(const char *const *)value);
    case VALUE_SOURCE:
        return put_source(out, *(const char *const *)value ? *(const char *const *)value : "");
    case VALUE_FLAG:
        return put_text(out, *(const bool *)value ? "yes" : NULL);
    case VALUE_LINE:
        if (*(const int64_t *)value > 0)
            put(out, "%lld", (long long)*(const int64_t *)value);
        return;
    case VALUE_COUNT:
        return put_count(out, *(const int64_t *)value);
    case VALUE_PERCENT:
    case VALUE_POINTS:
    case VALUE_FRACTION:
    case VALUE_SECONDS:
    case VALUE_MEGABYTES:
    case VALUE_RATE:
    case VALUE_NUMBER:
        return put_double(out, kind, *(const double *)value);
    case VALUE_SPARK:
        return put_spark(out, value, SPARK_CELLS);
    case VALUE_TEXTS:
        return put_texts(out, value);
    case VALUE_WAITS:
        return put_waits(out, value);
    case VALUE_NATIVE:
        return put_native(out, value);
    case VALUE_MOMENTS:
        return put_count(out, (int64_t)((const struct number_list *)value)->count);
    case VALUE_KIND_COUNT:
        break;
    }
}

size_t format_value(enum value_kind kind, const void *value, char *text, size_t size)
{
    struct out out = { text, size, 0 };
    if (size)
        text[0] = '\0';
    put_value(&out, kind, value);
    return out.length;
}

size_t format_spark(const struct point_list *points, size_t cells, char *text, size_t size)
{
    struct out out = { text, size, 0 };
    if (size)
        text[0] = '\0';
    put_spark(&out, points, cells < SPARK_CELLS_MAX ? cells : SPARK_CELLS_MAX);
    return out.length;
}

bool format_is_number(enum value_kind kind)
{
    return kind != VALUE_TEXT && kind != VALUE_SOURCE && kind != VALUE_TEXTS &&
           kind != VALUE_WAITS && kind != VALUE_NATIVE && kind != VALUE_SPARK;
}
