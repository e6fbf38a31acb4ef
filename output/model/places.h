/*
 * Which line a frame is on, which of the lines are shown, and the files they lie in. A frame that
 * comes again is the same place, so that what names decide is decided once.
 */
#pragma once

#include "output/model/key_index.h"
#include "output/model/profile.h"
#include "output/model/regions.h"
#include "output/model/tally.h"
#include "sampler/base/intern.h"

#define NOTHING UINT32_MAX

/* What a process makes of names of files that are no paths. */
struct naming {
    const char *cwd;    /* what relative ones are relative to; NULL: unknown */
    const char *string; /* what <string> is; NULL: nothing else */
};

struct place {
    enum frame_kind kind;
    const char *name;   /* interned, as are all texts here; NULL: unknown */
    const char *file;   /* as the frame has it; a native frame's module */
    const char *within; /* the part of the naming that made a path of it; NULL: none */
    const char *below;  /* what <string> is in whatever it calls; NULL: what it is here */
    int line, first_line;
    uint64_t ip, offset;
    uint32_t path;                       /* number of the file; NOTHING of native frames */
    uint32_t line_tally, function_tally; /* NOTHING while the place is hidden */
    bool is_join;
};

struct source_file {
    const char *path;
    uint64_t hidden_ns; /* base time of stacks with no shown line, by their innermost file */
    bool was_asked;     /* for its source */
    bool has_source;
    bool is_guessed; /* its encoding is unknown */
    char *text;      /* UTF-8, lines end with \n */
    size_t size;
    double modified_s;
    struct line_range *profiled; /* functions with @profile */
    size_t profiled_count;
};

struct places {
    const struct profile_settings *settings;
    struct intern *texts;
    struct key_index place_index, file_index, tally_index;
    struct place *places;
    struct source_file *files;
    struct tally *tallies; /* of lines, and of functions: those have a name */
    size_t place_room, file_room, tally_room;
    bool is_restricted; /* some function has @profile: only such are shown */
};

int places_init(struct places *places, const struct profile_settings *settings);
void places_done(struct places *places);

/* Is it the frame of that place? Cheaper than looking the frame up. */
bool place_is(const struct place *place, const struct frame_event *frame,
              const struct naming *naming);

/* The place's number or -ENOMEM. */
int64_t places_find(struct places *places, const struct frame_event *frame,
                    const struct naming *naming);

/* From a frame on to the one that it called. */
static inline void naming_enter(struct naming *naming, const struct place *caller)
{
    if (caller->below)
        naming->string = caller->below;
}

/* Does the report show this tally? What was charged before the first @profile came up may be out of
 * it now. */
bool places_show(const struct places *places, const struct tally *tally);

/* NULL stays NULL; also NULL when out of memory. */
const char *places_text(struct places *places, const char *text);
