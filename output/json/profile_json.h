/* A report as JSON, valid for Scalene's own model, and back. The shape stands in profile_fields.c,
 * once for both. */
#pragma once

#include "output/model/report.h"
#include "sampler/base/error.h"

#include <stdio.h>

/* Keys sorted, floats with six digits, a newline at the end. 0 or -EIO (ferror tells), -ENOMEM. */
int profile_json_write(const struct report *report, FILE *into);

/*
 * `version` is ours, `name` stands in the sentence of `why`. -EBADMSG: truncated, not JSON or not a
 * profile; -ENOTSUP: from a newer version. A profile of Scalene's own is read, too: what it does
 * not know is empty.
 */
int profile_json_read(const char *text, size_t size, const char *name, const char *version,
                      struct report **ret, struct failure *why);

/* The same of a text that may be written over, with so many zeros behind it: takes less memory. */
enum { PROFILE_JSON_PADDING = 4 };
int profile_json_read_in_place(char *text, size_t size, const char *name, const char *version,
                               struct report **ret, struct failure *why);
