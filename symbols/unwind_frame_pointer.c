#include "symbols/unwind_frame_pointer.h"

#include <string.h>

enum { WORD = sizeof(uint64_t), LINK_REGISTER = 30 };

bool stack_image_word(const struct stack_image *image, remote_addr address, uint64_t *ret)
{
    remote_addr offset = address - image->stack_start;
    if (address < image->stack_start || image->size < WORD || offset > image->size - WORD)
        return false;
    memcpy(ret, (const char *)image->bytes + offset, WORD);
    return true;
}

/*
 * x86-64 and AArch64 agree: fp points to the caller's fp, the return address is the word above. The
 * saved fp is not judged here, because the caller may use the register for anything; the next step
 * will.
 */
bool frame_pointer_step(const struct stack_image *image, const struct registers *callee,
                        struct registers *ret_caller)
{
    uint64_t fp = callee->fp, saved_fp, return_address;
    if (fp % WORD || fp < callee->sp || !stack_image_word(image, fp, &saved_fp) ||
        !stack_image_word(image, fp + WORD, &return_address))
        return false;
    *ret_caller = (struct registers){ .ip = return_address, .sp = fp + 2 * WORD, .fp = saved_fp };
    return true;
}

bool frame_undo_call(const struct stack_image *image, const struct registers *callee,
                     struct registers *ret_caller)
{
    *ret_caller = *callee;
#if defined(__aarch64__)
    (void)image;
    ret_caller->ip = callee->count > LINK_REGISTER ? callee->all[LINK_REGISTER] : 0;
    return ret_caller->ip != 0;
#else
    ret_caller->sp += WORD;
    return stack_image_word(image, callee->sp, &ret_caller->ip);
#endif
}
