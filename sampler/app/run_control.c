#include "sampler/app/run_control.h"

#include "sampler/app/run_output.h"
#include "sampler/app/run_sampling.h"
#include "sampler/app/status.h"
#include "sampler/base/cleanup.h"

#include <limits.h>
#include <string.h>
#include <time.h>

/* ---- listening ---- */

int run_control_open(struct run *run, pid_t pid, struct failure *why)
{
    struct steered *steered = &run->steered[run->steered_count];
    struct failure refusal = { 0 };
    int error = control_open(pid, &steered->control, &refusal);
    if (error == -EBUSY)
        *why = refusal;
    if (error == -EBUSY)
        return error;
    if (error) {
        fprintf(stderr, "scalene-attach: this run cannot be steered: %s\n", refusal.text);
        return 0;
    }
    steered->pid = pid;
    run->steered_count++;
    return 0;
}

size_t run_control_poll(const struct run *run, struct pollfd *into)
{
    for (size_t i = 0; i < run->steered_count; i++)
        into[i] = (struct pollfd){ control_fd(run->steered[i].control), POLLIN, 0 };
    return run->steered_count;
}

/* ---- who is meant ---- */

/* They stay after their end, which their children may outlive. */
static bool is_root(const struct run *run, pid_t pid)
{
    for (size_t i = 0; i < run->steered_count; i++)
        if (run->steered[i].pid == pid)
            return true;
    return false;
}

/* What is done is done to all that is profiled at once, and so is what is said of it. */
static const char *target_text(const struct run *run, pid_t target, char *into, size_t size)
{
    if (is_root(run, target))
        snprintf(into, size, "process %d", target);
    else
        snprintf(into, size, "process %d, followed with process %d,", target, run->steered[0].pid);
    return into;
}

#define TARGET_TEXT(run, target) target_text(run, target, (char[80]){ "" }, 80)

/* ---- answers ---- */

/* As seen from anywhere. */
static void path_complete(const char *path, char *into, size_t size)
{
    AUTO_FREE char *complete = realpath(path, NULL);
    snprintf(into, size, "%s", complete ? complete : path);
}

static void saved_tell(const char *path, char *into, size_t size)
{
    char complete[PATH_MAX];
    path_complete(path, complete, sizeof complete);
    if (*path)
        snprintf(into, size, "profile saved to %s", complete);
    else
        snprintf(into, size, "profile shown on the profiler's own terminal");
}

static void flush_answer(struct run *run, struct control_request *request)
{
    char path[SAVE_PATH_SIZE], text[SAVE_PATH_SIZE + 64];
    struct failure why = { 0 };
    int error = run_write(run, false, path, &why);
    if (error == -ENODATA)
        control_answer(request, error, "there is nothing to write yet");
    else if (error)
        control_answer(request, error, why.text);
    else {
        saved_tell(path, text, sizeof text);
        control_answer(request, 0, text);
    }
}

/* The file may not be there yet, but its folder is. */
static const char *output_find(const struct run *run, char *into, size_t size)
{
    char path[SAVE_PATH_SIZE], folder[PATH_MAX] = "";
    if (run_output_path(run, path))
        return NULL;
    if (*path != '/' && !getcwd(folder, sizeof folder))
        folder[0] = '\0';
    snprintf(into, size, "%s%s%s", folder, *folder ? "/" : "", path);
    return into;
}

static void status_answer(struct run *run, struct control_request *request)
{
    AUTO_FREE char *text = NULL;
    size_t size;
    char output[PATH_MAX + SAVE_PATH_SIZE];
    struct members_glance members;
    struct sampling_event sampling;
    run_look(run, clock_ns(CLOCK_MONOTONIC), &sampling);
    members_look(run->members, &members);
    struct status status = {
        .target = request->target,
        .profiler = getpid(),
        .version = run->version,
        .mode = run->settings.attached ? "attach" : "launch",
        .is_on = !run->is_off,
        .output = output_find(run, output, sizeof output),
        .processes = members.alive,
        .rss_bytes = members.rss_bytes,
        .sampling = &sampling,
    };
    profile_look(run->profile, &status.glance);
    FILE *into = open_memstream(&text, &size);
    if (into && request->verb == CONTROL_STATUS)
        status_write_text(into, &status);
    else if (into)
        status_write_json(into, &status);
    if (!into || fclose(into))
        control_answer(request, -ENOMEM, "the profiler is out of memory");
    else
        control_answer(request, 0, text);
}

static int switch_answer(struct run *run, struct control_request *request)
{
    char text[128];
    bool on = request->verb == CONTROL_ON;
    int error = run_switch(run, on);
    snprintf(text, sizeof text, "sampling of %s is %s", TARGET_TEXT(run, request->target),
             on ? "on" : "off");
    control_answer(request, error, error ? "the profiler is out of memory" : text);
    return error;
}

/* Nobody whom we do not follow is steered, nor kept from another profiler. */
static bool stranger_answer(struct run *run, struct control_request *request)
{
    char text[160];
    if (is_root(run, request->target) || members_include(run->members, request->target))
        return false;
    snprintf(text, sizeof text,
             "no profiler of yours watches process %d; that of process %d does not follow it",
             request->target, run->steered[0].pid);
    control_answer(request, -ENOENT, text);
    return true;
}

static int request_follow(struct run *run, struct control_request *request)
{
    if (stranger_answer(run, request))
        return 0;
    switch (request->verb) {
    case CONTROL_ON:
    case CONTROL_OFF:
        return switch_answer(run, request);
    case CONTROL_FLUSH:
        flush_answer(run, request);
        return 0;
    case CONTROL_STOP:
        run->stop = *request;
        run->stop_target = request->target;
        run->finished = true;
        return 0;
    case CONTROL_FOLLOWS:
        control_answer(request, 0, "");
        return 0;
    default:
        status_answer(run, request);
        return 0;
    }
}

int run_control_follow(struct run *run)
{
    struct control_request request;
    int error = 0;
    for (size_t i = 0; i < run->steered_count; i++)
        while (!error && !run->finished && control_next(run->steered[i].control, &request))
            error = request_follow(run, &request);
    return error;
}

static void stop_answer(struct run *run, int error, const char *path, const struct failure *why)
{
    char saved[SAVE_PATH_SIZE + 64], text[SAVE_PATH_SIZE + 128];
    if (error && error != -ENODATA) {
        control_answer(&run->stop, error, why->text);
        return;
    }
    if (error)
        snprintf(saved, sizeof saved, "there was nothing to show");
    else
        saved_tell(path, saved, sizeof saved);
    snprintf(text, sizeof text, "profiling of %s has ended; %s", TARGET_TEXT(run, run->stop_target),
             saved);
    control_answer(&run->stop, 0, text);
}

void run_control_close(struct run *run, int error, const char *path, const struct failure *why)
{
    for (size_t i = 0; i < run->steered_count; i++)
        control_close(run->steered[i].control);
    if (run->stop_target)
        stop_answer(run, error, path, why);
    run->steered_count = 0;
    run->stop_target = 0;
}
