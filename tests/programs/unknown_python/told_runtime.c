/* A release after ours whose version stands beside its _PyRuntime, as from 3.11 on: 4.0.0 final. */
extern unsigned long _PyRuntime[512];
extern const unsigned long Py_Version;

unsigned long _PyRuntime[512] = { 1 };
const unsigned long Py_Version = 0x040000f0;
