/*
 * Source files as the targets see them: through their own root folders (containers), with no more
 * rights than their users have, since a target names its files itself and what we read is shown.
 * Plain files, and members of zip archives (app.pyz/pkg/main.py). Never opens what is no file.
 */
#pragma once

#include "output/model/source.h"
#include "sampler/base/cleanup.h"

/* Bigger files have no source. */
#define SOURCE_SIZE_LIMIT ((size_t)64 << 20)

struct sources;

int sources_new(struct sources **ret);
void sources_free(struct sources *sources);

/*
 * A process whose code may come to be shown; `proc_fd` is /proc/PID and is not kept: files are
 * found also after the process has ended. One root and user are one place, 64 of them are kept, and
 * the first that has the file gives it. 0, -ESRCH, -EPERM, … While no process was added, files are
 * read as our own process sees them.
 */
int sources_add_process(struct sources *sources, int proc_fd);

/* Lives as long as `sources`. Its read() may answer -EFBIG (too big), -EPERM, -EBADMSG, too. */
struct source_reader *sources_reader(struct sources *sources);

DEFINE_CLEANUP(struct sources *, sources_free)
#define AUTO_SOURCES CLEANUP(sources_freep)
