/* The beginning of a process that has the shim. */
#pragma once

/* In attached.c. In a child after fork, whatever another thread of the parent was doing. */
void attached_begin_child(void);
