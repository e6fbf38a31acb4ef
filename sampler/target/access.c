#define _GNU_SOURCE 1 /* process_vm_readv */

#include "sampler/target/access.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/proc_file.h"
#include "sampler/target/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { STATUS_SIZE = 8192, KERNEL_THREAD = 0x00200000 /* PF_KTHREAD, linux/sched.h */ };

static bool has_ptrace_capability(const struct access_facts *facts)
{
    return facts->capabilities >> CAP_SYS_PTRACE & 1;
}

/* The capability counts only in the target's user namespace and those above it. */
static bool is_privileged(const struct access_facts *facts)
{
    return has_ptrace_capability(facts) && !facts->other_user_namespace;
}

static bool kernel_thread_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    snprintf(reason, size, "it is a thread of the kernel and runs no program");
    return facts->kernel_thread;
}

static bool seccomp_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    snprintf(
        reason, size,
        "a seccomp filter of our own sandbox forbids ptrace or process_vm_readv: run this outside "
        "of it, or give the container that capability (--cap-add=SYS_PTRACE)");
    return facts->call_filtered;
}

static bool namespace_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    snprintf(
        reason, size,
        "it lives in a user namespace where we do not have CAP_SYS_PTRACE: run this in that one "
        "(nsenter --user --target %d) or as root of the host",
        facts->pid);
    return has_ptrace_capability(facts) && facts->other_user_namespace;
}

/* The first of three ids that is not ours, or ours. */
static uint32_t foreign_id(const uint32_t ids[3], uint32_t ours)
{
    for (int i = 0; i < 3; i++)
        if (ids[i] != ours)
            return ids[i];
    return ours;
}

static bool uid_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    uint32_t other = foreign_id(facts->uids, facts->uid);
    snprintf(
        reason, size,
        "it belongs to uid %u, we are uid %u without CAP_SYS_PTRACE: run this as uid %u or with "
        "sudo",
        other, facts->uid, other);
    return other != facts->uid && !is_privileged(facts);
}

static bool gid_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    uint32_t other = foreign_id(facts->gids, facts->gid);
    snprintf(reason, size,
             "its group is gid %u, ours gid %u without CAP_SYS_PTRACE: run this with that group "
             "(newgrp) or with sudo",
             other, facts->gid);
    return other != facts->gid && !is_privileged(facts);
}

static bool dumpable_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    snprintf(
        reason, size,
        "it is not dumpable (it changed its user or called prctl(PR_SET_DUMPABLE, 0)) and we have "
        "no CAP_SYS_PTRACE: run this with sudo");
    return facts->proc_owner != facts->uids[1] && !is_privileged(facts);
}

static bool capability_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    uint64_t lacking = facts->target_capabilities & ~facts->capabilities;
    snprintf(reason, size,
             "it holds capabilities that we lack (mask %" PRIx64
             ") and we have no CAP_SYS_PTRACE over "
             "it: run this with sudo",
             lacking);
    return lacking && !is_privileged(facts);
}

static bool yama_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    static const char *const remedies[] = {
        [0] = "allows it",
        [1] = "lets only its ancestors trace a process: run this with sudo, or start the program "
              "with "
              "this, or allow it until the next boot with sysctl kernel.yama.ptrace_scope=0",
        [2] = "lets only holders of CAP_SYS_PTRACE trace: run this with sudo",
        [3] = "forbids all tracing until the next boot: boot with a lower kernel.yama.ptrace_scope",
    };
    int scope = facts->yama < 0 || facts->yama > 3 ? 3 : facts->yama;
    snprintf(reason, size, "Yama (kernel.yama.ptrace_scope=%d) %s", scope, remedies[scope]);
    bool kin = scope == 1 && facts->descendant;
    return scope == 3 || (scope > 0 && !kin && !is_privileged(facts));
}

static bool tracer_refuses(const struct access_facts *facts, char *reason, size_t size)
{
    snprintf(
        reason, size,
        "process %d (%s) traces it, and the kernel allows one tracer at a time: end that one first",
        facts->tracer, facts->tracer_name);
    return facts->tracer;
}

const struct access_check access_checks[] = {
    { "kernel thread", true, kernel_thread_refuses },
    { "seccomp", false, seccomp_refuses },
    { "user namespace", true, namespace_refuses },
    { "uid", true, uid_refuses },
    { "gid", true, gid_refuses },
    { "dumpable", true, dumpable_refuses },
    { "capability", true, capability_refuses },
    { "yama", true, yama_refuses },
    { "tracer", false, tracer_refuses },
};
const size_t access_check_count = sizeof access_checks / sizeof *access_checks;

