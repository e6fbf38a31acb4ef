/* Pages on their way to files: their name from the profile's, and what stands beside them. */
#pragma once

#include "sampler/base/error.h"

/*
 * That of the profile with `suffix` and .html for its extension; NULL, or what is no plain file,
 * gives the usual name in the current folder. `into` has SAVE_PATH_SIZE. 0 or -ENAMETOOLONG.
 */
int page_file_name(const char *profile, const char *suffix, char *into);

/* Style and scripts into the folder of a page that was saved there. */
int page_file_assets(const char *page, struct failure *why);
