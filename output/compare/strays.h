/* What went to another file: a function that only the old profile has and one that only the new one
 * has, of the same name, are one that moved; so are two long lines of the same text. */
#pragma once

#include "output/compare/comparison.h"

/* Joins what nothing else in the list could be meant by. 0 or -ENOMEM. */
int strays_join(struct compared_list *list);
