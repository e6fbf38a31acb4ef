#include "sampler/app/word_list.h"

#include "sampler/base/error.h"

#include <stdlib.h>
#include <string.h>

int word_list_split(const char *text, struct word_list *ret)
{
    size_t count = 0;
    if (!text)
        return 0;
    ret->text = strdup(text);
    if (!ret->text)
        return -ENOMEM;
    char *rest = ret->text;
    for (char *word; count < WORD_LIST_MAX && (word = strsep(&rest, ",")) != NULL;)
        if (*word)
            ret->items[count++] = word;
    return 0;
}

void word_list_done(struct word_list *list)
{
    free(list->text);
}
