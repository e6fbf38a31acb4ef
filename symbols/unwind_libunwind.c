/*
 * libunwind's remote interface over a copy: it asks us for registers, words and unwind tables, and
 * we answer from the copied registers, the copied stack, and pages of the target that cannot change
 * while it runs.
 */
#include "symbols/unwinder.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "sampler/base/page_cache.h"
#include "symbols/cfi_check.h"
#include "symbols/unwind_frame_pointer.h"
#include "symbols/unwind_tables.h"
#include "symbols/walk_memory.h"

#include <libunwind.h>
#include <string.h>

#if defined(__x86_64__)
#define FRAME_POINTER UNW_X86_64_RBP
#elif defined(__aarch64__)
#define FRAME_POINTER UNW_AARCH64_X29
#endif

enum {
    CACHED_STEPS = 4096,   /* libunwind keeps what it learnt of so many code addresses */
    READ_BUDGET = 1 << 20, /* words a walk may read: hostile unwind tables can loop */
};

/* Exported by libunwind and made for callers with accessors of their own, but in none of its
 * headers. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
                                              unw_dyn_info_t *table, unw_proc_info_t *ret_procedure,
                                              int need_unwind_info, void *argument);

struct native_unwind {
    struct remote *memory;
    struct page_cache *pages;
    unw_addr_space_t space;
    const struct maps *maps;
    struct unwind_tables tables;
    struct walk_memory *walks;

    /* The walk under way. */
    const struct stack_image *image;
    struct registers registers; /* where the cursor was started */
    unw_cursor_t cursor;
    size_t reads_left;
    bool uncovered; /* the last step found no unwind table for its address */
};

/* ---- what libunwind asks ---- */

static int answer_procedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *ret,
                            int need_unwind_info, void *argument)
{
    struct native_unwind *unwind = argument;
    struct remote *pages = page_cache_remote(unwind->pages);
    const struct unwind_table *table = unwind_tables_find(&unwind->tables, pages, ip);
    struct table_function function;
    int error = -UNW_ENOINFO;
    if (table && unwind_table_function(table, pages, ip, &function) &&
        cfi_is_sound(pages, function.fde)) {
        unw_dyn_info_t info = {
            .start_ip = table->start,
            .end_ip = table->end,
            .format = UNW_INFO_FORMAT_REMOTE_TABLE,
            .u.rti = { .segbase = table->base,
                       .table_data = table->entries,
                       .table_len = table->entry_count },
        };
        error = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &info, ret, need_unwind_info, unwind);
    }
    if (error != -UNW_ENOINFO)
        return error;
    /* Any other error keeps libunwind from guessing; frame_step() does that, with more care. */
    unwind->uncovered = true;
    return -UNW_ESTOPUNWIND;
}

static void answer_procedure_put(unw_addr_space_t space, unw_proc_info_t *procedure, void *argument)
{
    (void)space, (void)procedure, (void)argument;
}

static int answer_dynamic_list(unw_addr_space_t space, unw_word_t *ret, void *argument)
{
    (void)space, (void)ret, (void)argument;
    return -UNW_ENOINFO;
}

/* Beyond the copy anything but stacks and heaps, which the running target is writing to at this
 * moment. The data of an object may be asked for, though: unwind tables point to their personality
 * routine through it. */
static int answer_word(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
                       void *argument)
{
    struct native_unwind *unwind = argument;
    (void)space;
    if (write || !unwind->reads_left)
        return -UNW_EINVAL;
    unwind->reads_left--;
    if (stack_image_word(unwind->image, address, value))
        return 0;
    const struct mapping *mapping = maps_find(unwind->maps, address);
    if (!mapping || (mapping->writable && !mapping->inode) ||
        remote_read(page_cache_remote(unwind->pages), address, value, sizeof *value))
        return -UNW_EINVAL;
    return 0;
}

