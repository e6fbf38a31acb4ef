#include "output/cli/dump_text.h"

#include "output/cli/screen_text.h"
#include "output/cli/style.h"

#include <inttypes.h>
#include <string.h>

enum {
    NAME_SIZE = 1024,
    NAME_COLUMNS = 40, /* longer names push their place to the right, alone */
};

static const char *const state_words[THREAD_STATE_COUNT] = {
    [THREAD_RUNNING] = "running",
    [THREAD_STOPPED] = "stopped",
    [THREAD_WAIT_GIL] = "waits for the GIL",
    [THREAD_WAIT_CPU] = "waits for a CPU",
    [THREAD_WAIT_LOCK] = "waits for a lock",
    [THREAD_WAIT_IO] = "waits for input or output",
    [THREAD_WAIT_SLEEP] = "sleeps",
    [THREAD_WAIT_CHILD] = "waits for a child",
    [THREAD_WAIT_GPU] = "waits for a GPU",
    [THREAD_WAIT_OTHER] = "waits",
};

static void frame_name(const struct frame_event *frame, char *into, size_t size,
                       size_t *ret_columns)
{
    char unnamed[32] = "?";
    if (frame->kind == FRAME_NATIVE)
        snprintf(unnamed, sizeof unnamed, "0x%" PRIx64, frame->ip);
    *ret_columns = screen_text(frame->name ? frame->name : unnamed, into, size);
}

/* The last part of a module's path is what people know it by. */
static const char *module_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void frame_place(const struct frame_event *frame, char *into, size_t size)
{
    char file[NAME_SIZE] = "";
    if (frame->file)
        screen_text(frame->file, file, sizeof file);
    else if (frame->module)
        screen_text(module_name(frame->module), file, sizeof file);
    if (frame->line && frame->column)
        snprintf(into, size, "%s:%d:%d", file, frame->line, frame->column);
    else if (frame->line)
        snprintf(into, size, "%s:%d", file, frame->line);
    else if (!frame->name && !frame->file && frame->module)
        snprintf(into, size, "%s+0x%" PRIx64, file, frame->offset);
    else
        snprintf(into, size, "%s", file);
}

static size_t name_columns(const struct thread_event *thread)
{
    size_t widest = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        char name[NAME_SIZE];
        size_t columns = 0;
        frame_name(&thread->frames[i], name, sizeof name, &columns);
        if (columns <= NAME_COLUMNS && columns > widest)
            widest = columns;
    }
    return widest;
}

static void frame_write(FILE *out, bool coloured, const struct frame_event *frame, size_t width)
{
    char name[NAME_SIZE], place[2 * NAME_SIZE];
    size_t columns = 0;
    frame_name(frame, name, sizeof name, &columns);
    frame_place(frame, place, sizeof place);
    fputs("    ", out);
    style_print(out, coloured, frame->kind == FRAME_PYTHON ? STYLE_FUNCTION : STYLE_NATIVE, name);
    if (*place) {
        fprintf(out, "%*s  ", columns < width ? (int)(width - columns) : 0, "");
        style_print(out, coloured, STYLE_PLACE, place);
    }
    fputc('\n', out);
}

static void thread_write(FILE *out, bool coloured, const struct thread_event *thread)
{
    char heading[64], name[NAME_SIZE];
    snprintf(heading, sizeof heading, thread->tid ? "Thread %d" : "Thread ?", thread->tid);
    fputc('\n', out);
    style_print(out, coloured, STYLE_HEADING, heading);
    if (thread->name) {
        screen_text(thread->name, name, sizeof name);
        fprintf(out, " \"%s\"", name);
    }
    if (thread->interpreter)
        fprintf(out, " (interpreter %" PRId64 ")", thread->interpreter);
    fputs(": ", out);
    style_print(out, coloured, thread->state == THREAD_RUNNING ? STYLE_BUSY : STYLE_WAITING,
                state_words[thread->state]);
    fputs(thread->holds_gil ? ", holds the GIL\n" : "\n", out);

    size_t width = name_columns(thread);
    for (size_t i = 0; i < thread->frame_count; i++)
        frame_write(out, coloured, &thread->frames[i], width);
    if (!thread->frame_count && !thread->error)
        fputs("    (no Python code running)\n", out);
    if (thread->error) {
        fputs("    ", out);
        style_print(out, coloured, STYLE_ERROR, thread->error);
        fputc('\n', out);
    }
}

void dump_text_write(FILE *out, bool coloured, const struct dump_event *dump)
{
    char heading[64], command[NAME_SIZE];
    snprintf(heading, sizeof heading, "Process %d", dump->pid);
    screen_text(dump->command, command, sizeof command);
    style_print(out, coloured, STYLE_HEADING, heading);
    fprintf(out, ": %s\nCPython %s\n", command, dump->python);
    for (size_t i = 0; i < dump->thread_count; i++)
        thread_write(out, coloured, &dump->threads[i]);
}
