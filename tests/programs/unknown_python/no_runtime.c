/* Up to 3.6: no _PyRuntime, only functions; their file's name tells the release. */
const char *Py_GetVersion(void);

const char *Py_GetVersion(void)
{
    return "";
}
