/*
 * The import tables of the objects in a process that ran before the shim came, and the words in
 * their data that hold a function's address: where they name a function of hooks.def, ours takes
 * its place, by one store while other threads may call through it. Not those of the C library, the
 * loader, the allocator and ourselves. While these run no thread is in the loader.
 */
#pragma once

/* Also of what was loaded since. 0, -ENOMEM, -EINPROGRESS (the list of objects is not whole);
 * -ENOSPC: some are left as they are. */
int imports_arm(void);

/* Each that is still ours is again what it was. 0 or -EINPROGRESS. */
int imports_disarm(void);
