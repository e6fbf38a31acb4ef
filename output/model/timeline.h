/*
 * A value over time in a bounded number of points: spans of time that grow as time goes on, each
 * with its largest value and the moment of that. The same values give the same points.
 */
#pragma once

#include "output/model/value.h"
#include "sampler/base/arena.h"

enum { TIMELINE_POINTS = 100 };

struct timeline { /* all zero is empty */
    struct timeline_point {
        uint64_t time_ns;
        double bytes;
    } * points;
    size_t count, room;
    unsigned shift; /* a span is 1 << shift ns */
    uint64_t added; /* of which `count` are left, the largest of each span */
};

/* A time before the last one counts as that. 0 or -ENOMEM. */
int timeline_add(struct timeline *timeline, uint64_t time_ns, double bytes);

/* The list lies in the arena. 0 or -ENOMEM. */
int timeline_write(const struct timeline *timeline, struct arena *arena, struct point_list *ret);

/* How many of the values that were added are no point of it. */
uint64_t timeline_left_out(const struct timeline *timeline);

void timeline_done(struct timeline *timeline);
