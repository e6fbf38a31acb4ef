/*
 * Reads the stacks of a recorded image in every way there is, and says whether all of them are the
 * golden ones; without a golden file it prints them. usage: replay IMAGE [GOLDEN]
 */
#include "pyabi/pyabi.h"
#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "tests/snapshots/image_file.h"

#include <string.h>

DEFINE_CLEANUP(struct image_file *, image_file_close)
DEFINE_CLEANUP(struct python *, python_close)
DEFINE_CLEANUP(struct view *, view_free)

/* ---- as text ---- */

static void frame_write(FILE *out, const struct python *python, const struct py_frame *frame)
{
    struct py_place place = python_frame_place(python, frame);
    fprintf(out, "    %s %s:%d:%d%s%s%s\n", place.name ? place.name : "?",
            place.file ? place.file : "?", place.line, place.column,
            python_frame_calls(frame) ? " calls" : "", frame->is_entry ? " entry" : "",
            frame->anchor ? " anchor" : "");
}

static int thread_write(FILE *out, struct python *python, const struct py_thread *thread,
                        const enum py_moment *moments, size_t moment_count)
{
    CLEANUP(view_freep) struct view *view = NULL;
    struct py_stack stack = { 0 };
    int error = view_new(&view);
    for (size_t i = 0; i < moment_count && !error; i++)
        error = python_read_stack(python, thread, view, moments[i], &stack);
    if (error)
        return error;
    fprintf(out, "thread %s%s\n", thread->name ? thread->name : "?",
            stack.holds_gil ? ", holds the GIL" : "");
    for (size_t i = 0; i < stack.count; i++)
        frame_write(out, python, &stack.frames[i]);
    if (stack.truncated)
        fputs("    truncated\n", out);
    return 0;
}

/* It is there, and one that got its memory and its stack after its end would be another. */
static int place_check(struct python *python, const struct py_thread *thread)
{
    struct py_thread later = *thread, moved = *thread;
    later.native_id++;
    moved.ident++;
    bool right = python_has_thread(python, thread) && !python_has_thread(python, &later) &&
                 !python_has_thread(python, &moved);
    if (!right)
        fprintf(stderr, "replay: a thread is taken for another that has its place\n");
    return right ? 0 : -EBADMSG;
}

static int image_write(FILE *out, struct image_file *image, const enum py_moment *moments,
                       size_t moment_count)
{
    CLEANUP(python_closep) struct python *python = NULL;
    const struct py_thread *threads = NULL;
    struct failure why = { .text = "" };
    const struct image_head *head = &image->head;
    int error =
        python_open(&image->memory.remote, head->runtime, head->version_hint, &python, &why);
    if (error) {
        fprintf(stderr, "replay: %s\n", why.text);
        return error;
    }
    fprintf(out, "# CPython %s\n", python_version_text(python));
    int count = python_list_threads(python, head->main_id, &threads);
    if (count < 0)
        return count;
    python_name_threads(python);
    python_want(python, WANT_ANCHORS | WANT_OWNER);
    for (int i = 0; i < count; i++) {
        error = place_check(python, &threads[i]);
        if (!error)
            error = thread_write(out, python, &threads[i], moments, moment_count);
        if (error)
            return error;
    }
    return 0;
}

static char *image_text(struct image_file *image, const enum py_moment *moments,
                        size_t moment_count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    int error = image_write(out, image, moments, moment_count);
    fclose(out);
    if (!error)
        return text;
    fprintf(stderr, "replay: %s\n", strerror(-error));
    free(text);
    return NULL;
}

/* ---- compared ---- */

static const struct way {
    const char *name;
    enum py_moment moments[2]; /* of reads with the same view */
    size_t count;
} ways[] = {
    { "still", { MOMENT_STILL }, 1 },
    { "still, predicted", { MOMENT_STILL, MOMENT_STILL }, 2 },
    { "running", { MOMENT_RUNNING }, 1 },
    { "running, predicted", { MOMENT_STILL, MOMENT_RUNNING }, 2 },
};

static char *file_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file || getdelim(&text, &size, '\0', file) <= 0)
        fprintf(stderr, "replay: %s cannot be read\n", path);
    return text;
}

/* Names the first line that differs. */
static int texts_compare(const char *way, const char *got, const char *want)
{
    unsigned line = 1;
    while (*got == *want && *got)
        line += *got++ == '\n', want++;
    if (*got == *want)
        return 0;
    fprintf(stderr, "%s: line %u differs\n  got  …%.*s\n  want …%.*s\n", way, line,
            (int)strcspn(got, "\n"), got, (int)strcspn(want, "\n"), want);
    return 1;
}

int main(int argc, char **argv)
{
    CLEANUP(image_file_closep) struct image_file *image = NULL;
    AUTO_FREE char *golden = NULL;
    int failures = 0;
    if (argc < 2 || argc > 3)
        return 2;
    int error = image_file_open(argv[1], &image);
    if (error) {
        fprintf(stderr, "replay: %s: %s\n", argv[1], strerror(-error));
        return 1;
    }
    golden = argc == 3 ? file_text(argv[2]) : image_text(image, ways[0].moments, ways[0].count);
    if (!golden)
        return 1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        AUTO_FREE char *text = image_text(image, ways[i].moments, ways[i].count);
        failures += !text || texts_compare(ways[i].name, text, golden);
    }
    if (argc == 2)
        fputs(golden, stdout);
    return failures != 0;
}
