/* Any stream of events: refused, or a profile whose report can be written. */
#include "output/json/profile_json.h"
#include "output/model/profile.h"
#include "sampler/base/cleanup.h"
#include "sampler/loop/recorder.h"
#include "tests/fuzz/fuzz.h"

DEFINE_CLEANUP(struct report *, report_free)
DEFINE_CLEANUP(struct profile *, profile_free)

struct profile_sink {
    struct stream_sink sink;
    struct profile *profile;
};

static int sink_process(struct stream_sink *sink, const struct process_event *process)
{
    return profile_add_process(((struct profile_sink *)sink)->profile, process);
}

static int sink_tick(struct stream_sink *sink, const struct tick_event *tick)
{
    return profile_add_tick(((struct profile_sink *)sink)->profile, tick);
}

static int sink_sampling(struct stream_sink *sink, const struct sampling_event *sampling)
{
    return profile_set_sampling(((struct profile_sink *)sink)->profile, sampling);
}

static int sink_memory(struct stream_sink *sink, const struct memory_event *event)
{
    return profile_add_memory(((struct profile_sink *)sink)->profile, event);
}

static int sink_memory_loss(struct stream_sink *sink, const struct memory_loss_event *loss)
{
    return profile_add_memory_loss(((struct profile_sink *)sink)->profile, loss);
}

static void must(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct profile_settings settings = { .profiler_version = "1.0",
                                                      .program = "/srv/shop/main.py",
                                                      .program_path = "/srv",
                                                      .cpu_count = 1 };
    CLEANUP(report_freep) struct report *report = NULL;
    CLEANUP(profile_freep) struct profile *profile = NULL;
    struct failure why = { 0 };
    if (!size)
        return 0;
    must(profile_new(&settings, &profile) == 0);
    struct profile_sink sink = {
        { sink_process, sink_tick, sink_sampling, sink_memory, sink_memory_loss }, profile
    };
    AUTO_FCLOSE FILE *from = fmemopen((void *)(uintptr_t)data, size, "r");
    AUTO_FCLOSE FILE *into = fopen("/dev/null", "w");
    must(from && into);
    int error = stream_replay(from, &sink.sink, &why);
    must(!error || error == -EBADMSG);
    must(profile_report(profile, &report) == 0);
    must(profile_json_write(report, into) == 0);
    return 0;
}
