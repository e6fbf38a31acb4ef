/* Texts by number, in the order in which they first come. Equal ones have equal addresses already,
 * because a frame table keeps them. */
#pragma once

#include "output/model/key_index.h"

#include <stdbool.h>

struct text_table { /* all zero is empty */
    struct key_index index;
    const char **texts; /* as many as the index has keys */
    size_t room;
    bool is_short; /* of memory; NULL that is added counts as that, too */
};

/* Its number; 0 when out of memory. */
int64_t text_table_add(struct text_table *table, const char *text);
void text_table_done(struct text_table *table);
