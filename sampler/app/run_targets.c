#include "sampler/app/run_targets.h"

#include "sampler/app/run_control.h"
#include "sampler/app/run_memory.h"
#include "sampler/app/session.h"
#include "sampler/base/cleanup.h"

#include <string.h>

void run_learn_program(struct run *run, const char *const *argv, const char *cwd)
{
    program_find(argv, cwd, &run->program);
    run->settings.program = run->program.path;
    run->settings.entrypoint_dir = *run->program.path ? run->program.folder : "";
    run->settings.program_path =
        run->options->program_path ? run->options->program_path : run->program.folder;
}

/* `run prog.py args` is `python3 prog.py args`. */
static int command_build(const struct options *options, char ***ret)
{
    size_t count = 0;
    while (options->words[count])
        count++;
    char **command = calloc(count + 2, sizeof *command);
    if (!command)
        return -ENOMEM;
    size_t at = 0;
    if (options->verb == VERB_RUN)
        command[at++] = (char *)options->python;
    for (size_t i = 0; i < count; i++) /* the --- that ends a program's own words is Scalene's */
        if (options->verb != VERB_RUN || i == 0 || strcmp(options->words[i], "---") != 0)
            command[at++] = options->words[i];
    *ret = command;
    return 0;
}

int run_learn_command(struct run *run, char ***ret_command, struct failure *why)
{
    char cwd[4096] = "";
    if (!run->options->words || !run->options->words[0])
        return failure_set(why, -EINVAL, "there is no program to run");
    int error = command_build(run->options, ret_command);
    if (error)
        return failure_set(why, error, "out of memory");
    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    run_learn_program(run, (const char *const *)*ret_command, cwd);
    return 0;
}

int run_launch(struct run *run, int *ret_status, struct failure *why)
{
    AUTO_FREE char **command = NULL;
    int error = run_learn_command(run, &command, why);
    if (error)
        return error;
    error = run_memory_open(run, command);
    if (error)
        return failure_set(why, error, "out of memory");
    error = launch_start(command, run_memory_environment(run), &run->signals, &run->launch, why);
    if (error) {
        *ret_status = launch_failed_status(error);
        return error;
    }
    error = run_control_open(run, launch_pid(run->launch), why);
    return error ? error : family_watch_add(run->family, launch_pid(run->launch));
}

static void target_learn(struct run *run, pid_t pid)
{
    char cwd[4096] = "", link[64], words[4096];
    const char *argv[WORD_LIST_MAX + 1] = { NULL };
    snprintf(link, sizeof link, "/proc/%d/cwd", pid);
    ssize_t length = readlink(link, cwd, sizeof cwd - 1);
    cwd[length > 0 ? length : 0] = '\0';
    process_read_arguments(pid, words, sizeof words, argv, WORD_LIST_MAX);
    run_learn_program(run, argv, cwd);
}

static bool was_named_before(const struct pid_list *pids, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (pids->items[i] == pids->items[index])
            return true;
    return false;
}

static int attach_target(struct run *run, pid_t pid, struct failure *why)
{
    int error = session_probe(pid, run->options->subprocesses, why);
    if (error)
        return error;
    error = run_control_open(run, pid, why);
    if (error)
        return error;
    error = family_watch_add(run->family, pid);
    if (error)
        return failure_set(why, error, "process %d ended before it could be watched", pid);
    return 0;
}

int run_attach(struct run *run, struct failure *why)
{
    const struct pid_list *pids = &run->options->pids;
    int error = 0;
    for (size_t i = 0; i < pids->count && !error; i++)
        if (!was_named_before(pids, i))
            error = attach_target(run, pids->items[i], why);
    if (!error)
        target_learn(run, pids->items[0]);
    return error;
}
