#include "output/json/source_escapes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_LENGTH = 6, ESCAPES = 4 };

/* In lower case, as Scalene has them; the page's script holds the same. */
static const struct escape {
    char text[ESCAPE_LENGTH + 1], character;
} escapes[ESCAPES] = {
    { "\\u0026", '&' },
    { "\\u003c", '<' },
    { "\\u003e", '>' },
    { "\\u005c", '\\' },
};

/* That the text begins with; NULL: none. */
static const struct escape *escape_at(const char *text)
{
    for (size_t i = 0; i < ESCAPES; i++)
        if (strncmp(text, escapes[i].text, ESCAPE_LENGTH) == 0)
            return &escapes[i];
    return NULL;
}

/* What is to be written for the text's first character; NULL: itself. */
static const struct escape *escape_for(const char *text)
{
    if (*text == '\\' && !escape_at(text))
        return NULL;
    for (size_t i = 0; i < ESCAPES; i++)
        if (*text == escapes[i].character)
            return &escapes[i];
    return NULL;
}

char *source_escape(const char *source)
{
    const char *from = source ? source : "";
    char *escaped = malloc(ESCAPE_LENGTH * strlen(from) + 1), *to = escaped;
    if (!escaped)
        return NULL;
    while (*from) {
        size_t plain = strcspn(from, "&<>\\");
        to = (char *)memcpy(to, from, plain) + plain;
        from += plain;
        if (!*from)
            break;
        const struct escape *escape = escape_for(from);
        size_t length = escape ? ESCAPE_LENGTH : 1;
        to = (char *)memcpy(to, escape ? escape->text : from, length) + length;
        from++;
    }
    *to = '\0';
    return escaped;
}

void source_restore(char *text)
{
    char *to = strchr(text, '\\');
    if (!to)
        return;
    for (const char *from = to; *from;) {
        const struct escape *escape = escape_at(from);
        *to++ = escape ? escape->character : *from;
        from += escape ? ESCAPE_LENGTH : 1;
    }
    *to = '\0';
}
