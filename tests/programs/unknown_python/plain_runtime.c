/* 3.7: a _PyRuntime that says nothing of its version; its file's name does. */
extern unsigned long _PyRuntime[512];

unsigned long _PyRuntime[512] = { 1 };
