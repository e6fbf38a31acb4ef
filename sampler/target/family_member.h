/*
 * One process of a family that is watched, and the table of all: who it is, a pidfd that tells of
 * its end, what it cost. Knows how to ask the kernel about one member, and nothing of how members
 * are found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat;

struct family_member {
    pid_t pid, ppid, group;
    bool ended; /* told; kept as long as its parent has not waited for it, or a scan would find it
                   anew */
    int pidfd;  /* -1: none could be had */
    uint64_t start_time;  /* clock ticks since boot; 0: gone before we could look */
    uint64_t stack_start; /* moves at an exec */
    uint64_t cpu_ns;      /* as last read */
    /* of its children that ended: what was told of them, and the account before we watched */
    uint64_t children_told_ns, children_before_ns;
    unsigned looks;  /* at its program */
    int wait_status; /* the kernel told it; -1: not yet */
};

struct family_members {
    struct family_member *list; /* by pid, ascending */
    size_t count;
};

struct family_member *family_members_find(const struct family_members *members, pid_t pid);

/* The members' addresses change. NULL: out of memory. */
struct family_member *family_members_add(struct family_members *members,
                                         const struct family_member *member);
void family_members_remove(struct family_members *members, struct family_member *member);
void family_members_done(struct family_members *members);

/* Reads what /proc tells; `stat` may be NULL when it tells nothing any more. */
void family_member_init(struct family_member *member, pid_t pid, pid_t ppid,
                        const struct proc_stat *stat);

bool family_member_is_alive(const struct family_member *member);

/* Nobody has waited for it yet: its number stands for it, alive or dead. */
bool family_member_is_there(const struct family_member *member);

/* Another program than at the last call or at the start? */
bool family_member_has_execed(struct family_member *member);

/* Of one that ended, as a shell would say it; -1: unknown. */
int family_member_exit_status(const struct family_member *member);

/*
 * Of one that ended. Nobody has waited for it yet: it still tells. Otherwise its parent's account
 * of such children, where the parent is a member, has grown by what it cost; what else came in
 * since and is nobody else's is in doubt its, too.
 */
uint64_t family_member_final_cpu(const struct family_members *members,
                                 struct family_member *member);
