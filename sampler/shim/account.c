#define _GNU_SOURCE 1 /* syscall */

#include "sampler/shim/account.h"

#include "sampler/shim/asked_sizes.h"
#include "sampler/shim/early.h"
#include "sampler/shim/hooks.h"
#include "sampler/shim/python_hooks.h"
#include "sampler/shim/records.h"
#include "sampler/shim/sampling.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NEVER (INT64_MAX / 2)

/* While CPython starts, it may set its allocators again: that is looked after every so many bytes.
 * Where listeners come and go, a thread sees every so many whether it is the same one as before. */
enum { STEP_AT_START = 4096, STEP_ATTACHED = 16384 };

__thread struct shim_thread shim_thread;

static _Atomic uint64_t block_numbers;

struct stay stay_begin(void)
{
    struct stay stay = { errno, shim_thread.inside, shim_thread.copy_countdown };
    shim_thread.inside = true;
    return stay;
}

void stay_end(struct stay stay)
{
    shim_thread.copy_countdown = stay.copy_countdown;
    shim_thread.inside = stay.inside;
    errno = stay.error;
}

/* ---- when the next sample is due ---- */

static int64_t distance_draw(uint64_t window)
{
    if (!recorder.ring.head || !window)
        return NEVER;
    return sampling_distance(&shim_thread.random, window);
}

static void distance_set(int64_t *countdown, int64_t *beyond, int64_t distance)
{
    int64_t step = recorder.attached          ? STEP_ATTACHED
                   : python_hooks_unsettled() ? STEP_AT_START
                                              : INT64_MAX;
    *countdown = distance < step ? distance : step;
    *beyond = distance - *countdown;
}

static void thread_seed(struct shim_thread *thread, uint32_t term)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    thread->random = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uintptr_t)thread ^
                      (uint64_t)syscall(SYS_gettid) << 40) |
                     1;
    for (int i = 0; i < 8; i++)
        random_next(&thread->random);
    thread->beyond = distance_draw(recorder.ring.window);
    thread->copy_beyond = distance_draw(recorder.ring.copy_window);
    thread->term = term;
}

/* The countdown is below zero. Is the distance over, too? Then another one begins. */
static bool sample_is_due(int64_t *countdown, int64_t *beyond, uint64_t window)
{
    if (!atomic_load_explicit(&recorder.began, memory_order_acquire)) {
        *countdown = 0;
        return false;
    }
    uint32_t term = atomic_load_explicit(&recorder.term, memory_order_relaxed);
    if (shim_thread.term != term)
        thread_seed(&shim_thread, term);
    int64_t left = *countdown + *beyond;
    distance_set(countdown, beyond, left < 0 ? distance_draw(window) : left);
    return left < 0 && recorder_listens();
}

static bool allocation_is_due(void)
{
    python_hooks_look();
    return sample_is_due(&shim_thread.countdown, &shim_thread.beyond, recorder.ring.window);
}

void account_look_soon(void)
{
    if (shim_thread.countdown > 0) {
        shim_thread.beyond += shim_thread.countdown;
        shim_thread.countdown = 0;
    }
}

/* ---- blocks ---- */

static void growth_told(struct block *block, size_t growth, enum allocation_domain domain)
{
    uint64_t weight = sampling_weight(growth, recorder.ring.window);
    uint64_t number = block->number;
    if (!number)
        number = atomic_fetch_add_explicit(&block_numbers, 1, memory_order_relaxed) + 1;
    shim_thread.has_gil = domain == DOMAIN_MEM || domain == DOMAIN_OBJECT;
    bool is_told = record_allocated(number, growth, domain);
    shim_thread.has_gil = false;
    if (!is_told) {
        block->lost += weight;
        return;
    }
    block->number = number;
    block->told += growth;
    block->weight += weight;
}

bool growth_sample(struct block *block, size_t growth, enum allocation_domain domain)
{
    if (!countdown_passes(growth) || !allocation_is_due())
        return false;
    growth_told(block, growth, domain);
    return true;
}

