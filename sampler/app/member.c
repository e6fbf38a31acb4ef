#include "sampler/app/member.h"

#include "sampler/target/cpu_clock.h"
#include "symbols/find_python.h"

#include <string.h>
#include <unistd.h>

enum {
    TRY_FIRST_NS = 500000,      /* a process that is no Python yet is asked again after this, … */
    TRY_LONGEST_NS = 500000000, /* … and then after half as long again each time, up to this */
    SCAN_FROM_NS = 100000000,
};

static void link_read(pid_t pid, const char *name, char *into, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    ssize_t length = readlink(path, into, size - 1);
    into[length > 0 ? length : 0] = '\0';
}

/* One that has ended has no words any more. */
static void member_describe(struct member *member)
{
    char executable[sizeof member->executable];
    link_read(member->pid, "exe", executable, sizeof executable);
    if (!*executable)
        return;
    process_read_arguments(member->pid, member->arguments, sizeof member->arguments, member->argv,
                           ARGUMENTS_MAX);
    snprintf(member->executable, sizeof member->executable, "%s", executable);
    link_read(member->pid, "cwd", member->cwd, sizeof member->cwd);
}

void member_begin(struct member *member, uint64_t now_ns)
{
    member->told = member->was_python = false;
    member->refusal = 0;
    member->next_try_ns = now_ns;
    member->try_ns = 0;
    member_describe(member);
}

/* What is told by looks is in no doubt; other accounts may be older. */
void member_learn_cpu(struct member *member, uint64_t cpu_ns)
{
    uint64_t told_ns = member->base_ns + member->told_ns;
    member->cpu_ns = cpu_ns > told_ns ? cpu_ns : told_ns;
}

uint64_t member_untold_ns(const struct member *member)
{
    return member->cpu_ns - member->base_ns - member->told_ns;
}

/* What looks through the memory can wait: most that are young are no Python, or have a symbol. */
static int target_find(struct member *member, const struct stack_options *options,
                       struct sources *sources, uint64_t now_ns, struct failure *why)
{
    struct process *process = NULL;
    struct stack_options looking = *options;
    if (member->born && member->try_ns < SCAN_FROM_NS)
        looking.find_methods = 1 << FOUND_BY_SYMBOL | 1 << FOUND_BY_SECTION;
    int error = process_open(member->pid, &process, why);
    if (error)
        return error;
    sources_add_process(sources, process->proc_fd);
    return target_open(process, &looking, now_ns, &member->target, why);
}

static void member_opened(struct member *member)
{
    uint64_t cpu_ns;
    member_describe(member); /* a program that has just begun now shows its own words */
    snprintf(member->python, sizeof member->python, "%s",
             stack_reader_python(target_reader(member->target)));
    if (cpu_clock_read(member->pid, &cpu_ns) == 0)
        member_learn_cpu(member, cpu_ns);
    if (!member->born && !member->was_python && !member->told_ns)
        member->base_ns = member->cpu_ns;
    member->begins = member->was_python = true;
}

int member_open(struct member *member, const struct stack_options *options, struct sources *sources,
                uint64_t now_ns, struct failure *why)
{
    int error = target_find(member, options, sources, now_ns, why);
    if (error != -ESRCH || !member->refusal) /* what it was is better than that it is gone */
        member->refusal = error;
    if (!error) {
        member_opened(member);
        return 0;
    }
    member->try_ns = member->try_ns ? member->try_ns + member->try_ns / 2 : TRY_FIRST_NS;
    if (member->try_ns > TRY_LONGEST_NS)
        member->try_ns = TRY_LONGEST_NS;
    member->next_try_ns = now_ns + member->try_ns;
    return error;
}

bool member_is_refused(const struct member *member)
{
    return member->refusal == -EPERM || member->refusal == -ENOTSUP;
}

bool member_waits_for_open(const struct member *member)
{
    return !member->target && !member->ended && !member_is_refused(member);
}

const char *member_note(const struct member *member)
{
    if (member->was_python)
        return NULL;
    if (member_is_refused(member))
        return "could not be looked into";
    if (member->refusal == -ENOENT)
        return member->had_stacks ? "not a Python any more" : "not a Python";
    return "ended before it could be looked into";
}
