#include "output/compare/strays.h"

#include "output/model/line_text.h"
#include "sampler/base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { LINE_LETTERS_MIN = 16 }; /* a shorter line may be anywhere by chance */

/* Of a name or a text: how often it is on each side alone, and where last. */
struct stray {
    size_t counts[2], places[2];
};

struct strays {
    struct key_index index;
    struct stray *items; /* by number */
};

static void strays_done(struct strays *strays)
{
    key_index_done(&strays->index);
    free(strays->items);
}

/* The text that tells what it is; NULL: that could be anything. */
static const char *text_of(const struct compared *compared)
{
    if (compared->name)
        return compared->name;
    const char *text = compared->text + strspn(compared->text, " \t");
    return strlen(text) >= LINE_LETTERS_MIN && line_is_telling(text) ? text : NULL;
}

static bool is_stray(const struct compared *compared)
{
    return compared->state == COMPARED_ADDED || compared->state == COMPARED_REMOVED;
}

static int strays_find(struct strays *strays, const struct compared_list *list)
{
    strays->items = calloc(list->count + 1, sizeof *strays->items);
    if (!strays->items)
        return -ENOMEM;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = is_stray(&list->items[i]) ? text_of(&list->items[i]) : NULL;
        int64_t number = text ? key_index_add(&strays->index, line_text_key(text)) : 0;
        if (number < 0)
            return (int)number;
        if (!text)
            continue;
        bool is_new = list->items[i].state == COMPARED_ADDED;
        strays->items[number].counts[is_new]++;
        strays->items[number].places[is_new] = i;
    }
    return 0;
}

static void pair_join(const struct compared *from, struct compared *to)
{
    to->old_file = from->old_file;
    to->old_lineno = from->old_lineno;
    to->old_name = from->old_name;
    to->state = COMPARED_MOVED;
    for (int i = 0; i < METRIC_COUNT; i++) {
        to->changes[i].old_value = from->changes[i].old_value;
        to->changes[i].error = hypot(from->changes[i].error, to->changes[i].error);
        to->changes[i].rounding += from->changes[i].rounding;
    }
}

/* An item that was joined to another has no file any more. */
static void list_close_up(struct compared_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].file || list->items[i].old_file)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

int strays_join(struct compared_list *list)
{
    CLEANUP(strays_done) struct strays strays = { 0 };
    int error = strays_find(&strays, list);
    for (size_t i = 0; i < strays.index.count && !error; i++) {
        const struct stray *stray = &strays.items[i];
        if (stray->counts[0] != 1 || stray->counts[1] != 1)
            continue;
        pair_join(&list->items[stray->places[0]], &list->items[stray->places[1]]);
        list->items[stray->places[0]].file = list->items[stray->places[0]].old_file = NULL;
    }
    list_close_up(list);
    return error;
}
