/*
 * Breaks one link at a time in a recorded image and says whether each is refused as pyabi.h
 * promises: what goes in circles, leads nowhere or makes no sense is an error, and never a stack.
 * usage: broken IMAGE
 */
#include "pyabi/dicts.h"
#include "pyabi/python.h"
#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "tests/snapshots/image_file.h"

#include <string.h>

DEFINE_CLEANUP(struct image_file *, image_file_close)
DEFINE_CLEANUP(struct python *, python_close)
DEFINE_CLEANUP(struct view *, view_free)

/* Where the links of the deepest stack stand, as found while all was well. */
struct scene {
    struct image_file *image;
    struct py_layout layout;
    size_t thread; /* its number */
    struct py_thread facts;
    struct walked_frame frames[512]; /* innermost first, shims included */
    size_t count;
};

static uint8_t *byte_at(const struct image_file *image, remote_addr address)
{
    for (size_t i = 0; i < image->memory.count; i++) {
        const struct image_range *range = &image->pages[i];
        if (address >= range->address && address - range->address < range->size)
            return image->bytes + ((const uint8_t *)range->bytes - image->bytes) +
                   (address - range->address);
    }
    fprintf(stderr, "broken: 0x%llx is not in the image\n", (unsigned long long)address);
    exit(1);
}

/* ---- reading ---- */

/* Opens, lists and reads one thread's stack; what it learnt on the way goes to `scene` if that is
 * not NULL. */
static int thread_read(struct image_file *image, size_t number, struct scene *scene)
{
    CLEANUP(python_closep) struct python *python = NULL;
    CLEANUP(view_freep) struct view *view = NULL;
    const struct py_thread *threads = NULL;
    struct failure why;
    struct py_stack stack;
    int error = python_open(&image->memory.remote, image->head.runtime, image->head.version_hint,
                            &python, &why);
    int count = error ? error : python_list_threads(python, image->head.main_id, &threads);
    if (count < 0)
        return count;
    if ((size_t)count <= number || view_new(&view))
        return -ENOENT;
    error = python_read_stack(python, &threads[number], view, MOMENT_STILL, &stack);
    if (!error && scene && python->walked_count > scene->count && python->walked_count <= 512) {
        scene->layout = python->layout;
        scene->thread = number;
        scene->facts = threads[number];
        scene->count = python->walked_count;
        memcpy(scene->frames, python->walked, scene->count * sizeof *scene->frames);
    }
    return error;
}

/* ---- breaking ---- */

/* One change; returns the address of the field, and its new value and width. */
struct change {
    remote_addr address;
    uint64_t value;
    size_t width;
};

static struct change link_change(const struct scene *scene, size_t frame, remote_addr to)
{
    remote_addr field = scene->frames[frame].address + offset_of(scene->layout.frame.previous);
    return (struct change){ field, to, 8 };
}

static struct change circle_of_all(const struct scene *scene)
{
    return link_change(scene, scene->count - 1, scene->frames[0].address);
}

static struct change circle_of_three(const struct scene *scene)
{
    return link_change(scene, 5, scene->frames[3].address);
}

static struct change circle_of_one(const struct scene *scene)
{
    return link_change(scene, 2, scene->frames[2].address);
}

static struct change link_to_nowhere(const struct scene *scene)
{
    return link_change(scene, 1, 0x1000);
}

static struct change link_between_words(const struct scene *scene)
{
    return link_change(scene, 1, scene->frames[2].address + 4);
}

static struct change code_that_is_none(const struct scene *scene)
{
    remote_addr field = scene->frames[1].address + offset_of(scene->layout.frame.code);
    return (struct change){ field, scene->facts.state, 8 };
}

/* Not every release has these: then no bytes change. */
static struct change all_tags(const struct scene *scene)
{
    uint64_t mask = scene->layout.reference_tag_mask;
    remote_addr field = scene->frames[1].address + offset_of(scene->layout.frame.code);
    return (struct change){ field, scene->frames[1].code | mask, mask ? 8 : 0 };
}

static struct change owner_that_is_none(const struct scene *scene)
{
    struct py_offset owner = scene->layout.frame.owner;
    if (!offset_present(owner))
        return (struct change){ .width = 0 };
    return (struct change){ scene->frames[1].address + offset_of(owner), 255, 1 };
}

static struct change half_a_chain(const struct scene *scene)
{
    size_t frame = 0;
    while (frame < scene->count && (scene->frames[frame].is_entry || scene->frames[frame].is_shim))
        frame++;
    return frame < scene->count ? link_change(scene, frame, 0) : (struct change){ .width = 0 };
}

static struct change circle_of_interpreters(const struct scene *scene)
{
    remote_addr field = scene->facts.interpreter + offset_of(scene->layout.interp.next);
    return (struct change){ field, scene->facts.interpreter, 8 };
}

