/*
 * Recorded memory with any changes in it, made before or between the reads: opening, listing,
 * naming and walking end, with stacks that keep what pyabi.h promises or with an error. An input is
 * the number of a release, then changes; see struct change.
 */
#include "pyabi/layout.h"
#include "pyabi/pyabi.h"
#include "pyabi/view.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"
#include "tests/snapshots/image_file.h"

#include <string.h>

DEFINE_CLEANUP(struct python *, python_close)
DEFINE_CLEANUP(struct view *, view_free)

enum { RELEASE_MAX = 32, CHANGE_MAX = 64, ROUNDS = 2 };

enum change_kind { CHANGE_SET, CHANGE_ADD, CHANGE_POINT, CHANGE_COPY };

struct change {
    uint8_t when;        /* made before so many read calls */
    uint8_t kind;        /* low two bits: enum change_kind; next two: log2 of the width */
    uint8_t position[3]; /* counted in recorded bytes */
    uint8_t value[4];    /* POINT, COPY: a position, in whose place or from where */
};

/* One release's memory, changed and put back again and again. */
struct world {
    struct remote remote; /* first */
    struct image_file *image;
    uint8_t *pristine;
    size_t recorded_size;
    struct change changes[CHANGE_MAX];
    size_t change_count;
    unsigned calls;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* ---- changes ---- */

static uint32_t number_of(const uint8_t *bytes, size_t size)
{
    uint32_t number = 0;
    memcpy(&number, bytes, size);
    return number;
}

/* The recorded byte of that number: where it stands here, and its address. */
static uint8_t *byte_find(const struct world *world, size_t number, remote_addr *ret_address)
{
    const struct image_range *range = world->image->recorded;
    number %= world->recorded_size;
    for (; number >= range->size; range++)
        number -= range->size;
    *ret_address = range->address + number;
    return world->image->bytes + ((const uint8_t *)range->bytes - world->image->bytes) + number;
}

static void change_make(const struct world *world, const struct change *change)
{
    size_t width = (size_t)1 << (change->kind >> 2 & 3);
    uint32_t value = number_of(change->value, sizeof change->value);
    remote_addr address = 0, other_address = 0;
    uint8_t *byte =
        byte_find(world, number_of(change->position, sizeof change->position), &address);
    const uint8_t *other = byte_find(world, value, &other_address);
    uint64_t now = 0;

    byte -= address % width; /* pages begin at a multiple of every width */
    other -= other_address % width;
    memcpy(&now, byte, width);
    switch (change->kind & 3) {
    case CHANGE_SET:
        now = (uint64_t)(int32_t)value;
        break;
    case CHANGE_ADD:
        now += (uint64_t)(int32_t)value;
        break;
    case CHANGE_POINT:
        now = other_address;
        break;
    default:
        memcpy(&now, other, width);
    }
    memcpy(byte, &now, width);
}

static int world_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                             size_t *ret_tail)
{
    struct world *world = (struct world *)self;
    struct remote *image = &world->image->memory.remote;
    for (size_t i = 0; i < world->change_count; i++)
        if (world->changes[i].when == world->calls)
            change_make(world, &world->changes[i]);
    world->calls++;
    return image->read_pieces(image, pieces, count, ret_tail);
}

static void world_reset(struct world *world, const uint8_t *data, size_t size)
{
    memcpy(world->image->bytes, world->pristine, world->image->size);
    world->calls = 0;
    world->change_count = size / sizeof *world->changes;
    if (world->change_count > CHANGE_MAX)
        world->change_count = CHANGE_MAX;
    memcpy(world->changes, data, world->change_count * sizeof *world->changes);
}

/* NULL where there is no image of that release. Kept for all inputs of the process. */
static struct world *world_find(unsigned release)
{
    static struct world *worlds[RELEASE_MAX];
    char path[4096];
    for (unsigned i = 0; i <= release; i++)
        if (i == RELEASE_MAX || !py_layouts[i])
            return NULL;
    if (worlds[release])
        return worlds[release];
    struct world *world = calloc(1, sizeof *world);
    snprintf(path, sizeof path, "%s/%s.image", SNAPSHOT_IMAGES, py_layouts[release]->name);
    if (!world || image_file_open(path, &world->image)) {
        free(world);
        return NULL;
    }
    world->remote.read_pieces = world_read_pieces;
    world->pristine = malloc(world->image->size);
    must(world->pristine);
    memcpy(world->pristine, world->image->bytes, world->image->size);
    for (size_t i = 0; i < world->image->head.range_count; i++)
        world->recorded_size += world->image->recorded[i].size;
    return worlds[release] = world;
}

/* ---- what is asked ---- */

static int stack_check(struct python *python, const struct py_thread *thread, struct view *view,
                       enum py_moment moment)
{
    struct py_stack stack = { 0 };
    int error = python_read_stack(python, thread, view, moment, &stack);
    if (error)
        return error;
    must(stack.count <= FRAMES_MAX && (stack.count || !stack.truncated));
    must(!stack.collecting || stack.gc_index <= stack.count);
    for (size_t i = 0; i < stack.count; i++) {
        struct py_place place = python_frame_place(python, &stack.frames[i]);
        must(strlen(place.name) + strlen(place.file) < SIZE_MAX);
        must(i == 0 || stack.frames[i].address != stack.frames[i - 1].address);
    }
    return 0;
}

static int thread_check(struct python *python, const struct py_thread *thread)
{
    CLEANUP(view_freep) struct view *view = NULL;
    must(view_new(&view) == 0);
    must(!thread->name || strlen(thread->name) < SIZE_MAX);
    int error = stack_check(python, thread, view, MOMENT_STILL);
    if (!error)
        error = stack_check(python, thread, view, MOMENT_RUNNING);
    return error ? stack_check(python, thread, view, MOMENT_RUNNING) : 0;
}

static int round_check(struct python *python, uint64_t main_id, unsigned number)
{
    const struct py_thread *threads = NULL;
    int count = python_list_threads(python, main_id, &threads);
    if (count <= 0)
        return count;
    python_name_threads(python);
    return thread_check(python, &threads[number % (unsigned)count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(python_closep) struct python *python = NULL;
    struct world *world = size >= 2 ? world_find(data[0]) : NULL;
    struct failure why;
    if (!world)
        return 0;
    world_reset(world, data + 2, size - 2);
    const struct image_head *head = &world->image->head;
    int error = python_open(&world->remote, head->runtime, head->version_hint, &python, &why);
    if (!error)
        python_want(python, WANT_ANCHORS | WANT_OWNER);
    for (unsigned i = 0; i < ROUNDS && !error; i++)
        error = round_check(python, head->main_id, data[1]);
    must(!error || world->change_count); /* unchanged memory is read without any error */
    return 0;
}
