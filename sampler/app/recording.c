#include "sampler/app/recording.h"

#include "sampler/base/cleanup.h"
#include "sampler/loop/recorder.h"

#include <string.h>

struct recording {
    struct profile_tap tap; /* first, so that a struct profile_tap * leads back here */
    FILE *into;
    struct recorder *recorder;
    const char *file;
};

static struct recorder *recorder_of(struct profile_tap *tap)
{
    return ((struct recording *)tap)->recorder;
}

static int process_record(struct profile_tap *tap, const struct process_event *process)
{
    return recorder_add_process(recorder_of(tap), process);
}

static int tick_record(struct profile_tap *tap, const struct tick_event *tick)
{
    return recorder_add_tick(recorder_of(tap), tick);
}

static int sampling_record(struct profile_tap *tap, const struct sampling_event *sampling)
{
    return recorder_add_sampling(recorder_of(tap), sampling);
}

static int memory_record(struct profile_tap *tap, const struct memory_event *event)
{
    return recorder_add_memory(recorder_of(tap), event);
}

static int loss_record(struct profile_tap *tap, const struct memory_loss_event *loss)
{
    return recorder_add_memory_loss(recorder_of(tap), loss);
}

int recording_open(const char *file, struct recording **ret, struct failure *why)
{
    AUTO_FREE struct recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return failure_set(why, -ENOMEM, "out of memory");
    recording->tap = (struct profile_tap){ process_record, tick_record, sampling_record,
                                           memory_record, loss_record };
    recording->file = file;
    AUTO_FCLOSE FILE *into = fopen(file, "we");
    if (!into)
        return failure_set(why, -errno, "the recording %s cannot be written: %s", file,
                           strerror(errno));
    int error = recorder_new(into, &recording->recorder);
    if (error)
        return failure_set(why, error, "out of memory");
    recording->into = TAKE_PTR(into);
    *ret = TAKE_PTR(recording);
    return 0;
}

struct profile_tap *recording_tap(struct recording *recording)
{
    return &recording->tap;
}

int recording_close(struct recording *recording, struct failure *why)
{
    if (!recording)
        return 0;
    AUTO_FREE struct recording *closed = recording;
    bool failed = ferror(closed->into);
    failed = fclose(closed->into) || failed;
    recorder_free(closed->recorder);
    return failed ? failure_set(why, -EIO, "the recording %s could not be written to its end",
                                closed->file)
                  : 0;
}

/* ---- replay ---- */

static int file_replay(const char *file, struct stream_sink *sink, struct failure *why)
{
    AUTO_FCLOSE FILE *from = fopen(file, "re");
    if (!from)
        return failure_set(why, -errno, "the recording %s cannot be read: %s", file,
                           strerror(errno));
    int error = stream_replay(from, sink, why);
    if (error == -EBADMSG)
        return failure_prefix(why, "%s is no recording, or a broken one: ", file);
    return error == -ENOMEM ? failure_set(why, error, "out of memory") : error;
}

struct search {
    struct stream_sink sink;
    pid_t pid;
    void (*take)(void *context, const struct process_event *process);
    void *context;
};

enum { FOUND = 1 };

static int process_look(struct stream_sink *sink, const struct process_event *process)
{
    const struct search *search = (const struct search *)sink;
    if (process->pid != search->pid)
        return 0;
    search->take(search->context, process);
    return FOUND;
}

static int tick_pass(struct stream_sink *sink, const struct tick_event *tick)
{
    (void)sink;
    (void)tick;
    return 0;
}

static int sampling_pass(struct stream_sink *sink, const struct sampling_event *sampling)
{
    (void)sink;
    (void)sampling;
    return 0;
}

static int memory_pass(struct stream_sink *sink, const struct memory_event *event)
{
    (void)sink;
    (void)event;
    return 0;
}

static int loss_pass(struct stream_sink *sink, const struct memory_loss_event *loss)
{
    (void)sink;
    (void)loss;
    return 0;
}

int recording_find_process(const char *file, pid_t pid,
                           void (*take)(void *context, const struct process_event *process),
                           void *context, struct failure *why)
{
    struct search search = {
        { process_look, tick_pass, sampling_pass, memory_pass, loss_pass }, pid, take, context
    };
    int result = file_replay(file, &search.sink, why);
    if (result == 0)
        return failure_set(why, -ENOENT, "the recording %s has no process %d", file, pid);
    return result == FOUND ? 0 : result;
}

struct retelling {
    struct stream_sink sink;
    struct profile *profile;
};

static struct profile *profile_of(struct stream_sink *sink)
{
    return ((struct retelling *)sink)->profile;
}

static int process_retell(struct stream_sink *sink, const struct process_event *process)
{
    return profile_add_process(profile_of(sink), process);
}

static int tick_retell(struct stream_sink *sink, const struct tick_event *tick)
{
    return profile_add_tick(profile_of(sink), tick);
}

static int sampling_retell(struct stream_sink *sink, const struct sampling_event *sampling)
{
    return profile_set_sampling(profile_of(sink), sampling);
}

static int memory_retell(struct stream_sink *sink, const struct memory_event *event)
{
    return profile_add_memory(profile_of(sink), event);
}

static int loss_retell(struct stream_sink *sink, const struct memory_loss_event *loss)
{
    return profile_add_memory_loss(profile_of(sink), loss);
}

int recording_replay(const char *file, struct profile *profile, struct failure *why)
{
    struct retelling retelling = {
        { process_retell, tick_retell, sampling_retell, memory_retell, loss_retell }, profile
    };
    return file_replay(file, &retelling.sink, why);
}
