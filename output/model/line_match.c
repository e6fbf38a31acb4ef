#include "output/model/line_match.h"

#include "output/model/line_text.h"

#include <errno.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,        /* of the search between lines that are there once */
    CELLS_MAX = 1 << 20,   /* of the table for what has no such lines */
    EDITED_LOOKED_AT = 64, /* lines that one is compared with */
};

struct side {
    const struct line_stats *lines;
    size_t count;
    uint32_t *ids;   /* equal texts, equal numbers */
    uint32_t *twins; /* index on the other side, or LINE_NONE */
};

struct matcher {
    struct side sides[2];
    size_t id_count;
    uint32_t *seen[2]; /* by id: how often in what is looked at, */
    uint32_t *at[2];   /* and where last */
    uint32_t *piles, *previous;
    uint32_t *cells;
    struct function_match functions;
};

/* ---- texts ---- */

static int ids_fill(struct matcher *matcher)
{
    struct key_index index = { 0 };
    int error = 0;
    for (size_t s = 0; s < 2 && !error; s++) {
        struct side *side = &matcher->sides[s];
        for (size_t i = 0; i < side->count && !error; i++) {
            int64_t id = key_index_add(&index, line_text_key(side->lines[i].line));
            error = id < 0 ? (int)id : 0;
            side->ids[i] = (uint32_t)id;
        }
    }
    matcher->id_count = index.count;
    key_index_done(&index);
    return error;
}

/* ---- what stayed in order ---- */

struct range {
    size_t first[2], end[2]; /* of each side */
};

static void twins_set(struct matcher *matcher, size_t old_line, size_t new_line)
{
    matcher->sides[0].twins[old_line] = (uint32_t)new_line;
    matcher->sides[1].twins[new_line] = (uint32_t)old_line;
}

static bool is_equal(const struct matcher *matcher, size_t old_line, size_t new_line)
{
    return matcher->sides[0].ids[old_line] == matcher->sides[1].ids[new_line];
}

static void ends_match(struct matcher *matcher, struct range *range)
{
    while (range->first[0] < range->end[0] && range->first[1] < range->end[1] &&
           is_equal(matcher, range->first[0], range->first[1]))
        twins_set(matcher, range->first[0]++, range->first[1]++);
    while (range->first[0] < range->end[0] && range->first[1] < range->end[1] &&
           is_equal(matcher, range->end[0] - 1, range->end[1] - 1))
        twins_set(matcher, --range->end[0], --range->end[1]);
}

static void seen_count(struct matcher *matcher, const struct range *range)
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = range->first[s]; i < range->end[s]; i++) {
            matcher->seen[0][matcher->sides[s].ids[i]] = 0;
            matcher->seen[1][matcher->sides[s].ids[i]] = 0;
        }
    for (size_t s = 0; s < 2; s++)
        for (size_t i = range->first[s]; i < range->end[s]; i++) {
            matcher->seen[s][matcher->sides[s].ids[i]]++;
            matcher->at[s][matcher->sides[s].ids[i]] = (uint32_t)i;
        }
}

/*
 * Lines that are there once on each side, and of those the most that are in the same order on both:
 * old lines are laid on piles, each onto the first whose top has no smaller place in the new text,
 * and remember the top of the pile before. Their number.
 */
static size_t anchors_match(struct matcher *matcher, const struct range *range)
{
    const uint32_t *ids = matcher->sides[0].ids, *places = matcher->at[1];
    size_t count = 0;
    seen_count(matcher, range);
    for (size_t i = range->first[0]; i < range->end[0]; i++) {
        size_t low = 0, high = count;
        if (matcher->seen[0][ids[i]] != 1 || matcher->seen[1][ids[i]] != 1)
            continue;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (places[ids[matcher->piles[middle]]] < places[ids[i]])
                low = middle + 1;
            else
                high = middle;
        }
        matcher->previous[i] = low ? matcher->piles[low - 1] : LINE_NONE;
        matcher->piles[low] = (uint32_t)i;
        count += low == count;
    }
    for (uint32_t i = count ? matcher->piles[count - 1] : LINE_NONE; i != LINE_NONE;
         i = matcher->previous[i])
        twins_set(matcher, i, places[ids[i]]);
    return count;
}

/* The longest common subsequence, by the table that everyone knows: cell (i, j) is the length for
 * what is behind old line i and new line j. */
