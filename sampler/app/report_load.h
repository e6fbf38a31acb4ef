/* A saved profile from its file. */
#pragma once

#include "output/model/report.h"
#include "sampler/base/error.h"

/* What a profile is called where nothing else was asked for. */
#define VIEW_USUAL_FILE "scalene-profile.json"

/*
 * `named` is the file's name; NULL: the usual one. `version` is ours. 0, or a negative errno and
 * one sentence that names the file.
 */
int report_load(const char *named, const char *version, struct report **ret, struct failure *why);
