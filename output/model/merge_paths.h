/*
 * Which files of merged profiles are one: those of one path, and those that stand at the same place
 * below another folder, as under the home folders of several hosts. A file tells that by its
 * content, and then the others in that folder by their paths. Two files of one profile are never
 * one, nor two in folders of a tree that both profiles have.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/report.h"

struct merge_part;

/* A file as one of the parts has it. */
struct merge_version {
    const struct merge_part *part;
    const struct report_file *file;
    double started; /* when its part did: the latest has the newest text */
    uint32_t place; /* equal of those that are one file */
};

struct merge_file {
    struct merge_version *versions; /* the newest first: its path and its text are kept */
    size_t count;
};

struct merge_paths { /* all zero is empty */
    struct merge_version *versions;
    size_t version_count;
    struct merge_file *files; /* by path */
    size_t count;
    struct key_index moved; /* paths that are not kept, */
    const char **kept;      /* and by number the one that is instead */
    const char *joined[2];  /* the first of them, and what is kept */
    const char *apart[2];   /* files of equal content that are not one */
    size_t apart_count;     /* how often that is so */
};

/* 0 or -ENOMEM. */
int merge_paths_init(struct merge_paths *paths, const struct merge_part *parts, size_t count);
void merge_paths_done(struct merge_paths *paths);

/* The path that is kept for it. */
const char *merge_paths_kept(const struct merge_paths *paths, const char *path);

/* The same of a frame as text, "file function:line;". NULL: as it is; else the caller frees it.
 * 0 or -ENOMEM. */
int merge_paths_frame(const struct merge_paths *paths, const char *frame, char **ret);
