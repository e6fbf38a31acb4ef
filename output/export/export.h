/*
 * A report in the formats of other tools. They draw from the report alone, and only from what a
 * saved profile keeps, so that a run and its profile give the same bytes.
 */
#pragma once

#include "output/model/report.h"

#include <stdio.h>

/* 0 or -ENOMEM; whether `into` took it all, ferror tells. */
typedef int export_writer(const struct report *report, FILE *into);

#define FORMAT(name, extensions, content, title) export_writer name##_write;
#include "output/export/formats.def"
#undef FORMAT
