/*
 * A program that embeds CPython: runs the script of its first argument between Py_Initialize and
 * Py_Finalize, in its main thread or, where HOST_THREAD is set, in another one. Where HOST_STATES
 * is set, threads run Python in states that the first thread made for them, as a pool of workers
 * may. Needs no headers: these functions have been the same in all releases of Python.
 */
#include <pthread.h>
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

enum { WORKERS = 3 };

void *PyInterpreterState_Head(void);
void *PyThreadState_New(void *interpreter);
void PyEval_RestoreThread(void *state);
void *PyEval_SaveThread(void);

static void *worker_main(void *state)
{
    PyEval_RestoreThread(state);
    PyRun_SimpleString("import time\n"
                       "def host_worker():\n"
                       "    while True:\n"
                       "        sum(range(2000))\n"
                       "        time.sleep(0.001)\n"
                       "host_worker()\n");
    return PyEval_SaveThread();
}

/* They never end: the process does. */
static void workers_start(void)
{
    for (int i = 0; i < WORKERS; i++) {
        pthread_t thread;
        void *state = PyThreadState_New(PyInterpreterState_Head());
        if (pthread_create(&thread, NULL, worker_main, state) != 0)
            abort();
    }
}

int host_main(void)
{
    Py_Initialize();
    if (getenv("HOST_STATES"))
        workers_start();
    int failed = PyRun_SimpleString(RUNNER);
    if (getenv("HOST_STATES"))
        exit(failed);
    return Py_FinalizeEx() < 0 || failed;
}

static void *host_thread(void *ret_status)
{
    *(int *)ret_status = host_main();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2 || setenv("HOST_ARGUMENTS", argv[1], 1) != 0)
        return 2;
    int status = 2;
    pthread_t thread;
    if (!getenv("HOST_THREAD"))
        status = host_main();
    else if (pthread_create(&thread, NULL, host_thread, &status) == 0)
        pthread_join(thread, NULL);
    return status;
}
