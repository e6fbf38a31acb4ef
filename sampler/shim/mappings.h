/* The sampled regions of this process: reported to through account.h. */
#pragma once

/* Empties the list: of a child after fork, where one thread runs. */
void mappings_forget(void);
