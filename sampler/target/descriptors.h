/*
 * How many descriptors this process may have: each thread of a target takes three. What is launched
 * must have the limit that we had, so it is raised after that.
 */
#pragma once

#include <stdbool.h>

/* As high as we may without asking anybody. */
void descriptors_raise(void);

/* Is it one of the last, which are left for the files that all else is read from? */
bool descriptor_is_spare(int fd);