static void table_match(struct matcher *matcher, const struct range *range)
{
    size_t rows = range->end[0] - range->first[0], columns = range->end[1] - range->first[1];
    size_t wide = columns + 1, i, j;
    uint32_t *cells = matcher->cells;
    if ((rows + 1) > CELLS_MAX / wide)
        return;
    memset(cells, 0, (rows + 1) * wide * sizeof *cells);
    for (i = rows; i-- > 0;)
        for (j = columns; j-- > 0;) {
            uint32_t down = cells[(i + 1) * wide + j], right = cells[i * wide + j + 1];
            bool equal = is_equal(matcher, range->first[0] + i, range->first[1] + j);
            cells[i * wide + j] = equal          ? 1 + cells[(i + 1) * wide + j + 1]
                                  : down > right ? down
                                                 : right;
        }
    for (i = 0, j = 0; i < rows && j < columns;) {
        if (is_equal(matcher, range->first[0] + i, range->first[1] + j))
            twins_set(matcher, range->first[0] + i++, range->first[1] + j++);
        else if (cells[(i + 1) * wide + j] >= cells[i * wide + j + 1])
            i++;
        else
            j++;
    }
}

static void range_match(struct matcher *matcher, struct range range, int depth)
{
    ends_match(matcher, &range);
    if (range.first[0] == range.end[0] || range.first[1] == range.end[1])
        return;
    if (depth == DEPTH_MAX || anchors_match(matcher, &range) == 0) {
        table_match(matcher, &range);
        return;
    }
    struct range between = range;
    for (size_t i = range.first[0]; i <= range.end[0]; i++) {
        bool is_end = i == range.end[0];
        uint32_t twin = is_end ? (uint32_t)range.end[1] : matcher->sides[0].twins[i];
        if (twin == LINE_NONE)
            continue;
        between.end[0] = i;
        between.end[1] = twin;
        range_match(matcher, between, depth + 1);
        between.first[0] = i + 1;
        between.first[1] = (size_t)twin + 1;
    }
}

/* ---- what moved ---- */

static bool is_free_pair(const struct matcher *matcher, size_t old_line, size_t new_line)
{
    return old_line < matcher->sides[0].count && new_line < matcher->sides[1].count &&
           matcher->sides[0].twins[old_line] == LINE_NONE &&
           matcher->sides[1].twins[new_line] == LINE_NONE && is_equal(matcher, old_line, new_line);
}

/* The line, and its neighbours as far as they came along. */
static void block_match(struct matcher *matcher, size_t old_line, size_t new_line,
                        unsigned char *fates)
{
    for (size_t i = old_line, j = new_line; is_free_pair(matcher, i, j); i++, j++) {
        twins_set(matcher, i, j);
        fates[i] = LINE_MOVED;
    }
    for (size_t i = old_line, j = new_line; i-- > 0 && j-- > 0 && is_free_pair(matcher, i, j);) {
        twins_set(matcher, i, j);
        fates[i] = LINE_MOVED;
    }
}

static void moved_match(struct matcher *matcher, unsigned char *fates)
{
    for (size_t s = 0; s < 2; s++) {
        const struct side *side = &matcher->sides[s];
        memset(matcher->seen[s], 0, matcher->id_count * sizeof *matcher->seen[s]);
        for (size_t i = 0; i < side->count; i++)
            if (side->twins[i] == LINE_NONE) {
                matcher->seen[s][side->ids[i]]++;
                matcher->at[s][side->ids[i]] = (uint32_t)i;
            }
    }
    for (size_t i = 0; i < matcher->sides[0].count; i++) {
        uint32_t id = matcher->sides[0].ids[i];
        if (matcher->sides[0].twins[i] == LINE_NONE && matcher->seen[0][id] == 1 &&
            matcher->seen[1][id] == 1 && line_is_telling(matcher->sides[0].lines[i].line))
            block_match(matcher, i, matcher->at[1][id], fates);
    }
}

/* ---- what crossed functions ---- */

/* A line that others are equal to may have found one of another function: it was not meant. */
static void crossing_free(struct matcher *matcher, const struct range *whole, unsigned char *fates)
{
    const struct side *sides = matcher->sides;
    seen_count(matcher, whole);
    for (size_t i = 0; i < sides[0].count; i++) {
        uint32_t twin = sides[0].twins[i], id = sides[0].ids[i];
        bool is_alone = matcher->seen[0][id] == 1 && matcher->seen[1][id] == 1;
        if (twin == LINE_NONE || is_alone || function_match_allows(&matcher->functions, i, twin))
            continue;
        sides[0].twins[i] = sides[1].twins[twin] = LINE_NONE;
        fates[i] = LINE_GONE;
    }
}

