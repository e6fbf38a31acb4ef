/*
 * A script that the Python of a target runs by itself, where a thread of its own comes by the
 * evaluation loop: what sys.remote_exec asks for, asked in the same way. The whole process stands
 * while that is written, and all but one of its threads until that one has run it, or it is taken
 * back.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/stillness.h"

#define SCRIPT_FILE_NAME "scalene_attach_script"

struct script_asker;

/* -ENOTSUP, -ENOENT: its Python knows no scripts, or they are disabled; and what else there is. */
int script_asker_open(struct process *process, struct script_asker **ret);
void script_asker_close(struct script_asker *asker);

/*
 * The script is the target's memory file SCRIPT_FILE_NAME with that descriptor, which it closes at
 * its end. 0: it came to that; -ETIMEDOUT: nobody came by soon, and nothing is asked any more;
 * -ENOENT: nobody runs; -EBUSY: somebody else asks just now; -EAGAIN: not now; -EINPROGRESS: it was
 * begun, and does not end.
 */
int script_run(struct script_asker *asker, int number);

/* What its threads stood for that. */
const struct stood *script_stood(const struct script_asker *asker);

/* What we, or one who was killed, have asked for and nobody has begun: how many, or negative. */
int script_withdraw(struct script_asker *asker);
