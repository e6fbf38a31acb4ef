/*
 * One file out of a zip archive: what Python's zipimport reads, so stored or deflated, unencrypted,
 * no zip64, also with something in front of the archive, as zipapps have. The archive is hostile.
 */
#pragma once

#include <stddef.h>

/*
 * malloc'ed, the caller frees it. 0, -ENOENT (no such member), -EBADMSG (no zip archive, or a
 * broken one), -ENOTSUP, -EFBIG (over `limit` bytes), -ENOMEM or what the system said.
 */
int zip_member_read(int fd, const char *name, size_t limit, char **ret_bytes, size_t *ret_size);
