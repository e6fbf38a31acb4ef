/* Readable names of C++ (Itanium) and Rust (legacy and v0) symbols. */
#pragma once

/* A new string, or NULL when `name` is not mangled. */
char *symbol_demangle(const char *name);
