#include "sampler/base/event.h"

const char *thread_state_name(enum thread_state state)
{
    static const char *const names[THREAD_STATE_COUNT] = {
        [THREAD_RUNNING] = "running",  [THREAD_STOPPED] = "stopped",  [THREAD_WAIT_GIL] = "gil",
        [THREAD_WAIT_CPU] = "cpu",     [THREAD_WAIT_LOCK] = "lock",   [THREAD_WAIT_IO] = "io",
        [THREAD_WAIT_SLEEP] = "sleep", [THREAD_WAIT_CHILD] = "child", [THREAD_WAIT_GPU] = "gpu",
        [THREAD_WAIT_OTHER] = "other",
    };
    return names[state];
}

const char *memory_change_name(enum memory_change change)
{
    static const char *const names[MEMORY_CHANGES] = { "allocated", "freed", "resized", "copied",
                                                       "emptied" };
    return names[change];
}
