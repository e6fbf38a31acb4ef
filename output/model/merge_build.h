/* The parts that a merged report is built from, one file each; all text and all lists go into the
 * report's arena. What a profile from anywhere says may be any number. */
#pragma once

#include "output/model/key_index.h"
#include "output/model/merge.h"
#include "output/model/merge_paths.h"
#include "output/model/report_build.h"

/* What a part's shares and rates are of; of the joint report, too. */
struct merge_part {
    const struct report *report;
    double base_s, elapsed_s;
    bool has_peak;
};

struct merge {
    const struct merge_part *parts;
    size_t count;
    struct merge_part joint;
    struct report *report; /* of the joint part */
    struct merge_paths paths;

    struct key_index pids; /* part, pid: the number of its new pid, */
    int64_t *new_pids;     /* which is here */
    size_t new_pid_room;
    bool has_new_pids;

    size_t names_left_out, stacks_left_out, memory_stacks_left_out, paths_left_out, runs_left_out;
    int64_t hits_left_out;
    double megabytes_left_out;
};

/* ---- numbers and lists ---- */

/* A sum that stays at the largest number there is. */
int64_t merge_count(int64_t a, int64_t b);

void merge_waits(struct wait_times *to, const struct wait_times *from);

/*
 * Room for one more behind `count` in a list of the arena, which grows by doubling: only lists that
 * grew this way from nothing on may be given. The list's new place, or NULL.
 */
void *merge_list_grow(struct report *report, void *items, size_t count, size_t item_size);

/*
 * The larger of two footprints at each moment; after its end a run has none. `*to` is replaced.
 * 0 or -ENOMEM.
 */
int merge_points(struct report *report, struct point_list *to, double to_end_s,
                 const struct point_list *from, double from_end_s);

int merge_texts(struct report *report, const struct text_list *from, struct text_list *to);

/* ---- parts of the report ---- */

/* The pid as the merged report has it. */
int64_t merge_pid(const struct merge *merge, size_t part, int64_t pid);

/* What one part says of a line, onto the merged line; when all have, the shares are taken. */
int merge_line_add(struct merge *merge, const struct merge_part *part, double ended_s,
                   const struct line_stats *from, struct line_stats *to);
void merge_line_finish(struct merge *merge, struct line_stats *line);

int merge_files(struct merge *merge);
int merge_stacks(struct merge *merge);

/* `places[i]` is where the i-th stack of all parts, one after the other, went. */
int merge_times(struct merge *merge, const uint32_t *places);
