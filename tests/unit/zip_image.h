/* Zip archives made in memory, member by member; what they say can then be made wrong. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ZIP_ROOM = 1 << 16 };

struct zip_image {
    uint8_t bytes[ZIP_ROOM], directory[ZIP_ROOM / 4];
    size_t size, directory_size, count;
    size_t base;         /* what stands in front of the archive */
    size_t directory_at; /* set by zip_image_end */
};

static inline void zip_put(uint8_t *at, uint32_t value, int size)
{
    for (int i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Anything in front: not of the archive, so that its offsets do not count it. */
static inline void zip_image_begin(struct zip_image *zip, const char *front)
{
    memset(zip, 0, sizeof *zip);
    zip->base = zip->size = strlen(front);
    memcpy(zip->bytes, front, zip->size);
}

static inline void zip_image_add(struct zip_image *zip, const char *name, const char *text,
                                 int deflated)
{
    size_t name_size = strlen(name), text_size = strlen(text);
    uint8_t *local = zip->bytes + zip->size, *entry = zip->directory + zip->directory_size;
    uint8_t *data = local + 30 + name_size;
    size_t packed_size = text_size;
    memcpy(data, text, text_size);
    if (deflated) {
        z_stream stream = { .next_in = (Bytef *)(uintptr_t)text,
                            .avail_in = (uInt)text_size,
                            .next_out = data,
                            .avail_out = ZIP_ROOM / 2 };
        if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
            deflate(&stream, Z_FINISH) != Z_STREAM_END)
            abort();
        packed_size = stream.total_out;
        deflateEnd(&stream);
    }

    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)text_size);
    zip_put(entry, 0x02014b50, 4);
    zip_put(entry + 10, deflated ? 8 : 0, 2);
    zip_put(entry + 16, crc, 4);
    zip_put(entry + 20, (uint32_t)packed_size, 4);
    zip_put(entry + 24, (uint32_t)text_size, 4);
    zip_put(entry + 28, (uint32_t)name_size, 2);
    zip_put(entry + 42, (uint32_t)(zip->size - zip->base), 4);
    memcpy(entry + 46, name, name_size);
    zip_put(local, 0x04034b50, 4);
    memcpy(local + 4, entry + 6, 26);
    memcpy(local + 30, name, name_size);
    zip->size += 30 + name_size + packed_size;
    zip->directory_size += 46 + name_size;
    zip->count++;
}

static inline void zip_image_end(struct zip_image *zip, const char *comment)
{
    uint8_t *end;
    zip->directory_at = zip->size;
    memcpy(zip->bytes + zip->size, zip->directory, zip->directory_size);
    zip->size += zip->directory_size;
    end = zip->bytes + zip->size;
    zip_put(end, 0x06054b50, 4);
    zip_put(end + 8, (uint32_t)zip->count, 2);
    zip_put(end + 10, (uint32_t)zip->count, 2);
    zip_put(end + 12, (uint32_t)zip->directory_size, 4);
    zip_put(end + 16, (uint32_t)(zip->directory_at - zip->base), 4);
    zip_put(end + 20, (uint32_t)strlen(comment), 2);
    memcpy(end + 22, comment, strlen(comment));
    zip->size += 22 + strlen(comment);
}
