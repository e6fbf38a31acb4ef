/* Stacks that are kept over the rounds, with texts in a pool of the target's own. */
#include "sampler/base/error.h"
#include "sampler/base/intern.h"
#include "sampler/loop/stack_reader.h"
#include "sampler/loop/target_state.h"

#include <stdlib.h>

enum { TEXTS_MAX = 1 << 20 }; /* bytes, beside what the stacks that are kept just now need */

/* What was told of in this tick is borrowed until it is over. */
static void frames_set_aside(struct account *account)
{
    struct frame_event *frames = account->told_frames;
    size_t capacity = account->told_capacity;
    account->told_frames = account->frames;
    account->told_capacity = account->frame_capacity;
    account->frames = frames;
    account->frame_capacity = capacity;
    account->told = false;
}

int account_keep_stack(struct account *account, const struct thread_event *event)
{
    if (account->told)
        frames_set_aside(account);
    account->has_stack = false;
    account->frame_count = 0;
    if (event->frame_count > account->frame_capacity) {
        struct frame_event *frames = realloc(account->frames, event->frame_count * sizeof *frames);
        if (!frames)
            return -ENOMEM;
        account->frames = frames;
        account->frame_capacity = event->frame_count;
    }
    for (size_t i = 0; i < event->frame_count; i++)
        account->frames[i] = event->frames[i];
    account->frame_count = event->frame_count;
    /* who woke up under the look was not met working: long looks would meet it more often */
    account->state = event->met == THREAD_RUNNING ? event->state : event->met;
    account->cpu = event->cpu;
    account->name = event->name;
    account->keeps_texts = false;
    account->has_stack = true;
    return 0;
}

/* ---- texts ---- */

static int text_keep(struct intern *texts, const char **text)
{
    if (!*text)
        return 0;
    *text = intern_text(texts, *text);
    return *text ? 0 : -1;
}

/* An account without room for its texts has no stack any more. */
static int account_keep_texts(struct intern *texts, struct account *account)
{
    int error = text_keep(texts, &account->name);
    for (size_t i = 0; i < account->frame_count && !error; i++) {
        struct frame_event *frame = &account->frames[i];
        error = text_keep(texts, &frame->name) || text_keep(texts, &frame->file) ||
                text_keep(texts, &frame->module);
    }
    account->keeps_texts = true;
    if (!error)
        return 0;
    account->has_stack = false;
    account->frame_count = 0;
    account->name = NULL;
    return -ENOMEM;
}

/* Also those of threads that sleep all the time, whose stacks nobody reads again. */
void target_keep_names(struct target *target)
{
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        account->name = stack_reader_thread_name(target->reader, i);
        if (account->keeps_texts && account->name)
            account->name = intern_text(target->texts, account->name);
    }
}

int target_keep_texts(struct target *target)
{
    struct intern *old = NULL;
    int error = 0;
    if (!target->texts || intern_size(target->texts) > TEXTS_MAX) {
        struct intern *fresh;
        if (intern_new(&fresh))
            return -ENOMEM;
        old = target->texts;
        target->texts = fresh;
    }
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (old || !account->keeps_texts)
            error = account_keep_texts(target->texts, account) ?: error;
    }
    intern_free(old);
    return error;
}
