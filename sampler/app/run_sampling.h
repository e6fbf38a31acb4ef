/* When a run looks, and that it does not while it is switched off. */
#pragma once

#include "sampler/app/run_state.h"

/* One look at every member, charged to the budgets. 0 or -ENOMEM, as below. */
int run_tick(struct run *run);

/* The run begins, on or off. */
void run_begin(struct run *run);

/* How long sampling has been on: the time that everything else is measured in. */
uint64_t run_on_ns(const struct run *run, uint64_t now_ns);

/* Sampling, from now on or no longer. What is used while it is off is nobody's. */
int run_switch(struct run *run, bool on);

/* What is due at this moment: a look or, now and then while it is off, letting go of the ended. */
int run_sample_due(struct run *run, uint64_t now_ns);

/* When that has something to do. */
uint64_t run_sample_deadline_ns(const struct run *run);