/* As beside the pointers to the current thread and its interpreter, which a runtime keeps, too. */
static struct change list_that_begins_with_a_thread(const struct scene *scene)
{
    remote_addr runtime = scene->image->head.runtime;
    return (struct change){ runtime + offset_of(scene->layout.runtime.interpreters_head),
                            scene->facts.state, 8 };
}

static struct change circle_of_threads(const struct scene *scene)
{
    return (struct change){ scene->facts.state + offset_of(scene->layout.thread.next),
                            scene->facts.state, 8 };
}

/* Where a runtime tells its own release: behind the cookie, or in sys.hexversion. */
static struct change pre_release(const struct scene *scene)
{
    const struct py_layout *layout = &scene->layout;
    struct remote *memory = &scene->image->memory.remote;
    remote_addr at = scene->image->head.runtime + 8, dict = 0, object = 0;
    uint32_t version = 0;
    if (!layout->debug_offsets_size) {
        if (remote_read(memory, scene->facts.interpreter + offset_of(layout->interp.sysdict), &dict,
                        8) ||
            dict_find(memory, layout, dict, "hexversion", &object))
            return (struct change){ .width = 0 };
        at = object + offset_of(layout->integer.tag) + 8;
    }
    memcpy(&version, byte_at(scene->image, at), 4);
    return (struct change){ at, (version & ~0xffu) | 0xc1, 4 };
}

/* The thread's own copy of a frame's bytecode is there as before, but the list of copies ends ahead
 * of it. */
static struct change copies_that_end(const struct scene *scene)
{
    const struct py_layout *layout = &scene->layout;
    remote_addr list = 0;
    size_t frame = 0;
    if (!offset_present(layout->frame.tlbc_index))
        return (struct change){ .width = 0 };
    while (frame < scene->count && !scene->frames[frame].tlbc_index)
        frame++;
    if (frame == scene->count) {
        fprintf(stderr, "broken: no frame runs a thread's own copy of its bytecode\n");
        exit(1);
    }
    remote_addr field = scene->frames[frame].code + offset_of(layout->code.tlbc);
    memcpy(&list, byte_at(scene->image, field), 8);
    return (struct change){ list + offset_of(layout->tlbc.array_size),
                            scene->frames[frame].tlbc_index, 8 };
}

static const struct breakage {
    const char *name;
    struct change (*make)(const struct scene *scene);
    int error;
} breakages[] = {
    { "a circle of all frames", circle_of_all, -EBADMSG },
    { "a circle of three frames", circle_of_three, -EBADMSG },
    { "a circle of one frame", circle_of_one, -EBADMSG },
    { "a link to nowhere", link_to_nowhere, -EFAULT },
    { "a link between two words", link_between_words, -EBADMSG },
    { "no code object", code_that_is_none, -EBADMSG },
    { "an unknown owner", owner_that_is_none, -EBADMSG },
    { "half a chain", half_a_chain, -EAGAIN },
    { "a circle of interpreters", circle_of_interpreters, -EAGAIN },
    { "a list that begins with a thread", list_that_begins_with_a_thread, -EBADMSG },
    { "a circle of threads", circle_of_threads, -EAGAIN },
    { "a release candidate", pre_release, -ENOTSUP },
    { "copies of bytecode that end", copies_that_end, -EBADMSG },
    { "a reference with all tags", all_tags, 0 },
};

static int breakage_check(struct scene *scene, const struct breakage *breakage)
{
    uint64_t before = 0;
    struct change change = breakage->make(scene);
    if (change.width == 0)
        return 0;
    uint8_t *bytes = byte_at(scene->image, change.address);
    memcpy(&before, bytes, change.width);
    memcpy(bytes, &change.value, change.width);
    int error = thread_read(scene->image, scene->thread, NULL);
    memcpy(bytes, &before, change.width);
    if (error == breakage->error && thread_read(scene->image, scene->thread, NULL) == 0)
        return 0;
    fprintf(stderr, "broken: %s gives %d, not %d\n", breakage->name, error, breakage->error);
    return 1;
}

int main(int argc, char **argv)
{
    CLEANUP(image_file_closep) struct image_file *image = NULL;
    static struct scene scene;
    int failures = 0;
    if (argc != 2)
        return 2;
    if (image_file_open(argv[1], &image)) {
        fprintf(stderr, "broken: %s cannot be opened\n", argv[1]);
        return 1;
    }
    scene.image = image;
    for (size_t i = 0; thread_read(image, i, &scene) == 0; i++)
        continue;
    if (scene.count < 8) {
        fprintf(stderr, "broken: no deep stack to break\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof breakages / sizeof *breakages; i++)
        failures += breakage_check(&scene, &breakages[i]);
    return failures != 0;
}
