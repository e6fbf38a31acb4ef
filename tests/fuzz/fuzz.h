/* The entry that libFuzzer (or replay.c) calls. Each fuzz_X.c defines it and returns 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
