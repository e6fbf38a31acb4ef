#include "sampler/app/member.h"

#include "sampler/app/rank.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/access.h"
#include "sampler/target/cpu_clock.h"
#include "sampler/target/footprint.h"
#include "sampler/target/proc_file.h"
#include "symbols/find_python.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    TRY_FIRST_NS = 500000,      /* a process that is no Python yet is asked again after this, … */
    TRY_LONGEST_NS = 500000000, /* … and then after half as long again each time, up to this */
    SCAN_FROM_NS = 100000000,
    FOOTPRINT_EVERY_NS = 1000000000, /* if it has changed; as soon as it grew by one part in … */
    FOOTPRINT_GROWTH = 16,
    FOOTPRINT_REST = 200, /* times as long as it took to look */
    REFUSED_PART = 20,    /* one look in so many is told of */
    SHIM_FIRST_NS = 50000000,
};

/* What others have of the same pages may change while it has as many as before. */
static const uint64_t FOOTPRINT_SAME_NS = 10000000000;

static const uint64_t SHIM_LONGEST_NS = 5000000000;

static void link_read(pid_t pid, const char *name, char *into, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    ssize_t length = readlink(path, into, size - 1);
    into[length > 0 ? length : 0] = '\0';
}

void member_read_cwd(pid_t pid, char *into, size_t size)
{
    link_read(pid, "cwd", into, size);
}

/* One that has ended has no words any more: false. */
static bool member_describe(struct member *member)
{
    char executable[sizeof member->executable];
    link_read(member->pid, "exe", executable, sizeof executable);
    if (!*executable)
        return false;
    member->has_more_arguments = !process_read_arguments(
        member->pid, member->arguments, sizeof member->arguments, member->argv, ARGUMENTS_MAX);
    snprintf(member->executable, sizeof member->executable, "%s", executable);
    member_read_cwd(member->pid, member->cwd, sizeof member->cwd);
    member->rank = rank_read(member->pid);
    return true;
}

bool member_begin(struct member *member, uint64_t stack_start, uint64_t now_ns)
{
    bool is_known = stack_start && member->stack_start == stack_start;
    member->told = member->was_python = false;
    member->refusal = is_known && member->refusal == -ENOENT ? -ENOENT : 0;
    member->looks = member->refused_looks = 0;
    member->next_try_ns = now_ns;
    member->try_ns = 0;
    return member_describe(member);
}

void member_inherit(struct member *member, const struct member *parent)
{
    if (member->argv[0])
        return;
    memcpy(member->arguments, parent->arguments, sizeof member->arguments);
    for (size_t i = 0; i <= ARGUMENTS_MAX && parent->argv[i]; i++)
        member->argv[i] = member->arguments + (parent->argv[i] - parent->arguments);
    member->has_more_arguments = parent->has_more_arguments;
    memcpy(member->executable, parent->executable, sizeof member->executable);
    memcpy(member->cwd, parent->cwd, sizeof member->cwd);
}

