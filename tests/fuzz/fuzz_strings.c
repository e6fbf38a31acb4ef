/* Any memory at a str and a bytes object, in any layout: what comes out is valid UTF-8, or an
 * error. */
#include "pyabi/strings.h"
#include "sampler/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { OBJECT = 0x10000 };

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Bytes of the character that begins here; aborts if none does. */
static size_t character_check(const uint8_t *text)
{
    static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t length = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : 4;
    must(length < 4 || text[0] >> 3 == 30);
    uint32_t c = length == 1 ? text[0] : text[0] & 0x7fu >> length;
    for (size_t i = 1; i < length; i++) {
        must(text[i] >> 6 == 2);
        c = c << 6 | (text[i] & 0x3f);
    }
    must(c >= lowest[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff));
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t layouts = 0;
    while (py_layouts[layouts])
        layouts++;
    if (size < 1)
        return 0;
    const struct py_layout *layout = py_layouts[data[0] % layouts];
    const struct image_range range = { OBJECT, data + 1, size - 1 };
    struct image_remote image;
    image_remote_init(&image, &range, size > 1);

    AUTO_FREE char *text = NULL;
    if (string_read(&image.remote, layout, OBJECT, &text) == 0)
        for (const uint8_t *at = (const uint8_t *)text; *at;)
            at += character_check(at);
    AUTO_FREE uint8_t *bytes = NULL;
    size_t got = 0;
    if (bytes_read(&image.remote, layout, OBJECT, size, &bytes, &got) == 0)
        must(bytes && got <= size);
    return 0;
}
