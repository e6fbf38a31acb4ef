/* Any line table: shape, first line and offset, then the table. What is found is a position, or
 * nothing. */
#include "pyabi/lines.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { SHAPES = LINES_LOCATIONS + 1 };

struct question {
    uint8_t shape;
    uint8_t reserved[3];
    int32_t first_line;
    int32_t offset;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct question question;
    if (size < sizeof(question))
        return 0;
    memcpy(&question, data, sizeof(question));
    struct code_position at = { -1, -1, -1, -1 };
    int error = lines_find(question.shape % SHAPES, data + sizeof(question),
                           size - sizeof(question), question.first_line, question.offset, &at);
    if (error) {
        must(error == -EBADMSG || error == -ENOENT);
        must(at.line == -1 && at.column == -1 && at.end_line == -1 && at.end_column == -1);
    } else {
        must(at.line >= 0 && at.column >= 0 && at.end_line >= 0 && at.end_column >= 0);
    }
    return 0;
}
