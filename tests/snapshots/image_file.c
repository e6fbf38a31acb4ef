/* Images in and out. The files are ours, but a broken one is refused rather than believed. */
#include "tests/snapshots/image_file.h"

#include "sampler/base/cleanup.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "images are read as they are stored");

#define PAGE ((remote_addr)4096)

enum { RANGE_MAX = 1 << 16, SPAN_SIZE_MAX = 1 << 24 };

DEFINE_CLEANUP(struct image_file *, image_file_close)

static remote_addr page_start(remote_addr address)
{
    return address & ~(PAGE - 1);
}

static remote_addr page_end(remote_addr address)
{
    return page_start(address + PAGE - 1);
}

static int spans_read(FILE *file, const struct image_head *head, struct image_span **ret)
{
    AUTO_FREE struct image_span *spans = calloc(head->range_count, sizeof *spans);
    remote_addr end = 0;
    if (!spans)
        return -ENOMEM;
    if (fread(spans, sizeof *spans, head->range_count, file) != head->range_count)
        return -EBADMSG;
    for (size_t i = 0; i < head->range_count; i++) {
        if (spans[i].address < end || spans[i].size == 0 || spans[i].size > SPAN_SIZE_MAX)
            return -EBADMSG;
        end = spans[i].address + spans[i].size;
    }
    *ret = TAKE_PTR(spans);
    return 0;
}

/* Whole pages around the spans: spans that share a page or touch the same one are one range. */
static int pages_plan(struct image_file *image, const struct image_span *spans)
{
    struct image_range *page = NULL;
    image->pages = calloc(image->head.range_count, sizeof *image->pages);
    if (!image->pages)
        return -ENOMEM;
    for (size_t i = 0; i < image->head.range_count; i++) {
        remote_addr start = page_start(spans[i].address);
        remote_addr end = page_end(spans[i].address + spans[i].size);
        if (!page || start > page->address + page->size) {
            page = page ? page + 1 : image->pages;
            page->address = start;
        }
        page->size = (size_t)(end - page->address);
    }
    size_t count = page ? (size_t)(page - image->pages) + 1 : 0;
    for (size_t i = 0; i < count; i++)
        image->size += image->pages[i].size;
    image->bytes = calloc(image->size, 1);
    if (!image->bytes)
        return -ENOMEM;
    for (size_t i = 0, at = 0; i < count; at += image->pages[i++].size)
        image->pages[i].bytes = image->bytes + at;
    image_remote_init(&image->memory, image->pages, count);
    return 0;
}

static int bytes_load(struct image_file *image, const struct image_span *spans, FILE *file)
{
    image->recorded = calloc(image->head.range_count, sizeof *image->recorded);
    if (!image->recorded)
        return -ENOMEM;
    for (size_t i = 0, page = 0; i < image->head.range_count; i++) {
        while (spans[i].address - image->pages[page].address >= image->pages[page].size)
            page++;
        size_t skip = (size_t)(spans[i].address - image->pages[page].address);
        uint8_t *bytes =
            image->bytes + ((const uint8_t *)image->pages[page].bytes - image->bytes) + skip;
        if (fread(bytes, 1, (size_t)spans[i].size, file) != spans[i].size)
            return -EBADMSG;
        image->recorded[i] = (struct image_range){ spans[i].address, bytes, (size_t)spans[i].size };
    }
    return fgetc(file) == EOF ? 0 : -EBADMSG;
}

int image_file_open(const char *path, struct image_file **ret)
{
    AUTO_FREE struct image_span *spans = NULL;
    AUTO_FCLOSE FILE *file = fopen(path, "rbe");
    if (!file)
        return -errno;
    CLEANUP(image_file_closep) struct image_file *image = calloc(1, sizeof *image);
    if (!image)
        return -ENOMEM;
    if (fread(&image->head, sizeof image->head, 1, file) != 1 ||
        memcmp(image->head.magic, IMAGE_MAGIC, sizeof image->head.magic) != 0 ||
        image->head.range_count == 0 || image->head.range_count > RANGE_MAX)
        return -EBADMSG;
    int error = spans_read(file, &image->head, &spans);
    if (!error)
        error = pages_plan(image, spans);
    if (!error)
        error = bytes_load(image, spans, file);
    if (error)
        return error;
    *ret = TAKE_PTR(image);
    return 0;
}

void image_file_close(struct image_file *image)
{
    if (!image)
        return;
    free(image->recorded);
    free(image->pages);
    free(image->bytes);
    free(image);
}

int image_file_write(const char *path, const struct image_head *head,
                     const struct image_range *ranges)
{
    AUTO_FCLOSE FILE *file = fopen(path, "wbe");
    if (!file)
        return -errno;
    fwrite(head, sizeof *head, 1, file);
    for (size_t i = 0; i < head->range_count; i++) {
        const struct image_span span = { ranges[i].address, ranges[i].size };
        fwrite(&span, sizeof span, 1, file);
    }
    for (size_t i = 0; i < head->range_count; i++)
        fwrite(ranges[i].bytes, 1, ranges[i].size, file);
    return fflush(file) || ferror(file) ? -EIO : 0;
}
