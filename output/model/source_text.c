#define _GNU_SOURCE 1 /* memmem, mempcpy */
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

/* `coding[:=]\s*([-\w.]+)` in a line that is a comment and nothing else. */
static bool find_coding(const char *line, size_t length, char *encoding)
{
    const char *end = line + length;
    while (line < end && strchr(" \t\f", *line))
        line++;
    if (line == end || *line != '#')
        return false;
    while ((line = memmem(line, (size_t)(end - line), "coding", 6))) {
        line += 6;
        if (line < end && (*line == ':' || *line == '='))
            break;
    }
    if (!line)
        return false;
    for (line++; line < end && (*line == ' ' || *line == '\t');)
        line++;
    size_t count = 0;
    while (line < end && count + 1 < ENCODING_MAX &&
           (isalnum((unsigned char)*line) || memchr("-_.", *line, 3)))
        encoding[count++] = *line++;
    encoding[count] = '\0';
    return count > 0;
}

/* Nothing in it, or a comment: the next one may name the encoding, too. */
static bool line_is_idle(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(" \t\f\r", line[i]))
        i++;
    return i == length || line[i] == '#';
}

/* In one of the first two lines (PEP 263). */
static void find_encoding(const char *bytes, size_t size, char *encoding)
{
    for (int line = 0; line < 2 && size > 0; line++) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end ? (size_t)(end - bytes) : size;
        if (find_coding(bytes, length, encoding))
            return;
        if (!end || !line_is_idle(bytes, length))
            break;
        bytes += length + 1;
        size -= length + 1;
    }
    strcpy(encoding, "utf-8");
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

static const struct {
    const char *plain, *name;
} aliases[] = {
#define ENCODING(plain, name) { plain, name },
#include "output/model/encodings.def"
#undef ENCODING
};

static const char *alias_find(const char *plain)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(aliases[i].plain, plain) == 0)
            return aliases[i].name;
    return NULL;
}

/* Python takes - and _ for the same, or leaves them out; iconv has a name of its own for each. */
static iconv_t converter_open(const char *encoding)
{
    char dashed[ENCODING_MAX], page[ENCODING_MAX + 2] = "cp", *plain = page + 2;
    size_t count = 0;
    for (size_t i = 0; (dashed[i] = encoding[i]); i++) {
        if (encoding[i] == '_')
            dashed[i] = '-';
        if (isalnum((unsigned char)encoding[i]))
            plain[count++] = encoding[i];
    }
    plain[count] = '\0';

    const char *alias = alias_find(plain);
    const char *const names[] = { alias ?: encoding, dashed, plain, page };
    iconv_t converter = (iconv_t)-1;
    for (int i = 0; i < (alias ? 1 : 4) && converter == (iconv_t)-1; i++)
        converter = iconv_open("UTF-8", names[i]);
    return converter;
}

/* NULL when out of memory, or when the encoding is unknown. What is invalid in it becomes U+FFFD.
 */
static char *convert(const char *encoding, const char *bytes, size_t size, size_t *ret_size)
{
    iconv_t converter = converter_open(encoding);
    if (converter == (iconv_t)-1)
        return NULL;
    size_t room = 4 * size + 4, left = size;
    char *text = malloc(room), *at = text, *from = (char *)(uintptr_t)bytes;
    while (text && left > 0 && iconv(converter, &from, &left, &at, &room) == (size_t)-1) {
        if ((errno != EILSEQ && errno != EINVAL) || room < 3)
            break;
        from++;
        left--;
        at = mempcpy(at, UTF8_REPLACEMENT, 3);
        room -= 3;
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
        strcpy(encoding, "utf-8");
    } else {
        find_encoding(bytes, size, encoding);
    }
    bool is_known = is_utf8(encoding);
    if (!is_known) {
        converted = convert(encoding, bytes, size, &size);
        is_known = converted;
        if (!converted)
            converted = convert("ISO-8859-1", bytes, size, &size);
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
    return is_known ? 0 : 1;
}
