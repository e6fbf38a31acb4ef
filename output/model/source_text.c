#define _GNU_SOURCE 1 /* memmem */
#include "output/model/source_text.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "sampler/base/utf8.h"

#include <ctype.h>
#include <iconv.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { ENCODING_MAX = 64 };

/* The encoding that a comment in one of the first two lines names: `coding[:=]\s*([-\w.]+)`. */
static bool find_coding(const char *line, size_t length, char *encoding)
{
    const char *comment = memchr(line, '#', length), *end = line + length;
    if (!comment || strspn(line, " \t\f") < (size_t)(comment - line))
        return false;
    const char *at = memmem(comment, (size_t)(end - comment), "coding", 6);
    if (!at || at + 6 == end || (at[6] != ':' && at[6] != '='))
        return false;
    for (at += 7; at < end && (*at == ' ' || *at == '\t');)
        at++;
    size_t count = 0;
    while (at < end && count + 1 < ENCODING_MAX &&
           (isalnum((unsigned char)*at) || memchr("-_.", *at, 3)))
        encoding[count++] = *at++;
    encoding[count] = '\0';
    return count > 0;
}

static void find_encoding(const char *bytes, size_t size, char *encoding)
{
    strcpy(encoding, "utf-8");
    for (int line = 0; line < 2 && size > 0; line++) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end ? (size_t)(end - bytes) : size;
        if (find_coding(bytes, length, encoding) || !end)
            return;
        bytes += length + 1;
        size -= length + 1;
    }
}

/* How many bytes a valid character other than NUL has here; 0 where there is none. */
static size_t character_size(const char *at, size_t left)
{
    uint32_t character;
    char tail[5] = { 0 };
    if (left < sizeof tail - 1)
        at = memcpy(tail, at, left);
    return *at ? utf8_decode(at, &character) : 0;
}

/* At most three bytes come out for each that goes in. */
static size_t utf8_copy(const char *bytes, size_t size, char *text)
{
    size_t length = 0;
    for (size_t i = 0; i < size;) {
        size_t count = character_size(bytes + i, size - i);
        if (bytes[i] == '\r') {
            text[length++] = '\n';
            i += i + 1 < size && bytes[i + 1] == '\n' ? 2 : 1;
        } else if (count) {
            memcpy(text + length, bytes + i, count);
            length += count;
            i += count;
        } else {
            memcpy(text + length, UTF8_REPLACEMENT, 3);
            length += 3;
            i++;
        }
    }
    text[length] = '\0';
    return length;
}

/* NULL when out of memory, or when the encoding is unknown. What is invalid in it becomes `?`. */
static char *convert(const char *encoding, const char *bytes, size_t size, size_t *ret_size)
{
    iconv_t converter = iconv_open("UTF-8", encoding);
    if (converter == (iconv_t)-1)
        return NULL;
    size_t room = 4 * size + 4, left = size;
    char *text = malloc(room), *at = text, *from = (char *)(uintptr_t)bytes;
    while (text && left > 0 && iconv(converter, &from, &left, &at, &room) == (size_t)-1) {
        if (errno != EILSEQ && errno != EINVAL)
            break;
        from++;
        left--;
        *at++ = '?';
        room--;
    }
    iconv_close(converter);
    *ret_size = text ? (size_t)(at - text) : 0;
    return text;
}

static bool is_utf8(const char *encoding)
{
    return strncasecmp(encoding, "utf-8", 5) == 0 || strncasecmp(encoding, "utf_8", 5) == 0 ||
           strcasecmp(encoding, "utf8") == 0;
}

int source_text_new(const char *bytes, size_t size, char **ret_text, size_t *ret_size)
{
    char encoding[ENCODING_MAX];
    AUTO_FREE char *converted = NULL;
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        size -= 3;
    }
    find_encoding(bytes, size, encoding);
    if (!is_utf8(encoding)) {
        converted =
            convert(encoding, bytes, size, &size) ?: convert("ISO-8859-1", bytes, size, &size);
        if (!converted)
            return -ENOMEM;
        bytes = converted;
    }
    char *text = malloc(3 * size + 1);
    if (!text)
        return -ENOMEM;
    *ret_size = utf8_copy(bytes, size, text);
    char *fitting = realloc(text, *ret_size + 1);
    *ret_text = fitting ? fitting : text;
    return 0;
}
