#include "sampler/app/run_targets.h"

#include "sampler/app/run_control.h"
#include "sampler/app/run_memory.h"
#include "sampler/app/session.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/proc_file.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* Without memory for them there are none. */
static void args_learn(struct run *run, const char *const *argv)
{
    const char *first;
    const char *const *rest = program_arguments(argv, &first);
    size_t count = 0;
    while (rest[count])
        count++;
    run_forget_args(run);
    run->args = calloc(count + 2, sizeof *run->args);
    for (size_t i = 0; run->args && i <= count; i++)
        run->args[i] = strdup(i ? rest[i - 1] : first);
}

void run_forget_args(struct run *run)
{
    for (size_t i = 0; run->args && run->args[i]; i++)
        free(run->args[i]);
    free(run->args);
    run->args = NULL;
}

static void module_learn(struct run *run, struct program *program, const char *path)
{
    snprintf(program->path, sizeof program->path, "%s", path ?: "");
    if (!run->args || !run->args[0])
        return;
    free(run->args[0]);
    run->args[0] = strdup(program->path);
}

void run_learn_first(struct run *run)
{
    struct profile_first first;
    struct program program = run->program;
    if (!profile_find_first(run->profile, &first))
        return;
    if (first.is_python && !program.is_python && !*program.path) {
        program_find(first.argv, first.cwd ?: "", &program);
        args_learn(run, first.argv);
    }
    if (program.is_module)
        module_learn(run, &program, first.module);
    bool has_folder = *program.path && !program.is_module;
    profile_set_program(run->profile, program.path, has_folder ? program.folder : "",
                        (const char *const *)run->args);
}

static void first_learn(struct run *run, const char *const *argv, const char *cwd)
{
    program_find(argv, cwd, &run->program);
    args_learn(run, argv);
    run->settings.args = (const char *const *)run->args;
    run->settings.program = run->program.path;
    run->settings.entrypoint_dir = *run->program.path ? run->program.folder : "";
    run->settings.program_path =
        run->options->program_path ? run->options->program_path : run->program.folder;
}

void run_learn_program(struct run *run, size_t index, const char *const *argv, const char *cwd)
{
    struct program program;
    if (index == 0) {
        first_learn(run, argv, cwd);
    } else if (!run->options->program_path) {
        program_find(argv, cwd, &program);
        if (*program.folder)
            run->more_paths[run->more_count++] = strdup(program.folder);
        else
            run->settings.program_path = "";
        run->settings.more_paths = (const char *const *)run->more_paths;
    }
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
    bool is_run = options->verb == VERB_RUN;
    if (is_run)
        command[at++] = (char *)options->python;
    for (size_t i = 0, marks = 0; i < count; i++)
        /* the first --- behind the program is Scalene's, all others are its own */
        if (!is_run || i == 0 || strcmp(options->words[i], "---") != 0 || marks++)
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
    run_learn_program(run, 0, (const char *const *)*ret_command, cwd);
    return 0;
}

/* What says so already stays. */
static void jit_disable(void)
{
    setenv("JAX_DISABLE_JIT", "1", 0);
    setenv("PYTORCH_JIT", "0", 0);
}

int run_launch(struct run *run, int *ret_status, struct failure *why)
{
    AUTO_FREE char **command = NULL;
    int error = run_learn_command(run, &command, why);
    if (error)
        return error;
    if (run->options->disable_jit)
        jit_disable();
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

/* Unix time at which it had begun for certain: the kernel tells the tick before. */
static double process_began(pid_t pid)
{
    struct timespec now, up;
    struct proc_stat stat;
    if (proc_read_pid_stat(pid, &stat))
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (double)(now.tv_sec - up.tv_sec) + 1e-9 * (double)(now.tv_nsec - up.tv_nsec) +
           (double)(stat.start_time + 1) / (double)sysconf(_SC_CLK_TCK);
}

static void target_learn(struct run *run, pid_t pid, size_t index)
{
    char cwd[4096] = "", link[64], words[4096];
    const char *argv[WORD_LIST_MAX + 1] = { NULL };
    double *since = &run->settings.code_since, began = process_began(pid);
    if (began && (!*since || began < *since))
        *since = began;
    snprintf(link, sizeof link, "/proc/%d/cwd", pid);
    ssize_t length = readlink(link, cwd, sizeof cwd - 1);
    cwd[length > 0 ? length : 0] = '\0';
    process_read_arguments(pid, words, sizeof words, argv, WORD_LIST_MAX);
    run_learn_program(run, index, argv, cwd);
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
    int error = session_probe(pid, run->options->subprocesses, !run->options->nonblocking, why);
    if (error)
        return error;
    error = control_check(pid, why);
    if (!error)
        error = run_control_open(run, pid, why);
    if (error)
        return error;
    error = run_memory_attach(run, pid, why);
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
    for (size_t i = 0; i < pids->count && !error; i++)
        target_learn(run, pids->items[i], i);
    return error;
}
