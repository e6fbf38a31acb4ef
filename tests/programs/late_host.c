/* A program that loads CPython when it has run for a while, for itself alone, and has it allocate:
 * late_host LIBPYTHON SOURCE. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE = 200, SIZE = 20000 };

static void function_find(void *library, const char *name, void *ret)
{
    void *found = dlsym(library, name);
    if (!found)
        exit(3);
    memcpy(ret, &found, sizeof found);
}

int main(int argc, char **argv)
{
    void (*initialize)(void);
    int (*run)(const char *source);
    for (int i = 0; i < BEFORE; i++)
        free(malloc(SIZE));
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    function_find(library, "Py_Initialize", &initialize);
    function_find(library, "PyRun_SimpleString", &run);
    initialize();
    return run(argv[2]) != 0;
}