static int answer_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
                           int write, void *argument)
{
    const struct registers *registers = &((struct native_unwind *)argument)->registers;
    (void)space;
    if (write)
        return -UNW_EREADONLYREG;
    if (number == UNW_REG_IP)
        *value = registers->ip;
    else if (number == UNW_REG_SP)
        *value = registers->sp;
    else if (number == FRAME_POINTER)
        *value = registers->fp;
    else if (number >= 0 && (unsigned)number < registers->count)
        *value = registers->all[number];
    else
        return -UNW_EBADREG;
    return 0;
}

static int answer_float_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value,
                                 int write, void *argument)
{
    (void)space, (void)number, (void)value, (void)write, (void)argument;
    return -UNW_EBADREG;
}

static int answer_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *argument)
{
    (void)space, (void)cursor, (void)argument;
    return -UNW_EINVAL;
}

static int answer_name(unw_addr_space_t space, unw_word_t ip, char *name, size_t size,
                       unw_word_t *ret_offset, void *argument)
{
    (void)space, (void)ip, (void)name, (void)size, (void)ret_offset, (void)argument;
    return -UNW_ENOINFO;
}

static unw_accessors_t answers = {
    .find_proc_info = answer_procedure,
    .put_unwind_info = answer_procedure_put,
    .get_dyn_info_list_addr = answer_dynamic_list,
    .access_mem = answer_word,
    .access_reg = answer_register,
    .access_fpreg = answer_float_register,
    .resume = answer_resume,
    .get_proc_name = answer_name,
};

/* ---- the walk ---- */

static bool code_at(const struct native_unwind *unwind, remote_addr ip)
{
    const struct mapping *mapping = maps_find(unwind->maps, ip);
    return mapping && mapping->executable;
}

/* Continues from registers that libunwind did not find itself. */
static bool cursor_restart(struct native_unwind *unwind, const struct registers *caller,
                           struct walk_position *position)
{
    unwind->registers = *caller;
    position->ip = caller->ip;
    position->sp = caller->sp;
    position->fp = caller->fp;
    position->complete = false;
    /* A cursor takes its first address as it is, but this one follows a call. */
    unwind->registers.ip--;
    return unw_init_remote(&unwind->cursor, unwind->space, unwind) == 0;
}

static bool cursor_read(struct native_unwind *unwind, struct walk_position *position)
{
    if (unw_get_reg(&unwind->cursor, FRAME_POINTER, &position->fp))
        position->fp = 0;
    return unw_get_reg(&unwind->cursor, UNW_REG_IP, &position->ip) == 0 &&
           unw_get_reg(&unwind->cursor, UNW_REG_SP, &position->sp) == 0;
}

/* The registers of a frame as far as a step without tables needs them. */
static struct registers frame_registers(const struct native_unwind *unwind,
                                        const struct walk_position *position, bool innermost)
{
    if (innermost)
        return unwind->registers;
    return (struct registers){ .ip = position->ip, .sp = position->sp, .fp = position->fp };
}

/* From a frame to its caller; false at the end of what can be known. */
static bool frame_step(struct native_unwind *unwind, struct walk_position *position, bool innermost)
{
    struct registers callee = frame_registers(unwind, position, innermost), caller;
    if (innermost && !code_at(unwind, position->ip))
        return frame_undo_call(unwind->image, &callee, &caller) &&
               cursor_restart(unwind, &caller, position);

    unwind->uncovered = false;
    int stepped = unw_step(&unwind->cursor);
    if (stepped > 0)
        return cursor_read(unwind, position);
    return unwind->uncovered && frame_pointer_step(unwind->image, &callee, &caller) &&
           cursor_restart(unwind, &caller, position);
}

/* A caller's stack lies above its callee's; only a leaf may have none (AArch64). */
static bool caller_is_sound(const struct native_unwind *unwind, const struct walk_position *callee,
                            const struct walk_position *caller, bool leaf)
{
    return (caller->sp > callee->sp || (leaf && caller->sp == callee->sp)) &&
           code_at(unwind, caller->ip);
}

