/*
 * Makes a recorded stack very deep, with each further frame on a page of its own, and says whether
 * what is read of it while a thread may stand keeps to a bound, and whether all of it is read where
 * that is wanted. usage: deep IMAGE
 */
#include "pyabi/python.h"
#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "tests/snapshots/image_file.h"

#include <string.h>

#define DEEP_START ((remote_addr)0x200000000000)

enum { DEEP = 100000, DISTANCE = 4096, FRAME_SIZE = 1024, LEAD = 32 };

DEFINE_CLEANUP(struct image_file *, image_file_close)
DEFINE_CLEANUP(struct python *, python_close)
DEFINE_CLEANUP(struct view *, view_free)

/* An image with one link changed: it leads through DEEP copies of a frame back to where it led. */
struct deep_memory {
    struct remote remote; /* first */
    struct image_file *image;
    remote_addr link, after;     /* the field that is changed, and what stood there */
    uint8_t frame[FRAME_SIZE];   /* with the bytes before it that tell of a generator */
    size_t previous, frame_size; /* in `frame` */
    size_t calls, pages, bytes;  /* read of the copies */
};

static void copy_read(const struct deep_memory *memory, remote_addr address, uint8_t *into,
                      size_t size)
{
    uint8_t page[DISTANCE] = { 0 };
    while (size) {
        size_t number = (size_t)(address - DEEP_START) / DISTANCE, at = address % DISTANCE;
        size_t part = DISTANCE - at < size ? DISTANCE - at : size;
        remote_addr next = DEEP_START + (number + 1) * DISTANCE + LEAD;
        memcpy(page, memory->frame, FRAME_SIZE);
        memcpy(page + memory->previous, number + 1 < DEEP ? &next : &memory->after, 8);
        memcpy(into, page + at, part);
        into += part;
        address += part;
        size -= part;
    }
}

static bool is_copy(remote_addr address)
{
    return address >= DEEP_START && address < DEEP_START + (remote_addr)DEEP * DISTANCE;
}

static int deep_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                     size_t *ret_tail)
{
    struct deep_memory *memory = (struct deep_memory *)self;
    struct remote *image = &memory->image->memory.remote;
    memory->calls++;
    for (size_t i = 0; i < count; i++) {
        const struct remote_piece *piece = &pieces[i];
        if (is_copy(piece->address)) {
            memory->bytes += piece->size;
            memory->pages += (piece->address % DISTANCE + piece->size + DISTANCE - 1) / DISTANCE;
            copy_read(memory, piece->address, piece->into, piece->size);
        } else if (image->read_pieces(image, piece, 1, ret_tail) != 1) {
            return (int)i;
        }
        remote_addr first = DEEP_START + LEAD;
        if (memory->link >= piece->address && memory->link + 8 <= piece->address + piece->size)
            memcpy((uint8_t *)piece->into + (memory->link - piece->address), &first, 8);
    }
    return (int)count;
}

struct scene {
    struct deep_memory memory;
    struct python *python;
    struct py_thread thread;
    size_t count; /* frames of the recorded stack */
};

/* The first thread in which a frame calls another directly gets that frame many times over. */
static int scene_make(struct scene *scene)
{
    struct deep_memory *memory = &scene->memory;
    struct python *python = scene->python;
    const struct py_thread *threads = NULL;
    struct py_stack stack;
    int count = python_list_threads(python, memory->image->head.main_id, &threads);
    for (int i = 0; i < count; i++) {
        CLEANUP(view_freep) struct view *view = NULL;
        if (view_new(&view) || python_read_stack(python, &threads[i], view, MOMENT_STILL, &stack))
            return -EBADMSG;
        const struct walked_frame *inner = python->walked, *outer = inner + 1;
        if (python->walked_count < 3 || inner->is_shim || outer->is_shim || inner->owner ||
            outer->owner)
            continue;
        scene->thread = threads[i];
        scene->count = stack.count;
        memory->frame_size = LEAD + python->layout.frame.size;
        memory->previous = LEAD + offset_of(python->layout.frame.previous);
        memory->link = inner->address + offset_of(python->layout.frame.previous);
        memory->after = inner->previous;
        return memory->frame_size > FRAME_SIZE ? -EBADMSG
                                               : remote_read(&memory->remote, outer->address - LEAD,
                                                             memory->frame, memory->frame_size);
    }
    return -ENOENT;
}

static int failures;

static void expect(bool holds, const char *what, size_t got)
{
    if (holds)
        return;
    fprintf(stderr, "deep: %s: %zu\n", what, got);
    failures++;
}

static void look(struct scene *scene, struct view *view, struct py_stack *ret)
{
    struct deep_memory *memory = &scene->memory;
    memory->calls = memory->pages = memory->bytes = 0;
    *ret = (struct py_stack){ .count = 0 };
    int error = python_read_stack(scene->python, &scene->thread, view, MOMENT_STILL, ret);
    expect(error == 0, "cannot be read", (size_t)-error);
}

/* A read-ahead may bring as many pages again. */
static void check_brief(struct scene *scene, struct view *view)
{
    struct py_stack stack;
    for (int moment = 0; moment < 3; moment++) {
        look(scene, view, &stack);
        expect(stack.truncated, "not cut", stack.count);
        expect(stack.count == FRAMES_BRIEF, "frames of a brief look", stack.count);
        expect(scene->memory.pages <= 2 * FRAMES_BRIEF, "pages read", scene->memory.pages);
    }
    expect(scene->memory.calls < 10, "calls for what was predicted", scene->memory.calls);
}

static void check_depth(struct scene *scene, struct view *view)
{
    struct py_stack stack;
    python_want(scene->python, WANT_DEPTH);
    for (int moment = 0; moment < 2; moment++) {
        look(scene, view, &stack);
        expect(!stack.truncated, "cut", stack.count);
        expect(stack.count == scene->count + DEEP, "frames in all", stack.count);
    }
}

int main(int argc, char **argv)
{
    CLEANUP(image_file_closep) struct image_file *image = NULL;
    CLEANUP(python_closep) struct python *python = NULL;
    CLEANUP(view_freep) struct view *view = NULL;
    struct failure why = { .text = "" };
    if (argc != 2)
        return 2;
    if (image_file_open(argv[1], &image) || view_new(&view)) {
        fprintf(stderr, "deep: %s cannot be opened\n", argv[1]);
        return 1;
    }
    struct scene scene = { .memory = { .remote = { deep_read }, .image = image } };
    int error = python_open(&scene.memory.remote, image->head.runtime, image->head.version_hint,
                            &python, &why);
    scene.python = python;
    if (!error)
        error = scene_make(&scene);
    if (error) {
        fprintf(stderr, "deep: no stack to deepen: %s %s\n", strerror(-error), why.text);
        return 1;
    }
    check_brief(&scene, view);
    check_depth(&scene, view);
    return failures != 0;
}
