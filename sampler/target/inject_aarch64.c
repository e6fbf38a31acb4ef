/* aarch64: nobody has staged a call there yet, so it is refused. */
#ifdef __aarch64__

#include "sampler/target/inject_arch.h"

const struct inject_arch native_inject = { 0 };

#endif
