#include "output/model/source_parser.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Ordinary code takes about 60 bytes for each of its own, a megabyte of brackets 430. */
enum { EFFORT_PER_BYTE = 500, CHUNK_SIZE = 1024 };
#define EFFORT_AT_LEAST ((size_t)64 << 20)

/* Bytes that tree-sitter took in this thread, ever: its allocator is handed nothing to count in. */
static _Thread_local size_t effort;

/* tree-sitter goes on without looking. */
static void *taken(void *memory, size_t size)
{
    effort += size;
    if (!memory && size)
        abort();
    return memory;
}

static void *counted_malloc(size_t size)
{
    return taken(malloc(size), size);
}

static void *counted_calloc(size_t count, size_t size)
{
    return taken(calloc(count, size), count * size);
}

static void *counted_realloc(void *memory, size_t size)
{
    return taken(realloc(memory, size), size);
}

struct input {
    const char *text;
    size_t size, effort_limit;
};

/* In chunks, only to be asked again and again. */
static const char *input_read(void *payload, uint32_t offset, TSPoint point, uint32_t *ret_size)
{
    const struct input *input = payload;
    (void)point;
    *ret_size = 0;
    if (offset >= input->size || effort > input->effort_limit)
        return "";
    size_t rest = input->size - offset;
    *ret_size = (uint32_t)(rest < CHUNK_SIZE ? rest : CHUNK_SIZE);
    return input->text + offset;
}

/* For all threads. */
static void allocator_set(void)
{
    ts_set_allocator(counted_malloc, counted_calloc, counted_realloc, free);
}

TSTree *source_parse(const char *text, size_t size)
{
    static pthread_once_t allocator_is_set = PTHREAD_ONCE_INIT;
    struct input input = { text, size, effort + EFFORT_AT_LEAST + EFFORT_PER_BYTE * size };

    pthread_once(&allocator_is_set, allocator_set);
    TSParser *parser = ts_parser_new();
    ts_parser_set_language(parser, tree_sitter_python());
    TSTree *tree = ts_parser_parse(
        parser, NULL,
        (TSInput){ .payload = &input, .read = input_read, .encoding = TSInputEncodingUTF8 });
    ts_parser_delete(parser);
    return tree;
}
