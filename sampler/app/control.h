/*
 * Steering a profiler from another command: a socket in the user's runtime directory, named after
 * the target. Who holds it is the target's only profiler of this user; whether it follows another
 * process it is asked there. Requests are words, answers a result and a text; nothing here waits
 * for a client.
 */
#pragma once

#include "sampler/base/error.h"

#include <sys/types.h>

enum control_verb {
    CONTROL_ON,
    CONTROL_OFF,
    CONTROL_FLUSH,
    CONTROL_STOP,
    CONTROL_STATUS,
    CONTROL_STATUS_JSON,
    CONTROL_FOLLOWS, /* does it? */
    CONTROL_VERBS,
};

enum { CONTROL_ANSWER_SIZE = 16384 };

/* "on", "off", …: the word on the wire. */
const char *control_verb_name(enum control_verb verb);

/* ---- the profiler's side ---- */

struct control;

struct control_request {
    enum control_verb verb;
    pid_t target; /* of whom it was told: perhaps nobody that is followed */
    int client;
};

/* 0, -EBUSY (another profiler watches this target; the sentence names it), or why there is no
 * socket. */
int control_open(pid_t target, struct control **ret, struct failure *why);
void control_close(struct control *control);

/* Readable when control_next has something to do. */
int control_fd(const struct control *control);

/* 1 and a request, which must be answered; 0: none for now. */
int control_next(struct control *control, struct control_request *ret);

/* `result` is 0, or a negative errno that the text explains. */
void control_answer(struct control_request *request, int result, const char *text);

/* ---- the command's side ---- */

/* 0, or -EBUSY: a profiler of this user follows the target, as it does what begins below another
 * one, or may do so and does not answer. Not for what a run launches: who follows the run itself
 * will follow that, too, now or in a moment. */
int control_check(pid_t target, struct failure *why);

/*
 * Asks the profiler of the target, or the one that follows it. 0 and the answer's text; the
 * profiler's own refusal, explained; -ENOENT: no profiler of this user watches the target;
 * -ETIMEDOUT: it does not answer.
 */
int control_ask(pid_t target, enum control_verb verb, char *answer, size_t size,
                struct failure *why);
