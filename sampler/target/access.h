/*
 * Why the kernel lets us look at a process or not: its checks in its own order (ptrace(2), "Ptrace
 * access mode checking"), one row each, so that a refusal and a doctor's report come from the same
 * table.
 */
#pragma once

#include "sampler/target/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct access_facts {
    pid_t pid;
    bool readable; /* the kernel let us read the memory: only what hinders ptrace can be left */
    bool kernel_thread;
    bool call_filtered; /* our own seccomp filter or sandbox refuses ptrace or process_vm_readv */
    uint32_t uid, gid;  /* ours, real: that is what the kernel compares */
    uint32_t uids[3], gids[3]; /* the target's: real, effective, saved */
    uint32_t proc_owner;   /* of /proc/PID/stat: not the effective uid when it is not dumpable */
    uint64_t capabilities; /* ours, permitted */
    uint64_t target_capabilities;
    bool other_user_namespace;
    bool descendant; /* of ours */
    int yama;        /* 0 where there is no Yama */
    pid_t tracer;    /* 0: none, or us */
    char tracer_name[16];
};

struct access_check {
    const char *name;  /* "uid", "yama", …: a word for a report */
    bool guards_reads; /* of memory; the others guard only ptrace */
    /* Does it refuse? Then the sentence's second half: the reason and the least change that mends
     * it. */
    bool (*refuses)(const struct access_facts *facts, char *reason, size_t size);
};

extern const struct access_check access_checks[];
extern const size_t access_check_count;

void access_read_facts(const struct process *process, bool readable, struct access_facts *ret);

/* -EPERM and the sentence for the first check that refuses, or for a kernel that will not say; 0 if
 * none does. */
int access_explain(const struct access_facts *facts, const char *operation, struct failure *why);
