/*
 * The one seam through which bytes of a target come in. A live process, a recorded image and a
 * test's buffer look the same to all that stands above. Nothing here writes to a target.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An address in the target: an integer, so that nobody can dereference it. 0 is "none". */
typedef uint64_t remote_addr;

struct remote_piece {
    remote_addr address;
    void *into;
    size_t size;
};

struct remote {
    /*
     * Copies the pieces in order, stopping at the first that cannot be read whole. Returns how many
     * came whole, or -ESRCH, -EPERM. `*ret_tail` (may be NULL) gets the bytes of the piece it
     * stopped in.
     */
    int (*read_pieces)(struct remote *self, const struct remote_piece *pieces, size_t count,
                       size_t *ret_tail);
};

/* Reads all of it or fails: 0, -EFAULT, -ESRCH, -EPERM. */
int remote_read(struct remote *memory, remote_addr address, void *into, size_t size);

/* All pieces or -EFAULT. */
int remote_read_all(struct remote *memory, const struct remote_piece *pieces, size_t count);

/* As many leading bytes as can be read: their count, 0 if none, or -ESRCH, -EPERM. */
long remote_read_some(struct remote *memory, remote_addr address, void *into, size_t size);

/* Reads a NUL-terminated text of less than `size` bytes; -EFAULT, or -EBADMSG if it does not end.
 */
int remote_read_text(struct remote *memory, remote_addr address, char *into, size_t size);

/* A remote over a caller's list of byte ranges, for tests, fuzzers and recorded images. */
struct image_range {
    remote_addr address;
    const void *bytes;
    size_t size;
};

struct image_remote {
    struct remote remote;
    const struct image_range *ranges; /* sorted by address, not overlapping */
    size_t count;
};

void image_remote_init(struct image_remote *image, const struct image_range *ranges, size_t count);
