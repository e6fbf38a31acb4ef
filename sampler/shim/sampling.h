/*
 * Poisson sampling by bytes: how far it is to the next sample, and what a sample stands for.
 * Arithmetic alone, without libm, which the shim does not link.
 */
#pragma once

#include <stdint.h>

/* Changes `*random`, never 0, into the next of its sequence. */
uint64_t random_next(uint64_t *random);

/* Exponentially distributed with this mean, rounded down: the sum of sizes that first exceeds it
 * tells the sample. */
int64_t sampling_distance(uint64_t *random, uint64_t window);

/* size / (1 - exp(-size / window)): all that a sampled `size` stands for. */
uint64_t sampling_weight(uint64_t size, uint64_t window);
