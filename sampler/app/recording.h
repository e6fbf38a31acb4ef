/*
 * All that a run tells its profile, kept in a file as a stream (sampler/loop/recorder.h), and such
 * a file told to a profile again: for tests, and to look into a profile that seems wrong.
 */
#pragma once

#include "output/model/profile.h"

struct recording;

int recording_open(const char *file, struct recording **ret, struct failure *why);

/* For the settings of the profile to listen to. */
struct profile_tap *recording_tap(struct recording *recording);

/* 0, or why the file is not whole. NULL is no recording. */
int recording_close(struct recording *recording, struct failure *why);

/* The first words about a process: `take` may keep nothing. -ENOENT: none of it in the file. */
int recording_find_process(const char *file, pid_t pid,
                           void (*take)(void *context, const struct process_event *process),
                           void *context, struct failure *why);

/* Tells the profile all that the file holds. */
int recording_replay(const char *file, struct profile *profile, struct failure *why);
