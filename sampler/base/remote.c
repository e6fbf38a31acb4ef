#include "sampler/base/remote.h"

#include "sampler/base/error.h"

#include <string.h>

int remote_read_all(struct remote *memory, const struct remote_piece *pieces, size_t count)
{
    int whole = memory->read_pieces(memory, pieces, count, NULL);
    if (whole < 0)
        return whole;
    return (size_t)whole == count ? 0 : -EFAULT;
}

int remote_read(struct remote *memory, remote_addr address, void *into, size_t size)
{
    struct remote_piece piece = { address, into, size };
    return remote_read_all(memory, &piece, 1);
}

long remote_read_some(struct remote *memory, remote_addr address, void *into, size_t size)
{
    struct remote_piece piece = { address, into, size };
    size_t tail = 0;
    int whole = memory->read_pieces(memory, &piece, 1, &tail);
    if (whole < 0)
        return whole;
    return (long)(whole ? size : tail);
}

int remote_read_text(struct remote *memory, remote_addr address, char *into, size_t size)
{
    long got = remote_read_some(memory, address, into, size);
    if (got < 0)
        return (int)got;
    if (got == 0)
        return -EFAULT;
    return memchr(into, '\0', (size_t)got) ? 0 : -EBADMSG;
}

static const struct image_range *image_find(const struct image_remote *image, remote_addr address)
{
    size_t low = 0, high = image->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct image_range *range = &image->ranges[middle];
        if (address < range->address)
            high = middle;
        else if (address - range->address >= range->size)
            low = middle + 1;
        else
            return range;
    }
    return NULL;
}

/* Copies until the image ends; a piece may span ranges that touch. */
static size_t image_copy(const struct image_remote *image, const struct remote_piece *piece)
{
    size_t done = 0;
    while (done < piece->size) {
        remote_addr address = piece->address + done;
        const struct image_range *range = image_find(image, address);
        if (!range)
            break;
        size_t skip = (size_t)(address - range->address);
        size_t part = range->size - skip;
        if (part > piece->size - done)
            part = piece->size - done;
        memcpy((char *)piece->into + done, (const char *)range->bytes + skip, part);
        done += part;
    }
    return done;
}

static int image_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                             size_t *ret_tail)
{
    const struct image_remote *image = (const struct image_remote *)self;
    for (size_t i = 0; i < count; i++) {
        size_t copied = image_copy(image, &pieces[i]);
        if (copied != pieces[i].size) {
            if (ret_tail)
                *ret_tail = copied;
            return (int)i;
        }
    }
    return (int)count;
}

void image_remote_init(struct image_remote *image, const struct image_range *ranges, size_t count)
{
    image->remote.read_pieces = image_read_pieces;
    image->ranges = ranges;
    image->count = count;
}
