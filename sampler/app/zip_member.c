#include "sampler/app/zip_member.h"

#include "sampler/base/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* PKWARE's APPNOTE 6.3.10: 4.3.16 end of central directory, 4.3.12 its entries, 4.3.7 local header.
 */
enum {
    END_SIZE = 22,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_MAX = 65535,
    IS_ENCRYPTED = 1,
    STORED = 0,
    DEFLATED = 8,
};
#define END_MAGIC 0x06054b50
#define ENTRY_MAGIC 0x02014b50
#define LOCAL_MAGIC 0x04034b50
#define DIRECTORY_MAX ((uint32_t)64 << 20)
#define IN_ZIP64 UINT32_MAX /* for a size or an offset */

struct zip_entry {
    uint16_t flags, method;
    uint32_t crc, packed_size, size, local_at;
};

static uint32_t u16_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t u32_at(const uint8_t *bytes)
{
    return u16_at(bytes) | u16_at(bytes + 2) << 16;
}

/* All of it: what a header promises and the file lacks is a broken archive. */
static int bytes_read(int fd, void *into, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = pread(fd, (char *)into + done, size - done, (off_t)(at + done));
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count == 0)
            return -EBADMSG;
        if (count > 0)
            done += (size_t)count;
    }
    return 0;
}

/* Where the end of central directory stands, and a copy of it. */
static int end_find(int fd, uint64_t file_size, uint8_t end[END_SIZE], uint64_t *ret_at)
{
    size_t tail_size = file_size < END_SIZE + COMMENT_MAX ? file_size : END_SIZE + COMMENT_MAX;
    AUTO_FREE uint8_t *tail = malloc(tail_size + 1);
    if (!tail)
        return -ENOMEM;
    int error = bytes_read(fd, tail, tail_size, file_size - tail_size);
    if (error)
        return error;
    for (size_t at = tail_size; at-- > 0;) {
        if (tail_size - at < END_SIZE || u32_at(tail + at) != END_MAGIC)
            continue;
        if (u16_at(tail + at + 20) > tail_size - at - END_SIZE) /* its comment */
            continue;
        memcpy(end, tail + at, END_SIZE);
        *ret_at = file_size - tail_size + at;
        return 0;
    }
    return -EBADMSG;
}

static int entry_find(const uint8_t *entries, size_t size, const char *name, struct zip_entry *ret)
{
    size_t name_size = strlen(name);
    while (size >= ENTRY_SIZE && u32_at(entries) == ENTRY_MAGIC) {
        size_t own = u16_at(entries + 28);
        size_t all = ENTRY_SIZE + own + u16_at(entries + 30) + u16_at(entries + 32);
        if (all > size)
            return -EBADMSG;
        if (own == name_size && memcmp(entries + ENTRY_SIZE, name, own) == 0) {
            *ret = (struct zip_entry){ .flags = (uint16_t)u16_at(entries + 8),
                                       .method = (uint16_t)u16_at(entries + 10),
                                       .crc = u32_at(entries + 16),
                                       .packed_size = u32_at(entries + 20),
                                       .size = u32_at(entries + 24),
                                       .local_at = u32_at(entries + 42) };
            return 0;
        }
        entries += all;
        size -= all;
    }
    return size ? -EBADMSG : -ENOENT;
}

/* The member's entry, and where in the file the archive begins: offsets in it count from there. */
static int member_find(int fd, uint64_t file_size, const char *name, struct zip_entry *ret,
                       uint64_t *ret_base)
{
    uint8_t end[END_SIZE];
    uint64_t end_at;
    int error = end_find(fd, file_size, end, &end_at);
    if (error)
        return error;
    uint32_t size = u32_at(end + 12), at = u32_at(end + 16);
    if (size == IN_ZIP64 || at == IN_ZIP64)
        return -ENOTSUP;
    if ((uint64_t)size + at > end_at)
        return -EBADMSG;
    if (size > DIRECTORY_MAX)
        return -EFBIG;

    AUTO_FREE uint8_t *entries = malloc((size_t)size + 1);
    if (!entries)
        return -ENOMEM;
    error = bytes_read(fd, entries, size, end_at - size);
    if (!error)
        error = entry_find(entries, size, name, ret);
    *ret_base = end_at - size - at;
    return error;
}

/* `size` bytes and no more; the stream ends with them. */
static int bytes_inflate(const uint8_t *packed, size_t packed_size, char *bytes, size_t size)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed,
                        .avail_in = (uInt)packed_size,
                        .next_out = (Bytef *)bytes,
                        .avail_out = (uInt)size };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) /* raw, without zlib's own header */
        return -ENOMEM;
    int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return status == Z_STREAM_END && stream.avail_out == 0 ? 0 : -EBADMSG;
}

static int member_unpack(int fd, uint64_t at, const struct zip_entry *entry, char *bytes)
{
    if (entry->method == STORED)
        return entry->size == entry->packed_size ? bytes_read(fd, bytes, entry->size, at)
                                                 : -EBADMSG;
    AUTO_FREE uint8_t *packed = malloc((size_t)entry->packed_size + 1);
    if (!packed)
        return -ENOMEM;
    int error = bytes_read(fd, packed, entry->packed_size, at);
    return error ? error : bytes_inflate(packed, entry->packed_size, bytes, entry->size);
}

int zip_member_read(int fd, const char *name, size_t limit, char **ret_bytes, size_t *ret_size)
{
    struct stat status;
    struct zip_entry entry;
    uint64_t base;
    uint8_t local[LOCAL_SIZE];

    if (fstat(fd, &status) < 0)
        return -errno;
    int error = member_find(fd, (uint64_t)status.st_size, name, &entry, &base);
    if (error)
        return error;
    if (entry.flags & IS_ENCRYPTED || entry.local_at == IN_ZIP64 || entry.size == IN_ZIP64 ||
        (entry.method != STORED && entry.method != DEFLATED))
        return -ENOTSUP;
    if (entry.size > limit)
        return -EFBIG;
    if (entry.packed_size > (uint64_t)status.st_size)
        return -EBADMSG;
    error = bytes_read(fd, local, sizeof local, base + entry.local_at);
    if (error)
        return error;
    if (u32_at(local) != LOCAL_MAGIC)
        return -EBADMSG;

    AUTO_FREE char *bytes = malloc((size_t)entry.size + 1);
    if (!bytes)
        return -ENOMEM;
    uint64_t at = base + entry.local_at + LOCAL_SIZE + u16_at(local + 26) + u16_at(local + 28);
    error = member_unpack(fd, at, &entry, bytes);
    if (!error && crc32(0, (const Bytef *)bytes, entry.size) != entry.crc)
        error = -EBADMSG;
    if (error)
        return error;
    *ret_bytes = TAKE_PTR(bytes);
    *ret_size = entry.size;
    return 0;
}
