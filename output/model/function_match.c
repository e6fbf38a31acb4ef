#include "output/model/function_match.h"

#include "output/model/line_text.h"

#include <errno.h>
#include <string.h>

enum { SHARED_LOOKED_AT = 64 }; /* lines of each, where two share a name alone */

struct matcher {
    struct function_match *match;
    const struct report_file *files[2];
    const uint32_t *matches; /* of lines */
};

/* ---- the functions of a file ---- */

/* The word behind def or class; its length is 0 where that is no such line. */
static const char *definition_name(const char *line, size_t *ret_length)
{
    static const char *const words[] = { "async", "def", "class" };
    bool is_definition = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        line += strspn(line, " \t\f");
        if (strncmp(line, words[i], length) != 0 || !line[length] || !strchr(" \t", line[length]))
            continue;
        is_definition |= i > 0;
        line += length;
    }
    line += strspn(line, " \t");
    *ret_length = is_definition ? strcspn(line, " \t\r\n\f\\(:[") : 0;
    return line;
}

/* Behind `outer`, which is all zero where there is nothing around it; all zero where it has none.
 */
static struct key function_name(struct key outer, const char *line)
{
    size_t length;
    const char *name = definition_name(line, &length);
    return length ? line_text_key_add(outer, name, length) : (struct key){ { 0 } };
}

static bool begins_function(const struct report_file *file, size_t index)
{
    const struct line_stats *line = &file->lines.items[index];
    return line->start_function_line == (int64_t)index + 1 &&
           line->end_function_line > (int64_t)index &&
           line->end_function_line <= (int64_t)file->lines.count;
}

/* An inner one ends with the one around it. */
static void function_begin(struct file_functions *functions, const struct report_file *file,
                           size_t index, uint32_t outer)
{
    const struct function_range *around = outer == LINE_NONE ? NULL : &functions->items[outer];
    const struct line_stats *line = &file->lines.items[index];
    uint32_t end = (uint32_t)line->end_function_line;
    functions->items[functions->count++] = (struct function_range){
        .first = (uint32_t)index,
        .end = around && end > around->end ? around->end : end,
        .outer = outer,
        .twin = LINE_NONE,
        .name = function_name(around ? around->name : (struct key){ { 0 } }, line->line),
    };
}

static int functions_read(struct file_functions *functions, const struct report_file *file)
{
    size_t count = 0;
    for (size_t i = 0; i < file->lines.count; i++)
        count += begins_function(file, i);
    functions->items = calloc(count + 1, sizeof *functions->items);
    functions->of_lines = calloc(file->lines.count + 1, sizeof *functions->of_lines);
    if (!functions->items || !functions->of_lines)
        return -ENOMEM;
    uint32_t current = LINE_NONE;
    for (size_t i = 0; i < file->lines.count; i++) {
        while (current != LINE_NONE && functions->items[current].end <= i)
            current = functions->items[current].outer;
        if (begins_function(file, i)) {
            function_begin(functions, file, i, current);
            current = (uint32_t)functions->count - 1;
        }
        functions->of_lines[i] = current;
    }
    return 0;
}

/* ---- which is which ---- */

static struct function_range *function_at(const struct matcher *matcher, size_t side, size_t number)
{
    return &matcher->match->sides[side].items[number];
}

static bool is_free(const struct matcher *matcher, size_t side, size_t number)
{
    return function_at(matcher, side, number)->twin == LINE_NONE;
}

static const char *text_at(const struct matcher *matcher, size_t side, size_t line)
{
    return matcher->files[side]->lines.items[line].line;
}

static void functions_pair(struct matcher *matcher, uint32_t from, uint32_t to)
{
    if (!is_free(matcher, 0, from) || !is_free(matcher, 1, to))
        return;
    function_at(matcher, 0, from)->twin = to;
    function_at(matcher, 1, to)->twin = from;
}

/* Beside their first lines. */
static bool share_line(const struct matcher *matcher, uint32_t from, uint32_t to)
{
    const struct function_range *a = function_at(matcher, 0, from);
    const struct function_range *b = function_at(matcher, 1, to);
    for (size_t i = a->first + 1; i < a->end && i < a->first + SHARED_LOOKED_AT; i++)
        for (size_t j = b->first + 1; j < b->end && j < b->first + SHARED_LOOKED_AT; j++)
            if (line_is_indented(text_at(matcher, 0, i), text_at(matcher, 1, j)))
                return true;
    return false;
}

/* Of a name: how often it is on each side, and where last. */
struct named {
    uint32_t counts[2], places[2];
};

static struct key name_of(const struct matcher *matcher, size_t side, size_t number,
                          bool is_qualified)
{
    const struct function_range *function = function_at(matcher, side, number);
    return is_qualified
               ? function->name
               : function_name((struct key){ { 0 } }, text_at(matcher, side, function->first));
}

