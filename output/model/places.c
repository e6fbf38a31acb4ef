#define _GNU_SOURCE 1 /* memmem */
#include "output/model/places.h"

#include "output/model/array.h"
#include "output/model/scope.h"
#include "output/model/source_path.h"
#include "output/model/source_text.h"

#include <string.h>

int places_init(struct places *places, const struct profile_settings *settings)
{
    *places = (struct places){ .settings = settings };
    return intern_new(&places->texts);
}

void places_done(struct places *places)
{
    for (size_t i = 0; i < places->file_index.count; i++) {
        free(places->files[i].text);
        free(places->files[i].profiled);
    }
    for (size_t i = 0; i < places->tally_index.count; i++)
        tally_done(&places->tallies[i]);
    key_index_done(&places->place_index);
    key_index_done(&places->file_index);
    key_index_done(&places->tally_index);
    free(places->places);
    free(places->files);
    free(places->tallies);
    intern_free(places->texts);
}

const char *places_text(struct places *places, const char *text)
{
    return text ? intern_text(places->texts, text) : NULL;
}

static bool text_is(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Other processes may mean other files by the same name, and one that is told of anew, too. */
static const char *naming_part(const struct naming *naming, const char *file)
{
    if (!file || !*file || *file == '/')
        return NULL;
    if (*file == '<')
        return strcmp(file, "<string>") == 0 ? naming->string : NULL;
    return naming->cwd;
}

/* The lines of native frames and where in its function one stands make no difference. */
bool place_is(const struct place *place, const struct frame_event *frame,
              const struct naming *naming)
{
    if (place->kind != frame->kind || !text_is(place->name, frame->name))
        return false;
    if (frame->kind != FRAME_PYTHON)
        return text_is(place->file, frame->module);
    return place->line == frame->line && place->first_line == frame->first_line &&
           text_is(place->file, frame->file) && place->within == naming_part(naming, frame->file);
}

/* ---- files and @profile ---- */

static int profiled_read(struct source_file *file)
{
    AUTO_REGIONS struct source_regions *regions = NULL;
    int error = source_regions_new(file->text, file->size, &regions);
    if (error)
        return error;
    file->profiled = calloc(regions->function_count + 1, sizeof *file->profiled);
    if (!file->profiled)
        return -ENOMEM;
    for (size_t i = 0; i < regions->function_count; i++) {
        const struct source_function *function = &regions->functions[i];
        if (function->is_profiled)
            file->profiled[file->profiled_count++] =
                (struct line_range){ function->first_line, function->lines.last };
    }
    return 0;
}

/* Once a file, when the first of its lines is to be shown. */
static int source_read(struct places *places, struct source_file *file)
{
    struct source_reader *reader = places->settings->sources;
    struct source source = { 0 };
    if (file->was_asked)
        return 0;
    file->was_asked = true;
    if (!reader || reader->read(reader, file->path, &source))
        return 0;
    int read = source_text_new(source.bytes, source.size, &file->text, &file->size);
    free(source.bytes);
    if (read < 0)
        return read;
    file->has_source = true;
    file->is_guessed = read > 0;
    file->modified_s = source.modified_s;
    return memmem(file->text, file->size, "@", 1) && memmem(file->text, file->size, "profile", 7)
               ? profiled_read(file)
               : 0;
}

static bool file_profiles(const struct source_file *file, int line)
{
    for (size_t i = 0; i < file->profiled_count; i++)
        if ((uint32_t)line >= file->profiled[i].first && (uint32_t)line <= file->profiled[i].last)
            return true;
    return false;
}

bool places_show(const struct places *places, const struct tally *tally)
{
    return !places->is_restricted || file_profiles(&places->files[tally->file], tally->line);
}

/* A frame whose line is unknown counts where its function begins. */
static int place_line(const struct place *place)
{
    if (place->line > 0)
        return place->line;
    return place->first_line > 0 ? place->first_line : 1;
}

/* From the first @profile on all else is hidden. Nothing that came before could have had one on its
 * stack. */
static void places_restrict(struct places *places)
{
    places->is_restricted = true;
    for (size_t i = 0; i < places->place_index.count; i++) {
        struct place *place = &places->places[i];
        if (place->path != NOTHING &&
            !file_profiles(&places->files[place->path], place_line(place)))
            place->line_tally = place->function_tally = NOTHING;
    }
}

/* What has no file is in no folder. */
static const char *path_find(struct places *places, const char *file, const char *within)
{
    char buffer[4096];
    if (within && *file == '<')
        return within;
    source_path_write(file ?: "", within, buffer, sizeof buffer);
    return intern_text(places->texts, buffer);
}

static int64_t file_find(struct places *places, const char *path)
{
    if (ARRAY_GROW(places->files, places->file_index.count, places->file_room))
        return -ENOMEM;
    size_t count = places->file_index.count;
    int64_t number = key_index_add(&places->file_index, (struct key){ { (uintptr_t)path } });
    if (number == (int64_t)count)
        places->files[number] = (struct source_file){ .path = path };
    return number;
}

/* ---- places ---- */

/* Of a line: without a name. */
static int64_t tally_find(struct places *places, uint32_t file, int line, const char *name)
{
    if (ARRAY_GROW(places->tallies, places->tally_index.count, places->tally_room))
        return -ENOMEM;
    size_t count = places->tally_index.count;
    uint64_t at = (uint64_t)file << 32 | (uint32_t)line;
    int64_t number = key_index_add(&places->tally_index, (struct key){ { at, (uintptr_t)name } });
    if (number == (int64_t)count)
        places->tallies[number] = (struct tally){ .file = file, .line = line, .name = name };
    return number;
}

static int place_show(struct places *places, struct place *place)
{
    int64_t line = tally_find(places, place->path, place_line(place), NULL);
    if (line < 0)
        return (int)line;
    place->line_tally = (uint32_t)line;
    if (!place->name || strcmp(place->name, "<module>") == 0)
        return 0;
    int64_t function = tally_find(places, place->path, place->first_line, place->name);
    if (function < 0)
        return (int)function;
    place->function_tally = (uint32_t)function;
    return 0;
}

/* Decides what names decide. */
static int place_settle(struct places *places, struct place *place, const char *path)
{
    int64_t number = file_find(places, path);
    if (number < 0)
        return (int)number;
    struct source_file *file = &places->files[number];
    place->path = (uint32_t)number;
    place->is_join = scope_is_join(path, place->name);
    place->below = scope_string_below(path, place->name);
    enum scope scope = scope_find(places->settings, path, place->name);
    if (scope == SCOPE_HIDDEN)
        return 0;
    int error = source_read(places, file);
    if (error || (scope == SCOPE_ELSEWHERE && (file->has_source || !places->settings->sources)))
        return error;
    if (file->profiled_count && !places->is_restricted)
        places_restrict(places);
    if (places->is_restricted && !file_profiles(file, place_line(place)))
        return 0;
    return place_show(places, place);
}

static int place_fill(struct places *places, const struct frame_event *frame, const char *within,
                      const char *path, struct place *place)
{
    bool is_python = frame->kind == FRAME_PYTHON;
    *place = (struct place){
        .kind = frame->kind,
        .name = places_text(places, frame->name),
        .file = places_text(places, is_python ? frame->file : frame->module),
        .within = within,
        .line = frame->line,
        .first_line = frame->first_line,
        .ip = frame->ip,
        .offset = frame->offset,
        .path = NOTHING,
        .line_tally = NOTHING,
        .function_tally = NOTHING,
    };
    return is_python ? place_settle(places, place, path) : 0;
}

int64_t places_find(struct places *places, const struct frame_event *frame,
                    const struct naming *naming)
{
    bool is_python = frame->kind == FRAME_PYTHON;
    const char *name = places_text(places, frame->name);
    const char *within = is_python ? naming_part(naming, frame->file) : NULL;
    const char *path =
        is_python ? path_find(places, frame->file, within) : places_text(places, frame->module);
    uint64_t line = (uint64_t)frame->first_line << 32 | (uint32_t)frame->line;
    /* Texts are at even addresses: the lowest bit is free to tell the kinds apart. */
    struct key key = { { (uintptr_t)name | is_python, (uintptr_t)path, is_python ? line : 0 } };
    int64_t number = key_index_find(&places->place_index, key);
    if (number >= 0)
        return number;
    struct place place;
    if ((is_python && !path) || place_fill(places, frame, within, path, &place) ||
        ARRAY_GROW(places->places, places->place_index.count, places->place_room))
        return -ENOMEM;
    number = key_index_add(&places->place_index, key);
    if (number >= 0)
        places->places[number] = place;
    return number;
}
