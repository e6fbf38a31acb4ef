/*
 * A recorded memory image as a file, little-endian: struct image_head, then `range_count` times
 * struct image_span sorted by address and never overlapping, then the bytes of all spans, one
 * behind the other. Opened, it is a remote of whole pages: what was not recorded of a page reads as
 * zeros, so that whoever reads by the page is served, and the file need not hold what nobody looked
 * at.
 */
#pragma once

#include "sampler/base/error.h"
#include "sampler/base/remote.h"

#define IMAGE_MAGIC "PYIMAGE1"

struct image_head {
    char magic[8];
    uint64_t runtime; /* address of _PyRuntime */
    uint64_t main_id; /* the process's id in its own PID namespace */
    uint32_t version_hint;
    uint32_t range_count;
};

struct image_span {
    uint64_t address, size;
};

struct image_file {
    struct image_remote memory; /* first */
    struct image_head head;
    struct image_range *recorded; /* what was read of the target; points into the pages */
    struct image_range *pages;
    uint8_t *bytes; /* of all pages; a caller may change them */
    size_t size;
};

/* 0, -ENOMEM, or a negative errno of the file; -EBADMSG when it is no image. */
int image_file_open(const char *path, struct image_file **ret);
void image_file_close(struct image_file *image);

/* `head->range_count` ranges, sorted by address and not overlapping. 0 or a negative errno. */
int image_file_write(const char *path, const struct image_head *head,
                     const struct image_range *ranges);