static int names_find(const struct matcher *matcher, bool is_qualified, struct key_index *index,
                      struct named *named)
{
    for (size_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < matcher->match->sides[s].count; i++) {
            struct key name = name_of(matcher, s, i, is_qualified);
            if (!is_free(matcher, s, i) || !name.part[2])
                continue;
            int64_t number = key_index_add(index, name);
            if (number < 0)
                return (int)number;
            named[number].counts[s]++;
            named[number].places[s] = i;
        }
    return 0;
}

/* Those whose name is there once on each side. Without what is around them it is not enough. */
static int names_match(struct matcher *matcher, bool is_qualified)
{
    CLEANUP(key_index_done) struct key_index index = { 0 };
    size_t count = matcher->match->sides[0].count + matcher->match->sides[1].count;
    AUTO_FREE struct named *named = calloc(count + 1, sizeof *named);
    int error = named ? names_find(matcher, is_qualified, &index, named) : -ENOMEM;
    for (size_t i = 0; i < index.count && !error; i++) {
        const struct named *name = &named[i];
        if (name->counts[0] == 1 && name->counts[1] == 1 &&
            (is_qualified || share_line(matcher, name->places[0], name->places[1])))
            functions_pair(matcher, name->places[0], name->places[1]);
    }
    return error;
}

static void first_lines_match(struct matcher *matcher)
{
    const struct file_functions *functions = matcher->match->sides;
    for (uint32_t i = 0; i < functions[0].count; i++) {
        uint32_t line = matcher->matches[functions[0].items[i].first];
        uint32_t to = line == LINE_NONE ? LINE_NONE : functions[1].of_lines[line];
        if (to != LINE_NONE && functions[1].items[to].first == line)
            functions_pair(matcher, i, to);
    }
}

/* Of an old function: the new one in which most of its lines are, as far as one has most (the
 * majority vote of Boyer and Moore). */
struct vote {
    uint32_t elected;
    size_t lead;
};

static void vote_add(struct vote *vote, uint32_t choice)
{
    if (vote->lead == 0)
        vote->elected = choice;
    if (vote->elected == choice)
        vote->lead++;
    else
        vote->lead--;
}

static int lines_vote(struct matcher *matcher)
{
    const struct file_functions *functions = matcher->match->sides;
    AUTO_FREE struct vote *votes = calloc(functions[0].count + 1, sizeof *votes);
    if (!votes)
        return -ENOMEM;
    for (size_t i = 0; i < matcher->files[0]->lines.count; i++) {
        uint32_t from = functions[0].of_lines[i], line = matcher->matches[i];
        if (from != LINE_NONE && line != LINE_NONE && line_is_telling(text_at(matcher, 0, i)))
            vote_add(&votes[from], functions[1].of_lines[line]);
    }
    for (uint32_t i = 0; i < functions[0].count; i++)
        if (votes[i].lead && votes[i].elected != LINE_NONE)
            functions_pair(matcher, i, votes[i].elected);
    return 0;
}

/* ---- the whole ---- */

int function_match_init(struct function_match *match, const struct report_file *old_file,
                        const struct report_file *new_file, const uint32_t *matches)
{
    struct matcher matcher = { match, { old_file, new_file }, matches };
    *match = (struct function_match){ 0 };
    int error = functions_read(&match->sides[0], old_file);
    if (!error)
        error = functions_read(&match->sides[1], new_file);
    if (!error)
        error = names_match(&matcher, true);
    if (!error) {
        first_lines_match(&matcher);
        error = names_match(&matcher, false);
    }
    if (!error)
        error = lines_vote(&matcher);
    if (error)
        function_match_done(match);
    return error;
}

void function_match_done(struct function_match *match)
{
    for (size_t s = 0; s < 2; s++) {
        free(match->sides[s].items);
        free(match->sides[s].of_lines);
    }
    *match = (struct function_match){ 0 };
}

uint32_t file_functions_find(const struct file_functions *functions, const struct report_file *file,
                             int64_t lineno)
{
    size_t low = 0, high = functions->count;
    if (lineno < 1 || lineno > (int64_t)file->lines.count)
        return LINE_NONE;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (functions->items[middle].first + 1 < lineno)
            low = middle + 1;
        else
            high = middle;
    }
    const char *text = file->lines.items[lineno - 1].line;
    bool is_found = low < functions->count && (functions->items[low].first + 1 == lineno ||
                                               text[strspn(text, " \t\f")] == '@');
    return is_found ? (uint32_t)low : LINE_NONE;
}

static uint32_t twin_of(const struct file_functions *functions, uint32_t number)
{
    return number == LINE_NONE ? LINE_NONE : functions->items[number].twin;
}

bool function_match_allows(const struct function_match *match, size_t old_line, size_t new_line)
{
    uint32_t from = match->sides[0].of_lines[old_line], to = match->sides[1].of_lines[new_line];
    uint32_t wanted = twin_of(&match->sides[0], from);
    return wanted == LINE_NONE ? twin_of(&match->sides[1], to) == LINE_NONE : wanted == to;
}