/*
 * What was told shrinks in proportion. Of each sampled part of the block that is a part of the same
 * size, so that expectation stays: which bytes of the block were sampled is not kept.
 */
void block_shrink(struct block *block, uint64_t size)
{
    double share = (double)size / (double)block->size;
    uint64_t weight = block->weight;
    block->size = size;
    block->told = (uint64_t)((double)block->told * share + 0.5);
    block->weight = (uint64_t)((double)block->weight * share + 0.5);
    if (recorder_listens())
        record_resized(block, weight - block->weight);
}

void block_end(const struct block *block)
{
    if (recorder_listens())
        record_freed(block);
}

/* Another block at the same address has ended unheard: by a way that no hook sees. */
static void block_keep(const void *address, const struct block *block)
{
    struct block stale;
    if (blocks_may_have(address) && blocks_take(address, &stale))
        block_end(&stale);
    if (!blocks_add(address, block))
        block_end(block);
}

static bool is_countable(enum allocation_domain domain)
{
    return domain != DOMAIN_NATIVE || !hooks_pass_by;
}

/* An unsampled block, new or not, has grown to `size`, and the countdown is over. */
static void account_growth(const void *address, size_t size, size_t growth,
                           enum allocation_domain domain)
{
    struct stay stay = stay_begin();
    if (allocation_is_due() && is_countable(domain)) {
        struct block block = { .size = size };
        growth_told(&block, growth, domain);
        block_keep(address, &block);
    }
    stay_end(stay);
}

void *account_sample(void *address, size_t size, enum allocation_domain domain)
{
    account_growth(address, size, size, domain);
    return address;
}

void account_ended(const struct block *block)
{
    struct stay stay = stay_begin();
    block_end(block);
    stay_end(stay);
}

bool account_free(const void *address)
{
    struct block block;
    if (blocks_take(address, &block))
        account_ended(&block);
    return !early_has(address);
}

void resizing_begin(struct resizing *resizing, const void *old)
{
    resizing->sampled = old && UNLIKELY(blocks_may_have(old)) && blocks_take(old, &resizing->block);
    resizing->asked = resizing->sampled ? 0 : asked_sizes_take(old);
}

/* Whose asked size is not kept is taken to have had the likely one: right on average, over any
 * number of steps. */
static void unsampled_resized(const struct resizing *resizing, const void *new, size_t size,
                              const struct given_sizes *given, enum allocation_domain domain)
{
    size_t before = asked_size(resizing->asked, given->before);
    before = before ? before : given->likely;
    size_t growth = before && size > before ? size - before : 0;
    if (recorder.ring.head)
        asked_sizes_keep(new, size, given->after);
    if (growth && countdown_passes(growth))
        account_growth(new, size, growth, domain);
}

void resizing_end(struct resizing *resizing, const void *old, const void *new, size_t size,
                  const struct given_sizes *given, enum allocation_domain domain)
{
    struct block *block = &resizing->block;
    if (!resizing->sampled) {
        if (new)
            unsampled_resized(resizing, new, size, given, domain);
        return;
    }
    struct stay stay = stay_begin();
    if (new &&size > block->size) {
        growth_sample(block, size - block->size, domain);
        block->size = size;
    } else if (new &&size < block->size) {
        block_shrink(block, size);
    }
    block_keep(new ? new : old, block);
    stay_end(stay);
}

/* ---- copies ---- */

void account_copy(size_t size)
{
    if (shim_thread.inside) {
        shim_thread.copy_countdown += (int64_t)size; /* else the next is taken for the sample */
        if (shim_thread.watch && size > shim_thread.watch->copied)
            shim_thread.watch->copied = size;
        return;
    }
    struct stay stay = stay_begin();
    bool due = sample_is_due(&shim_thread.copy_countdown, &shim_thread.copy_beyond,
                             recorder.ring.copy_window);
    stay.copy_countdown = shim_thread.copy_countdown;
    if (due)
        record_copied(sampling_weight(size, recorder.ring.copy_window));
    stay_end(stay);
}
