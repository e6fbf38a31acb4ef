#include "symbols/walk_memory.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"

#include <string.h>

enum {
    STACKS = 8,           /* of busy threads: those that wait are not walked */
    KEPT_BYTES = 1 << 17, /* of a stack: its end */
    KEPT_FRAMES = 1024,   /* of a walk: the outermost */
    BLOCK = 64,           /* bytes that are compared at once */
};

struct known_frame {
    struct walk_position position;
    struct native_frame frame;
};

struct known_stack {
    remote_addr end; /* 0: none */
    uint64_t used;   /* when: the number of the walk */
    uint8_t *bytes;  /* its last ones */
    size_t size, room;
    struct known_frame *frames; /* innermost first */
    size_t count;
};

struct walk_memory {
    struct known_stack stacks[STACKS];
    uint64_t walks;

    /* the walk under way */
    const struct stack_image *image;
    struct known_stack *stack; /* NULL: no memory for it */
    remote_addr same_from;     /* the stack from here on is as it was */
    size_t at;                 /* known frames before this one lie below where the walk is */
    size_t reused;             /* the first of the known ones that are as they were */
    struct known_frame *fresh; /* found by walking, */
    size_t fresh_count;        /* which may be more than there is room for */
};

int walk_memory_new(struct walk_memory **ret)
{
    struct walk_memory *memory = calloc(1, sizeof *memory);
    struct known_frame *fresh = malloc(KEPT_FRAMES * sizeof *fresh);
    if (!memory || !fresh) {
        free(memory);
        free(fresh);
        return -ENOMEM;
    }
    memory->fresh = fresh;
    *ret = memory;
    return 0;
}

void walk_memory_forget(struct walk_memory *memory)
{
    for (size_t i = 0; i < STACKS; i++) {
        free(memory->stacks[i].bytes);
        free(memory->stacks[i].frames);
        memory->stacks[i] = (struct known_stack){ 0 };
    }
}

void walk_memory_free(struct walk_memory *memory)
{
    if (!memory)
        return;
    walk_memory_forget(memory);
    free(memory->fresh);
    free(memory);
}

/* A stack is known by its end. One that is not takes the place of the one that was used least
 * lately. */
static struct known_stack *stack_find(struct walk_memory *memory, remote_addr end)
{
    struct known_stack *found = &memory->stacks[0];
    for (size_t i = 0; i < STACKS; i++) {
        struct known_stack *stack = &memory->stacks[i];
        if (stack->end == end) {
            found = stack;
            break;
        }
        if (stack->used < found->used)
            found = stack;
    }
    if (found->end != end)
        found->size = found->count = 0;
    found->end = end;
    found->used = memory->walks;
    return found;
}

static const uint8_t *image_end(const struct stack_image *image)
{
    return (const uint8_t *)image->bytes + image->size;
}

/* Compared from the end of the stack, where callers are. */
static size_t same_size(const struct known_stack *stack, const struct stack_image *image)
{
    size_t most = stack->size < image->size ? stack->size : image->size, same = 0;
    const uint8_t *known = stack->bytes + stack->size, *now = image_end(image);
    while (same + BLOCK <= most && !memcmp(known - same - BLOCK, now - same - BLOCK, BLOCK))
        same += BLOCK;
    return same;
}

void walk_memory_begin(struct walk_memory *memory, const struct stack_image *image)
{
    remote_addr end = image->stack_start + image->size;
    memory->walks++;
    memory->image = image;
    memory->stack = stack_find(memory, end);
    memory->same_from = memory->stack->size ? end - same_size(memory->stack, image) : end;
    memory->at = 0;
    memory->reused = memory->stack->count;
    memory->fresh_count = 0;
}

static bool position_is(const struct walk_position *a, const struct walk_position *b)
{
    return a->ip == b->ip && a->sp == b->sp && a->fp == b->fp && a->interrupted == b->interrupted &&
           a->complete == b->complete;
}

size_t walk_memory_find(struct walk_memory *memory, const struct walk_position *position,
                        struct native_frame *ret_frames, size_t capacity)
{
    const struct known_stack *stack = memory->stack;
    if (position->sp < memory->same_from)
        return 0;
    while (memory->at < stack->count && stack->frames[memory->at].position.sp < position->sp)
        memory->at++;
    if (memory->at == stack->count || !position_is(&stack->frames[memory->at].position, position))
        return 0;
    size_t count = stack->count - memory->at;
    if (count > capacity)
        return 0;
    for (size_t i = 0; i < count; i++)
        ret_frames[i] = stack->frames[memory->at + i].frame;
    memory->reused = memory->at;
    return count;
}

void walk_memory_add(struct walk_memory *memory, const struct walk_position *position,
                     const struct native_frame *frame)
{
    memory->fresh[memory->fresh_count++ % KEPT_FRAMES] = (struct known_frame){ *position, *frame };
}

/* The end of the stack as it is now; false where there is no memory. */
static bool bytes_keep(struct known_stack *stack, const struct stack_image *image)
{
    size_t size = image->size < KEPT_BYTES ? image->size : KEPT_BYTES;
    if (size > stack->room) {
        size_t room = 2 * size < KEPT_BYTES ? 2 * size : KEPT_BYTES;
        uint8_t *bytes = realloc(stack->bytes, room);
        if (!bytes)
            return false;
        stack->bytes = bytes;
        stack->room = room;
    }
    memcpy(stack->bytes, image_end(image) - size, size);
    stack->size = size;
    return true;
}

/* The outermost of those that were found, in front of those that were known. */
static bool frames_keep(struct walk_memory *memory)
{
    struct known_stack *stack = memory->stack;
    size_t old = stack->count - memory->reused, fresh = memory->fresh_count;
    size_t kept = fresh < KEPT_FRAMES - old ? fresh : KEPT_FRAMES - old;
    if (!stack->frames)
        stack->frames = malloc(KEPT_FRAMES * sizeof *stack->frames);
    if (!stack->frames)
        return false;
    memmove(stack->frames + kept, stack->frames + memory->reused, old * sizeof *stack->frames);
    for (size_t i = 0; i < kept; i++)
        stack->frames[i] = memory->fresh[(fresh - kept + i) % KEPT_FRAMES];
    stack->count = kept + old;
    return true;
}

void walk_memory_end(struct walk_memory *memory)
{
    struct known_stack *stack = memory->stack;
    if (!frames_keep(memory) || !bytes_keep(stack, memory->image))
        stack->size = stack->count = 0;
}