/* A pid that no kernel hands out is not found; a filter answers before the kernel looks. */
static bool call_is_filtered(void)
{
    char byte;
    struct iovec piece = { &byte, 1 };
    if (ptrace(PTRACE_CONT, INT_MAX, 0, 0) < 0 && errno != ESRCH)
        return true;
    return process_vm_readv(INT_MAX, &piece, 1, &piece, 1, 0) < 0 && errno != ESRCH;
}

static void read_ids(const char *status, const char *name, uint32_t ids[3])
{
    const char *at = proc_find_field(status, name);
    char *end = (char *)at;
    for (int i = 0; at && i < 3; i++)
        ids[i] = (uint32_t)strtoul(end, &end, 10);
}

/* Only those who might trace can read the link, and a security module may forbid that, too; whoever
 * has other ids is in another one. */
static bool user_namespace_differs(const struct process *process)
{
    char ours[4096] = "", theirs[4096] = "";
    ssize_t got = readlinkat(process->proc_fd, "ns/user", theirs, sizeof theirs - 1);
    if (got >= 0)
        return readlink("/proc/self/ns/user", ours, sizeof ours - 1) < 0 || strcmp(ours, theirs);
    return proc_read_file(process->proc_fd, "uid_map", theirs, sizeof theirs) < 0 ||
           proc_read_file(AT_FDCWD, "/proc/self/uid_map", ours, sizeof ours) < 0 ||
           strcmp(ours, theirs);
}

static int yama_scope(void)
{
    char text[16];
    int length = proc_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    return length > 0 ? atoi(text) : 0;
}

static void read_tracer(const char *status, struct access_facts *facts)
{
    pid_t tracer = (pid_t)proc_find_number(status, "TracerPid", 10);
    if (!tracer || tracer == getpid())
        return;
    char path[32];
    facts->tracer = tracer;
    snprintf(path, sizeof path, "/proc/%d/comm", tracer);
    if (proc_read_file(AT_FDCWD, path, facts->tracer_name, sizeof facts->tracer_name) < 0)
        facts->tracer_name[0] = '\0';
    facts->tracer_name[strcspn(facts->tracer_name, "\n")] = '\0';
}

void access_read_facts(const struct process *process, bool readable, struct access_facts *ret)
{
    struct access_facts facts = { .pid = process->pid, .readable = readable };
    char status[STATUS_SIZE] = "";
    struct proc_stat stat = { 0 };
    struct stat entry = { 0 };

    if (proc_read_stat(process->proc_fd, "stat", &stat) == 0)
        facts.kernel_thread = stat.flags & KERNEL_THREAD;
    proc_read_file(AT_FDCWD, "/proc/thread-self/status", status, sizeof status);
    facts.uid = getuid();
    facts.gid = getgid();
    facts.capabilities = proc_find_number(status, "CapPrm", 16);

    proc_read_file(process->proc_fd, "status", status, sizeof status);
    read_ids(status, "Uid", facts.uids);
    read_ids(status, "Gid", facts.gids);
    facts.target_capabilities = proc_find_number(status, "CapPrm", 16);
    read_tracer(status, &facts);
    /* The folder itself belongs to the process's user whatever it does; what lies in it does not.
     */
    bool owned = fstatat(process->proc_fd, "stat", &entry, 0) == 0;
    facts.proc_owner = owned ? entry.st_uid : facts.uids[1];
    facts.other_user_namespace = user_namespace_differs(process);
    facts.descendant = process_descends(process->pid, getpid());
    facts.call_filtered = call_is_filtered();
    facts.yama = yama_scope();
    *ret = facts;
}

int access_explain(const struct access_facts *facts, const char *operation, struct failure *why)
{
    char reason[512];
    for (size_t i = 0; i < access_check_count; i++) {
        const struct access_check *check = &access_checks[i];
        if (check->guards_reads && facts->readable)
            continue;
        if (check->refuses(facts, reason, sizeof reason))
            return failure_set(why, -EPERM, "not allowed to %s process %d: %s", operation,
                               facts->pid, reason);
    }
    if (facts->readable)
        return 0;
    return failure_set(why, -EPERM,
                       "not allowed to %s process %d, and the kernel does not say why (AppArmor, "
                       "SELinux or Landlock can refuse so): run this with sudo, or outside of what "
                       "confines it",
                       operation, facts->pid);
}
