/* Source text for the model, from the files that code objects name, as we see them. */
#pragma once

#include "output/model/source.h"

struct source_files;

int source_files_new(struct source_files **ret);
void source_files_free(struct source_files *files);

/* Borrowed. */
struct source_reader *source_files_reader(struct source_files *files);
