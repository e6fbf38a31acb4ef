/*
 * Records what the readers of pyabi read of a process that stands still: every byte range they ask
 * for, and no more. usage: record PID IMAGE
 */
#include "pyabi/python.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/process.h"
#include "symbols/find_python.h"
#include "tests/snapshots/image_file.h"

#include <string.h>

/* A remote that keeps what was read through it. */
struct recorder {
    struct remote remote; /* first */
    struct remote *under;
    struct image_range *ranges;
    size_t count, capacity;
    int error;
    /* The page cache asks for whole pages; what its own readers ask of it is what we want to keep.
     */
    int (*cache_read)(struct remote *self, const struct remote_piece *pieces, size_t count,
                      size_t *ret_tail);
    bool in_cache;
};

static struct recorder recorder;

static void range_add(remote_addr address, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    void *copy = malloc(size);
    if (!copy || array_reserve(&recorder.ranges, &recorder.capacity, recorder.count + 1,
                               sizeof *recorder.ranges)) {
        recorder.error = -ENOMEM;
        free(copy);
        return;
    }
    memcpy(copy, bytes, size);
    recorder.ranges[recorder.count++] = (struct image_range){ address, copy, size };
}

static void pieces_add(const struct remote_piece *pieces, size_t count, int whole, size_t tail)
{
    for (int i = 0; i < whole; i++)
        range_add(pieces[i].address, pieces[i].into, pieces[i].size);
    if (whole >= 0 && (size_t)whole < count)
        range_add(pieces[whole].address, pieces[whole].into, tail);
}

static int recorder_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                         size_t *ret_tail)
{
    size_t tail = 0;
    (void)self;
    int whole = recorder.under->read_pieces(recorder.under, pieces, count, &tail);
    if (!recorder.in_cache)
        pieces_add(pieces, count, whole, tail);
    if (ret_tail)
        *ret_tail = tail;
    return whole;
}

static int cache_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                      size_t *ret_tail)
{
    size_t tail = 0;
    recorder.in_cache = true;
    int whole = recorder.cache_read(self, pieces, count, &tail);
    recorder.in_cache = false;
    pieces_add(pieces, count, whole, tail);
    if (ret_tail)
        *ret_tail = tail;
    return whole;
}

/* ---- what is read ---- */

static int threads_read(struct python *python, uint64_t main_id, struct failure *why)
{
    const struct py_thread *threads = NULL;
    struct py_stack stack;
    int count = python_list_threads(python, main_id, &threads);
    if (count < 0)
        return failure_set(why, count, "the threads cannot be listed");
    python_name_threads(python);
    python_want(python, WANT_ANCHORS | WANT_OWNER);
    for (int i = 0; i < count; i++) {
        struct view *view = NULL;
        int error = view_new(&view);
        if (!error)
            error = python_read_stack(python, &threads[i], view, MOMENT_STILL, &stack);
        view_free(view);
        if (error)
            return failure_set(why, error, "the stack of thread %d cannot be read", i);
    }
    return 0;
}

static int runtime_read(const struct image_head *head, struct failure *why)
{
    struct python *python = NULL;
    int error = python_open(&recorder.remote, head->runtime, head->version_hint, &python, why);
    if (error)
        return error;
    struct remote *cache = page_cache_remote(python->pages);
    recorder.cache_read = cache->read_pieces;
    cache->read_pieces = cache_read;
    error = threads_read(python, head->main_id, why);
    python_close(python);
    return error;
}

/* ---- what is kept ---- */

static int range_compare(const void *a, const void *b)
{
    const struct image_range *left = a, *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

/* What the range has in common with `last` must be the same bytes; the rest is put behind it. */
static int range_join(struct image_range *last, const struct image_range *range)
{
    size_t skip = (size_t)(range->address - last->address);
    size_t shared = last->size - skip < range->size ? last->size - skip : range->size;
    if (memcmp((const uint8_t *)last->bytes + skip, range->bytes, shared) != 0)
        return -EAGAIN;
    if (skip + range->size <= last->size)
        return 0;
    uint8_t *grown = realloc((void *)(uintptr_t)last->bytes, skip + range->size);
    if (!grown)
        return -ENOMEM;
    memcpy(grown + skip, range->bytes, range->size);
    last->bytes = grown;
    last->size = skip + range->size;
    return 0;
}

static int ranges_merge(void)
{
    size_t kept = 0;
    qsort(recorder.ranges, recorder.count, sizeof *recorder.ranges, range_compare);
    for (size_t i = 0; i < recorder.count; i++) {
        struct image_range *last = kept ? &recorder.ranges[kept - 1] : NULL;
        if (!last || recorder.ranges[i].address > last->address + last->size) {
            recorder.ranges[kept++] = recorder.ranges[i];
            continue;
        }
        int error = range_join(last, &recorder.ranges[i]);
        free((void *)(uintptr_t)recorder.ranges[i].bytes);
        if (error)
            return error;
    }
    recorder.count = kept;
    return 0;
}

static int image_write(const char *path, struct image_head *head, struct failure *why)
{
    int error = ranges_merge();
    if (!error)
        error = recorder.error;
    if (error)
        return failure_set(why, error, "the recorded ranges cannot be merged: %s",
                           error == -EAGAIN ? "the target moved" : strerror(-error));
    head->range_count = (uint32_t)recorder.count;
    error = image_file_write(path, head, recorder.ranges);
    return error ? failure_set(why, error, "%s: %s", path, strerror(-error)) : 0;
}

/* ---- where ---- */

static int judge_probe(void *context, remote_addr runtime, uint32_t version_hint,
                       uint32_t *ret_version)
{
    struct process *process = context;
    return python_probe(&process->memory, runtime, version_hint, ret_version);
}

static int process_record(struct process *process, const char *path, struct failure *why)
{
    const struct python_judge judge = {
        .context = process,
        .probe = judge_probe,
        .head_offsets = python_head_offsets(),
    };
    struct python_location location;
    int error = python_find(&process->memory, process->proc_fd, &judge, &location, why);
    if (error)
        return error;
    recorder.remote.read_pieces = recorder_read;
    recorder.under = &process->memory;
    struct image_head head = {
        .magic = IMAGE_MAGIC,
        .runtime = location.runtime,
        .main_id = (uint64_t)process->inner_pid,
        .version_hint = location.version_hex,
    };
    error = runtime_read(&head, why);
    return error ? error : image_write(path, &head, why);
}

int main(int argc, char **argv)
{
    struct failure why = { .text = "" };
    struct process *process = NULL;
    if (argc != 3)
        return 2;
    int error = process_open(atoi(argv[1]), &process, &why);
    if (!error)
        error = process_record(process, argv[2], &why);
    if (process)
        process_close(process);
    for (size_t i = 0; i < recorder.count; i++)
        free((void *)(uintptr_t)recorder.ranges[i].bytes);
    free(recorder.ranges);
    if (error)
        fprintf(stderr, "record: %s\n", why.text);
    return error != 0;
}
