/* Memory events are counted. */
#include "output/model/profile_state.h"

int profile_add_memory(struct profile *profile, const struct memory_event *event)
{
    struct profile_tap *tap = profile->settings.tap;
    int error = tap ? tap->memory(tap, event) : 0;
    if (error)
        return error;
    if (event->change == MEMORY_ALLOCATED)
        profile->allocated_bytes += event->weight_bytes;
    if (event->change == MEMORY_COPIED)
        profile->copied_bytes += event->weight_bytes;
    return 0;
}

int profile_add_memory_loss(struct profile *profile, const struct memory_loss_event *loss)
{
    struct profile_tap *tap = profile->settings.tap;
    profile->loss = *loss;
    return tap ? tap->memory_loss(tap, loss) : 0;
}
