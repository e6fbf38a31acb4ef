/* What every verb that looks at a process shares: opening it, and one good sentence when that
 * fails. */
#pragma once

#include "sampler/loop/stacks.h"

struct session {
    struct process *process;
    struct stack_reader *reader;
    char command[256];
};

/*
 * 0, or a negative errno with a sentence that says what was tried and what would help: a process
 * that is no Python is named with its Python descendants, a refusal with the check that failed.
 */
int session_open(pid_t pid, const struct stack_options *options, struct session *ret,
                 struct failure *why);
void session_close(struct session *session);

/*
 * Is there a Python to profile: in the process or, where children are followed, below it? And may
 * its threads be paused, where that is wanted? 0, also when one has only begun, or as session_open.
 */
int session_probe(pid_t pid, bool follow, bool pauses, struct failure *why);

/* "12 (python a.py), 13 (python b.py)": the first Pythons below it. How many there are, -EPERM
 * where none is seen and some processes could not be looked into, or another negative errno. */
int session_name_below(pid_t pid, char *into, size_t size);

/* When a read failed because the target ended or became another program: says so. Else returns
 * `error`. */
int session_explain(const struct session *session, int error, struct failure *why);

/* When somebody or something forbade an operation on it: what that is, or -EAGAIN when
 * nothing does any more. */
int session_explain_denied(const struct session *session, const char *operation,
                           struct failure *why);