/* The kernel keeps the name of one that has ended until it is waited for. */
void member_disinherit(struct member *member, const struct member *parent)
{
    char path[64];
    if (strcmp(member->executable, parent->executable) != 0 ||
        memcmp(member->arguments, parent->arguments, sizeof member->arguments) != 0)
        return;
    memset(member->arguments, 0, sizeof member->arguments);
    member->has_more_arguments = false;
    member->executable[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/comm", member->pid);
    int length = proc_read_file(AT_FDCWD, path, member->arguments, sizeof member->arguments);
    member->argv[0] = length > 1 ? member->arguments : NULL;
    member->argv[1] = NULL;
    member->arguments[strcspn(member->arguments, "\n")] = '\0';
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

/* ---- its memory ---- */

static void footprint_look(struct member *member)
{
    struct footprint found;
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    int error = footprint_read(target_process(member->target), &found);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    member->footprint_cost_ns = now_ns - start_ns;
    member->footprint_ns = now_ns;
    if (error)
        return;
    member->footprint_rss_bytes = found.rss_bytes;
    if (!member->first_anonymous_bytes)
        member->first_anonymous_bytes = found.anonymous_bytes;
    if (found.pss_bytes > member->footprint.pss_bytes)
        member->footprint = found;
}

void member_learn_memory(struct member *member, uint64_t rss_bytes)
{
    uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - member->footprint_ns;
    uint64_t last_bytes = member->footprint_rss_bytes;
    member->rss_bytes = rss_bytes;
    if (rss_bytes > member->peak_rss_bytes)
        member->peak_rss_bytes = rss_bytes;
    uint64_t gap_ns = rss_bytes == last_bytes ? FOOTPRINT_SAME_NS : FOOTPRINT_EVERY_NS;
    bool grew = rss_bytes > last_bytes + last_bytes / FOOTPRINT_GROWTH;
    if (since_ns > FOOTPRINT_REST * member->footprint_cost_ns && (grew || since_ns > gap_ns))
        footprint_look(member);
}

uint64_t member_grown_bytes(const struct member *member)
{
    uint64_t first = member->first_anonymous_bytes, last = member->footprint.anonymous_bytes;
    return last > first ? last - first : 0;
}

/* ---- its tracer ---- */

/* Afterwards nobody can tell who it was; asked for again now and then, as it may be another's turn.
 */
void member_learn_refusals(struct member *member)
{
    struct access_facts facts;
    struct stack_counts counts = stack_reader_counts(target_reader(member->target));
    bool is_news = counts.refused > member->refused_looks;
    member->looks = counts.clean + counts.retried + counts.dropped;
    member->refused_looks = counts.refused;
    if (!is_news || (counts.refused & (counts.refused - 1)))
        return;
    access_read_facts(target_process(member->target), true, &facts);
    member->tracer = facts.tracer;
    memcpy(member->tracer_name, facts.tracer_name, sizeof member->tracer_name);
}

/* ---- opening ---- */

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
    member->stack_start = process->stack_start;
    sources_add_process(sources, process->proc_fd);
    return target_open(process, &looking, now_ns, &member->target, why);
}

static void member_opened(struct member *member, uint64_t now_ns)
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
    member->has_shim = shim_has_ring(member->pid, 0);
    member->shim_gap_ns = SHIM_FIRST_NS;
    member->shim_ns = now_ns + (member->born ? SHIM_FIRST_NS : 0);
}

int member_open(struct member *member, const struct stack_options *options, struct sources *sources,
                uint64_t now_ns, struct failure *why)
{
    int error = target_find(member, options, sources, now_ns, why);
    if (error != -ESRCH || !member->refusal) /* what it was is better than that it is gone */
        member->refusal = error;
    if (!error) {
        member_opened(member, now_ns);
        return 0;
    }
    member->try_ns = member->try_ns ? member->try_ns + member->try_ns / 2 : TRY_FIRST_NS;
    if (member->try_ns > TRY_LONGEST_NS)
        member->try_ns = TRY_LONGEST_NS;
    member->next_try_ns = now_ns + member->try_ns;
    return error;
}

bool member_wants_shim(const struct member *member, uint64_t now_ns)
{
    return member->target && !member->ended && !member->has_shim && now_ns >= member->shim_ns;
}

bool member_is_bare(const struct member *member)
{
    return member->was_python && !member->has_shim;
}

void member_learn_shim(struct member *member, int error, uint64_t now_ns)
{
    member->has_shim = !error;
    member->shim_gap_ns *= 2;
    if (member->shim_gap_ns > SHIM_LONGEST_NS)
        member->shim_gap_ns = SHIM_LONGEST_NS;
    member->shim_ns =
        error == -EBUSY || error == -EAGAIN ? now_ns + member->shim_gap_ns : UINT64_MAX;
}

bool member_is_refused(const struct member *member)
{
    return member->refusal == -EPERM || member->refusal == -ENOTSUP;
}

bool member_waits_for_open(const struct member *member)
{
    return !member->target && !member->ended && !member_is_refused(member);
}

/* Few are no loss: a debugger that came and went, another profiler's look. */
static bool looks_were_refused(const struct member *member)
{
    return member->refused_looks * REFUSED_PART > member->looks;
}

static const char *refusals_note(struct member *member)
{
    static const char *const loss = "its running threads could not be looked at";
    if (member->tracer)
        snprintf(member->note, sizeof member->note, "traced by %d (%s): %s", member->tracer,
                 member->tracer_name, loss);
    else
        snprintf(member->note, sizeof member->note, "the kernel allows no pauses: %s", loss);
    return member->note;
}

const char *member_note(struct member *member)
{
    if (looks_were_refused(member))
        return refusals_note(member);
    if (member->was_python)
        return member->has_more_arguments ? "only the beginning of its command line is kept" : NULL;
    if (member_is_refused(member))
        return "could not be looked into";
    if (member->refusal == -ENOENT)
        return member->had_stacks ? "not a Python any more" : "not a Python";
    return "ended before it could be looked into";
}
