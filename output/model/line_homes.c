#include "output/model/line_homes.h"

#include "output/model/line_text.h"

#include <errno.h>
#include <string.h>

int file_text_compare(const struct report_file *a, const struct report_file *b)
{
    for (size_t i = 0; i < a->lines.count && i < b->lines.count; i++) {
        int order = strcmp(a->lines.items[i].line, b->lines.items[i].line);
        if (order)
            return order;
    }
    return (a->lines.count > b->lines.count) - (a->lines.count < b->lines.count);
}

static double line_base_s(const struct line_stats *line)
{
    return line->cpu_python_s + line->cpu_native_s + line->cpu_kernel_s + line->idle_s;
}

/* Where the text has anything outside of functions, there; rather on a line that says something. */
static uint32_t outside_find(const struct line_homes *homes)
{
    const uint32_t *of_lines = homes->match.functions.sides[1].of_lines;
    uint32_t found = LINE_NONE;
    for (uint32_t i = 0; i < homes->to->lines.count; i++) {
        if (of_lines[i] != LINE_NONE)
            continue;
        if (line_is_telling(homes->to->lines.items[i].line))
            return i;
        if (found == LINE_NONE)
            found = i;
    }
    return found == LINE_NONE ? 0 : found;
}

/*
 * A line that is gone stays in its function: it goes to the line before it there, else to where the
 * function begins. Of a function that is gone, to the one around it, or outside of all.
 */
static uint32_t home_of_gone(const struct line_homes *homes, uint32_t function)
{
    const struct file_functions *functions = homes->match.functions.sides;
    for (; function != LINE_NONE; function = functions[0].items[function].outer) {
        uint32_t twin = functions[0].items[function].twin;
        if (homes->lines[function] != LINE_NONE)
            return homes->lines[function];
        if (twin != LINE_NONE)
            return functions[1].items[twin].first;
    }
    uint32_t outside = homes->lines[functions[0].count];
    return outside != LINE_NONE ? outside : outside_find(homes);
}

/* Does it tell where its neighbours are? Not if it went into another function, or is blank. */
static bool is_telling_home(const struct line_homes *homes, size_t line)
{
    const struct function_match *functions = &homes->match.functions;
    uint32_t to = homes->match.matches[line];
    bool goes_in = functions->sides[0].of_lines[line] == LINE_NONE &&
                   functions->sides[1].of_lines[to] != LINE_NONE;
    return !goes_in && function_match_allows(functions, line, to) &&
           line_is_telling(homes->to->lines.items[to].line);
}

static void homes_fill(struct line_homes *homes)
{
    const struct file_functions *functions = &homes->match.functions.sides[0];
    for (size_t i = 0; i < homes->match.count; i++) {
        uint32_t function = functions->of_lines[i], *home = &homes->match.matches[i];
        size_t place = function == LINE_NONE ? functions->count : function;
        bool is_gone = *home == LINE_NONE;
        if (is_gone) {
            homes->gone_s += line_base_s(&homes->from->lines.items[i]);
            *home = home_of_gone(homes, function);
        }
        if (is_gone || is_telling_home(homes, i))
            homes->lines[place] = *home;
    }
}

int line_homes_init(struct line_homes *homes, const struct report_file *from,
                    const struct report_file *to)
{
    homes->from = from;
    homes->to = to;
    homes->differs = file_text_compare(from, to) != 0;
    if (!homes->differs || file_is_blank(from))
        return 0;
    int error = line_match_init(&homes->match, from, to);
    if (error)
        return error;
    size_t size = (homes->match.functions.sides[0].count + 1) * sizeof *homes->lines;
    homes->lines = malloc(size);
    if (!homes->lines)
        return -ENOMEM;
    memset(homes->lines, 0xFF, size);
    homes_fill(homes);
    return 0;
}

void line_homes_done(struct line_homes *homes)
{
    line_match_done(&homes->match);
    free(homes->lines);
}

int64_t line_homes_of_line(const struct line_homes *homes, int64_t lineno)
{
    int64_t last = (int64_t)homes->to->lines.count;
    if (lineno > 0 && lineno <= (int64_t)homes->match.count)
        lineno = (int64_t)homes->match.matches[lineno - 1] + 1;
    return lineno > last && last > 0 ? last : lineno;
}

/* Which it is in the kept text; LINE_NONE: none, or that is not known. */
static uint32_t twin_find(const struct line_homes *homes, int64_t lineno)
{
    const struct file_functions *functions = &homes->match.functions.sides[0];
    uint32_t number = file_functions_find(functions, homes->from, lineno);
    return number == LINE_NONE ? LINE_NONE : functions->items[number].twin;
}

int64_t line_homes_of_function(const struct line_homes *homes, int64_t lineno)
{
    uint32_t twin = twin_find(homes, lineno);
    return twin == LINE_NONE ? line_homes_of_line(homes, lineno)
                             : (int64_t)homes->match.functions.sides[1].items[twin].first + 1;
}

enum function_kinship line_homes_kinship(const struct line_homes *homes, int64_t lineno,
                                         int64_t kept_lineno)
{
    uint32_t wanted = twin_find(homes, lineno);
    uint32_t found = file_functions_find(&homes->match.functions.sides[1], homes->to, kept_lineno);
    if (wanted == LINE_NONE || found == LINE_NONE)
        return KINSHIP_UNKNOWN;
    return wanted == found ? KINSHIP_SAME : KINSHIP_OTHER;
}
