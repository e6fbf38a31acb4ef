#include "output/model/timeline.h"

#include "output/model/array.h"

static bool is_one_span(const struct timeline *timeline, uint64_t a, uint64_t b)
{
    return a >> timeline->shift == b >> timeline->shift;
}

static void point_raise(struct timeline_point *point, struct timeline_point other)
{
    if (other.bytes > point->bytes)
        *point = other;
}

static void spans_double(struct timeline *timeline)
{
    size_t kept = 0;
    timeline->shift++;
    for (size_t i = 1; i < timeline->count; i++) {
        if (is_one_span(timeline, timeline->points[kept].time_ns, timeline->points[i].time_ns))
            point_raise(&timeline->points[kept], timeline->points[i]);
        else
            timeline->points[++kept] = timeline->points[i];
    }
    timeline->count = kept + 1;
}

int timeline_add(struct timeline *timeline, uint64_t time_ns, double bytes)
{
    struct timeline_point point = { time_ns, bytes };
    timeline->added++;
    if (timeline->count && timeline->points[timeline->count - 1].time_ns > time_ns)
        point.time_ns = timeline->points[timeline->count - 1].time_ns;
    struct timeline_point *last = timeline->count ? &timeline->points[timeline->count - 1] : NULL;
    if (last && is_one_span(timeline, last->time_ns, point.time_ns)) {
        point_raise(last, point);
        return 0;
    }
    while (timeline->count == TIMELINE_POINTS)
        spans_double(timeline);
    if (ARRAY_GROW(timeline->points, timeline->count, timeline->room))
        return -ENOMEM;
    last = timeline->count ? &timeline->points[timeline->count - 1] : NULL;
    if (last && is_one_span(timeline, last->time_ns, point.time_ns))
        point_raise(last, point);
    else
        timeline->points[timeline->count++] = point;
    return 0;
}

int timeline_write(const struct timeline *timeline, struct arena *arena, struct point_list *ret)
{
    struct point *points = arena_take(arena, timeline->count * sizeof *points);
    if (!points)
        return -ENOMEM;
    for (size_t i = 0; i < timeline->count; i++)
        points[i] = (struct point){ (double)timeline->points[i].time_ns,
                                    timeline->points[i].bytes / 1048576 };
    *ret = (struct point_list){ points, timeline->count };
    return 0;
}

uint64_t timeline_left_out(const struct timeline *timeline)
{
    return timeline->added - timeline->count;
}

void timeline_done(struct timeline *timeline)
{
    free(timeline->points);
    *timeline = (struct timeline){ 0 };
}
