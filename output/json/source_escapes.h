/*
 * Source text as Scalene keeps it in a profile: & < > are six characters each, which its page and
 * ours undo; without that a line of source could end the script element it stands in. Where a
 * source has such six characters of its own, their backslash is written so, too: what is read is
 * what was written, whatever that was.
 */
#pragma once

/* The caller frees it. Of NULL, an empty text; NULL when out of memory. */
char *source_escape(const char *source);

/* The way back, in place. */
void source_restore(char *text);
