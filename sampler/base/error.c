#include "sampler/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(struct failure *why, int code, const char *format, ...)
{
    if (why) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why->text, sizeof why->text, format, arguments);
        va_end(arguments);
        why->code = code;
    }
    return code;
}

int failure_prefix(struct failure *why, const char *format, ...)
{
    char rest[sizeof why->text];
    memcpy(rest, why->text, sizeof rest);

    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof why->text)
        snprintf(why->text + used, sizeof why->text - (size_t)used, "%s", rest);
    return why->code;
}