/* ---- what was edited ---- */

/* Lines that are looked for in gaps, those that are most alike first. */
static const struct likeness {
    bool (*holds)(const char *a, const char *b);
    bool in_whole; /* not in functions alone */
} likenesses[] = {
    { line_is_equal, false },
    { line_is_indented, true },
    { line_is_similar, true },
};

/* Where a line has moved, those that come along have. */
static void free_pair_match(struct matcher *matcher, size_t old_line, size_t new_line,
                            unsigned char *fates)
{
    bool follows = old_line && fates[old_line - 1] == LINE_KEPT &&
                   (size_t)matcher->sides[0].twins[old_line - 1] + 1 == new_line;
    twins_set(matcher, old_line, new_line);
    fates[old_line] = !is_equal(matcher, old_line, new_line) ? LINE_EDITED
                      : follows                              ? LINE_KEPT
                                                             : LINE_MOVED;
}

static bool is_within(uint32_t line, const struct range *range)
{
    return line != LINE_NONE && line >= range->first[1] && line < range->end[1];
}

/* Free old lines from `first` to `end`, and the new ones that stand between the same two. */
static void gap_match(struct matcher *matcher, const struct range *range, size_t first, size_t end,
                      const struct likeness *likeness, unsigned char *fates)
{
    const struct side *old_side = &matcher->sides[0], *new_side = &matcher->sides[1];
    size_t from = range->first[1], to = range->end[1];
    if (first > range->first[0] && is_within(old_side->twins[first - 1], range))
        from = (size_t)old_side->twins[first - 1] + 1;
    if (end < range->end[0] && is_within(old_side->twins[end], range))
        to = old_side->twins[end];
    for (size_t i = first; i < end; i++)
        for (size_t j = from; j < to && j < from + EDITED_LOOKED_AT; j++) {
            if (new_side->twins[j] != LINE_NONE ||
                !function_match_allows(&matcher->functions, i, j) ||
                !likeness->holds(old_side->lines[i].line, new_side->lines[j].line))
                continue;
            free_pair_match(matcher, i, j, fates);
            from = j + 1;
            break;
        }
}

/* Where a line may be: in the function that its own has become, if any has, or anywhere. */
static bool range_find(const struct matcher *matcher, size_t line, bool in_function,
                       struct range *ret)
{
    const struct file_functions *functions = matcher->functions.sides;
    uint32_t number = functions[0].of_lines[line];
    if (!in_function) {
        *ret = (struct range){ .end = { matcher->sides[0].count, matcher->sides[1].count } };
        return true;
    }
    if (number == LINE_NONE || functions[0].items[number].twin == LINE_NONE)
        return false;
    const struct function_range *from = &functions[0].items[number];
    const struct function_range *to = &functions[1].items[from->twin];
    *ret = (struct range){ { from->first, to->first }, { from->end, to->end } };
    return true;
}

static void gaps_match(struct matcher *matcher, const struct likeness *likeness, bool in_function,
                       unsigned char *fates)
{
    const struct side *side = &matcher->sides[0];
    const uint32_t *of_lines = matcher->functions.sides[0].of_lines;
    struct range range;
    for (size_t i = 0, end; i < side->count; i = end + (end == i)) {
        end = i;
        while (end < side->count && side->twins[end] == LINE_NONE &&
               (!in_function || of_lines[end] == of_lines[i]))
            end++;
        if (end > i && range_find(matcher, i, in_function, &range))
            gap_match(matcher, &range, i, end, likeness, fates);
    }
}

/* Of functions that found each other, whatever their names and arguments are now. */
static void first_lines_match(struct matcher *matcher, unsigned char *fates)
{
    const struct file_functions *functions = matcher->functions.sides;
    for (size_t i = 0; i < functions[0].count; i++) {
        const struct function_range *from = &functions[0].items[i];
        uint32_t to = from->twin == LINE_NONE ? LINE_NONE : functions[1].items[from->twin].first;
        if (to != LINE_NONE && matcher->sides[0].twins[from->first] == LINE_NONE &&
            matcher->sides[1].twins[to] == LINE_NONE)
            free_pair_match(matcher, from->first, to, fates);
    }
}

/* In functions that found each other, wherever these stand, then between lines that did. */
static void edited_match(struct matcher *matcher, unsigned char *fates)
{
    first_lines_match(matcher, fates);
    for (size_t i = 0; i < sizeof likenesses / sizeof *likenesses; i++)
        gaps_match(matcher, &likenesses[i], true, fates);
    for (size_t i = 0; i < sizeof likenesses / sizeof *likenesses; i++)
        if (likenesses[i].in_whole)
            gaps_match(matcher, &likenesses[i], false, fates);
}

