/*
 * A look at one function's call frame information before libunwind interprets it. libunwind trusts
 * register numbers that it uses as indices and asserts that a rule for the stack exists; a target's
 * tables may lie.
 */
#pragma once

#include "sampler/base/remote.h"

#include <stdbool.h>

/* Is the FDE at that address, with its CIE, something that libunwind can be given? */
bool cfi_is_sound(struct remote *memory, remote_addr fde);
