/*
 * The list of objects that a process's loader keeps for debuggers, looked at from outside: has it
 * changed? Costs some reads of memory; the target runs on.
 */
#pragma once

#include "sampler/target/process.h"
#include "symbols/maps.h"

struct loaded_list;

/* -ENOENT: its loader shows none. The process is borrowed. */
int loaded_list_open(struct process *process, const struct maps *maps, struct loaded_list **ret);
void loaded_list_close(struct loaded_list *list);

/* Is it another one than at the last look? One that is just being changed is looked at next time.
 */
bool loaded_list_look(struct loaded_list *list);
