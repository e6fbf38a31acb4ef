/* The bytes of a source file as text: UTF-8, with lines that end with \n. */
#pragma once

#include <stddef.h>

/*
 * Takes the encoding from the byte order mark or the coding line (PEP 263), else UTF-8; what is
 * invalid in it, and NUL, becomes U+FFFD; of an unknown encoding Latin-1 is assumed. \r\n and \r
 * end a line, too. The text ends with a NUL. 0, 1 where the encoding is unknown, or -ENOMEM.
 */
int source_text_new(const char *bytes, size_t size, char **ret_text, size_t *ret_size);
