/*
 * A case that this machine does not allow ends here and says why, in the words by which the set-up
 * command lists at its end what was skipped.
 */
#pragma once

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        print_message("skipped: %s\n", reason);                                                    \
        skip();                                                                                    \
    } while (0)
