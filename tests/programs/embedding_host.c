/*
 * A program that embeds CPython: runs the script of its first argument between Py_Initialize and
 * Py_Finalize. Needs no headers: these functions have been the same in all releases of Python.
 */
#include <stdio.h>
#include <stdlib.h>

void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *source);

/* The script's sys.argv, and its file as the code's own. */
static const char *const RUNNER = "import os, sys\n"
                                  "sys.argv = os.environ['HOST_ARGUMENTS'].split(' ')\n"
                                  "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
                                  "source = open(sys.argv[0], encoding='utf-8').read()\n"
                                  "exec(compile(source, sys.argv[0], 'exec'))\n";

int host_main(void)
{
    Py_Initialize();
    int failed = PyRun_SimpleString(RUNNER);
    return Py_FinalizeEx() < 0 || failed;
}

int main(int argc, char **argv)
{
    if (argc < 2 || setenv("HOST_ARGUMENTS", argv[1], 1) != 0)
        return 2;
    return host_main();
}
