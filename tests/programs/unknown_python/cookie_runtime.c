/* A release after ours, as far as the debug offsets of 3.13 and later tell: 3.16.0 final. */
#include <stdint.h>

struct runtime {
    char cookie[8];
    uint64_t version;
    uint64_t rest[512];
};

extern struct runtime _PyRuntime;

struct runtime _PyRuntime = { "xdebugpy", 0x031000f0, { 0 } };
