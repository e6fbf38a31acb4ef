/* Lines and functions of a report that were asked for, as JSON for scripts: lists, each record with
 * its file and the keys of columns.def. What the profile had no key for has none here. */
#pragma once

#include "output/model/ranking.h"

#include <stdio.h>

/* 0 or -EIO (ferror tells), -ENOMEM. */
int ranking_json_write(const struct report *report, const struct selection *selection, FILE *into);
