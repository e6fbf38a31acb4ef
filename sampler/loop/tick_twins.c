/* A thread that is in several interpreters has a stack in each, and its time only once. */
#include "sampler/loop/target_state.h"

static bool is_twin(const struct account *account, const struct account *other)
{
    return account->tid == other->tid && account->interpreter != other->interpreter;
}

void target_match_twins(struct target *target)
{
    target->has_twins = false;
    for (size_t i = 0; i < target->count; i++) {
        struct account *account = &target->accounts[i];
        if (account->interpreter == target->accounts[0].interpreter)
            continue;
        for (size_t j = 0; j < target->count; j++) {
            const struct account *other = &target->accounts[j];
            if (!is_twin(account, other))
                continue;
            target->has_twins = true;
            if (account->known || !other->known)
                continue;
            account->run_ns = other->run_ns;
            account->queued_ns = other->queued_ns;
            account->seen_ns = other->seen_ns;
            account->known = true;
        }
    }
}

static bool has_frames(const struct account *account)
{
    return account->has_stack && account->frame_count;
}

bool account_yields(const struct target *target, const struct account *account)
{
    for (size_t i = 0; i < target->count && target->has_twins; i++) {
        const struct account *other = &target->accounts[i];
        if (!is_twin(account, other) || other->gone)
            continue;
        if (has_frames(other) != has_frames(account) ? has_frames(other)
                                                     : other->interpreter > account->interpreter)
            return true;
    }
    return false;
}
