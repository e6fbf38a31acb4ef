/*
 * Where a thread stands, by its native stack: in the loader, in the allocator, in Python. Asked of
 * threads that are paused; what is learnt of the objects that they stand in is kept.
 */
#pragma once

#include "sampler/target/process.h"
#include "sampler/target/trace.h"

struct thread_places;

int thread_places_open(struct process *process, struct thread_places **ret);
void thread_places_close(struct thread_places *places);

/* The mappings as they are now: before threads are asked about, and not while all stand. */
int thread_places_learn(struct thread_places *places);

/* Is a call safe in that thread? It may hold no lock of the allocator or the loader, and needs room
 * on its stack. NULL, or what is in the way, as words that follow a colon. */
const char *thread_places_refuse_call(struct thread_places *places, const struct pause *pause);

/* May that thread stand while another one calls the loader? It must not be there. */
const char *thread_places_refuse_rest(struct thread_places *places, const struct pause *pause);

/* Is it in the allocator, whose locks the loader wants, too? */
bool thread_places_allocates(struct thread_places *places, const struct pause *pause);

/* Does it wait in a system call? */
bool thread_place_is_call(const struct pause *pause);
