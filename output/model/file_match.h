/* Which file of one profile is which of another: by its path, else by its content, so that files
 * that were renamed, or lie elsewhere on another machine, find each other. */
#pragma once

#include "output/model/report.h"
#include "sampler/base/cleanup.h"

struct file_pair {
    const struct report_file *old_file, *new_file; /* NULL: the other profile has no such file */
};

struct file_pairs {
    struct file_pair *items; /* new files as they come, then the old ones that are no more */
    size_t count;
};

/* 0 or -ENOMEM. */
int file_pairs_init(struct file_pairs *pairs, const struct report *old_report,
                    const struct report *new_report);
void file_pairs_done(struct file_pairs *pairs);

#define AUTO_FILE_PAIRS CLEANUP(file_pairs_done)

struct file_list {
    const struct report_file **items;
    size_t count;
};

#define FILE_NONE UINT32_MAX

/*
 * By content alone: of each old file the new one, each once, that has half of its lines or more, or
 * FILE_NONE. Those count that one new file has alone, or none. 0 or -ENOMEM.
 */
int files_match(const struct file_list *old_files, const struct file_list *new_files,
                uint32_t *ret_new_of_old);