/* ---- the whole ---- */

static void matcher_done(struct matcher *matcher)
{
    for (size_t s = 0; s < 2; s++) {
        free(matcher->sides[s].ids);
        free(matcher->sides[s].twins);
        free(matcher->seen[s]);
        free(matcher->at[s]);
    }
    free(matcher->piles);
    free(matcher->previous);
    free(matcher->cells);
    function_match_done(&matcher->functions);
}

static uint32_t *numbers_new(size_t count)
{
    return calloc(count + 1, sizeof(uint32_t));
}

static int matcher_init(struct matcher *matcher)
{
    size_t all = matcher->sides[0].count + matcher->sides[1].count;
    bool fails = false;
    for (size_t s = 0; s < 2; s++) {
        struct side *side = &matcher->sides[s];
        side->ids = numbers_new(side->count);
        side->twins = numbers_new(side->count);
        matcher->seen[s] = numbers_new(all);
        matcher->at[s] = numbers_new(all);
        fails |= !side->ids || !side->twins || !matcher->seen[s] || !matcher->at[s];
        if (side->twins)
            memset(side->twins, 0xFF, (side->count + 1) * sizeof(uint32_t));
    }
    matcher->piles = numbers_new(matcher->sides[0].count);
    matcher->previous = numbers_new(matcher->sides[0].count);
    matcher->cells = malloc(CELLS_MAX * sizeof *matcher->cells);
    fails |= !matcher->piles || !matcher->previous || !matcher->cells;
    return fails ? -ENOMEM : ids_fill(matcher);
}

bool file_is_blank(const struct report_file *file)
{
    for (size_t i = 0; i < file->lines.count; i++)
        if (*file->lines.items[i].line)
            return false;
    return true;
}

static void numbers_match(struct matcher *matcher)
{
    for (size_t i = 0; i < matcher->sides[0].count && i < matcher->sides[1].count; i++)
        twins_set(matcher, i, i);
}

int line_match_init(struct line_match *match, const struct report_file *old_file,
                    const struct report_file *new_file)
{
    CLEANUP(matcher_done)
    struct matcher matcher = {
        .sides = { { old_file->lines.items, old_file->lines.count, NULL, NULL },
                   { new_file->lines.items, new_file->lines.count, NULL, NULL } },
    };
    AUTO_FREE unsigned char *fates = calloc(old_file->lines.count + 1, 1);
    int error = fates ? matcher_init(&matcher) : -ENOMEM;
    if (error)
        return error;
    struct range whole = { .end = { matcher.sides[0].count, matcher.sides[1].count } };
    if (file_is_blank(old_file) || file_is_blank(new_file))
        numbers_match(&matcher);
    else
        range_match(&matcher, whole, 0);
    for (size_t i = 0; i < matcher.sides[0].count; i++)
        fates[i] = matcher.sides[0].twins[i] == LINE_NONE ? LINE_GONE : LINE_KEPT;
    moved_match(&matcher, fates);
    error = function_match_init(&matcher.functions, old_file, new_file, matcher.sides[0].twins);
    if (error)
        return error;
    crossing_free(&matcher, &whole, fates);
    edited_match(&matcher, fates);
    *match = (struct line_match){ matcher.sides[0].count, TAKE_PTR(matcher.sides[0].twins),
                                  TAKE_PTR(fates), matcher.functions };
    matcher.functions = (struct function_match){ 0 };
    return 0;
}

bool line_match_same_function(const struct line_match *match, const struct report_file *old_file,
                              int64_t old_lineno, const struct report_file *new_file,
                              int64_t new_lineno)
{
    const struct file_functions *functions = match->functions.sides;
    uint32_t from = file_functions_find(&functions[0], old_file, old_lineno);
    uint32_t to = file_functions_find(&functions[1], new_file, new_lineno);
    if (from != LINE_NONE && to != LINE_NONE)
        return functions[0].items[from].twin == to;
    return old_lineno > 0 && old_lineno <= (int64_t)match->count && new_lineno > 0 &&
           match->matches[old_lineno - 1] == new_lineno - 1;
}

void line_match_done(struct line_match *match)
{
    free(match->matches);
    free(match->fates);
    function_match_done(&match->functions);
    *match = (struct line_match){ 0 };
}
