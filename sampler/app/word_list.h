/* "a,b" as a list. */
#pragma once

enum { WORD_LIST_MAX = 64 };

struct word_list {
    char *text;
    const char *items[WORD_LIST_MAX + 1];
};

/* NULL is the empty list, with no text. Empty words are left out, and those beyond the limit. 0 or
 * -ENOMEM. */
int word_list_split(const char *text, struct word_list *ret);
void word_list_done(struct word_list *list);