/* Adds the frame at the position and goes on to its caller's; false where that is not known. */
static bool frame_add(struct native_unwind *unwind, struct walk_position *position,
                      struct native_frame *ret_frame, bool innermost)
{
    /* A signal's trampoline was never called: the kernel put its address where a caller's would be.
     */
    bool signal = unw_is_signal_frame(&unwind->cursor) > 0;
    bool leaf = position->interrupted;
    struct walk_position caller = *position;
    *ret_frame = (struct native_frame){
        .ip = position->ip - !(leaf || signal),
        .sp = position->sp,
        .cfa = position->sp,
    };
    bool more =
        frame_step(unwind, &caller, innermost) && caller_is_sound(unwind, position, &caller, leaf);
    if (more)
        ret_frame->cfa = caller.sp;
    walk_memory_add(unwind->walks, position, ret_frame);
    caller.interrupted = signal;
    *position = caller;
    return more;
}

static int libunwind_walk(struct native_unwind *unwind, const struct stack_image *image,
                          struct native_frame *ret_frames, size_t capacity)
{
    struct walk_position position = {
        .ip = image->registers.ip,
        .sp = image->registers.sp,
        .fp = image->registers.fp,
        .interrupted = true,
        .complete = image->registers.count > 0,
    };
    size_t count = 0, known = 0;

    unwind->image = image;
    unwind->registers = image->registers;
    unwind->reads_left = READ_BUDGET;
    bool more = unwind->maps && unw_init_remote(&unwind->cursor, unwind->space, unwind) == 0;
    walk_memory_begin(unwind->walks, image);
    while (more && count < capacity && !known) {
        more = frame_add(unwind, &position, &ret_frames[count], count == 0);
        count++;
        if (more)
            known =
                walk_memory_find(unwind->walks, &position, ret_frames + count, capacity - count);
    }
    if (known || !more) /* else there are callers that found no room */
        walk_memory_end(unwind->walks);
    return (int)(count + known);
}

/* ---- life ---- */

static void libunwind_close(struct native_unwind *unwind)
{
    if (!unwind)
        return;
    if (unwind->space)
        unw_destroy_addr_space(unwind->space);
    unwind_tables_done(&unwind->tables);
    walk_memory_free(unwind->walks);
    page_cache_free(unwind->pages);
    free(unwind);
}

DEFINE_CLEANUP(struct native_unwind *, libunwind_close)

static int libunwind_open(struct remote *memory, int proc_fd, struct native_unwind **ret)
{
    struct native_unwind *unwind CLEANUP(libunwind_closep) = calloc(1, sizeof *unwind);
    (void)proc_fd;
    if (!unwind)
        return -ENOMEM;
    unwind->memory = memory;
    unwind->space = unw_create_addr_space(&answers, 0);
    if (!unwind->space || page_cache_new(memory, &unwind->pages) || walk_memory_new(&unwind->walks))
        return -ENOMEM;
    unw_set_caching_policy(unwind->space, UNW_CACHE_GLOBAL);
    unw_set_cache_size(unwind->space, CACHED_STEPS, 0);
    *ret = TAKE_PTR(unwind);
    return 0;
}

static int libunwind_set_maps(struct native_unwind *unwind, const struct maps *maps)
{
    unwind->maps = maps;
    int changed = unwind_tables_set_maps(&unwind->tables, maps);
    if (changed < 0)
        return changed;
    if (changed) {
        page_cache_forget(unwind->pages);
        walk_memory_forget(unwind->walks);
        unw_flush_cache(unwind->space, 0, 0);
    }
    return 0;
}

const struct unwinder unwinder_libunwind = {
    .name = "libunwind",
    .open = libunwind_open,
    .set_maps = libunwind_set_maps,
    .walk = libunwind_walk,
    .close = libunwind_close,
};
