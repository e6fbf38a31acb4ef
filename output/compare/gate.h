/*
 * A limit to how much a metric may change, as in cpu>+10%, memory>+50MB or cpu:main.py>+0.5s:
 * METRIC[:PLACE] then > or <, then a number with %, s or MB. A place is the end of a file's path or
 * the name of a function. What lies within the margins of sampling never exceeds a limit.
 */
#pragma once

#include "output/compare/comparison.h"
#include "sampler/base/error.h"

struct gate {
    const char *text;  /* borrowed: the whole */
    const char *place; /* borrowed from it; NULL: the run as a whole */
    size_t place_length;
    enum metric metric;
    bool is_upper; /* > */
    bool is_percent;
    double limit;
};

/* 0, or -EINVAL and one sentence that says what is known. */
int gate_parse(const char *text, struct gate *ret, struct failure *why);

enum { GATE_SENTENCE_SIZE = 768 };

/*
 * 0: within the limit; 1: beyond it, and the sentence says by how much. -ENOENT: neither profile
 * has such a place; -ENODATA: one of them does not know the metric; the sentence says so.
 */
int gate_check(const struct gate *gate, const struct comparison *comparison, char *ret_sentence);
