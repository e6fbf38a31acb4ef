#include "output/export/json_document.h"

#include <errno.h>
#include <stdlib.h>

static void *memory_take(void *context, size_t size)
{
    void *taken = malloc(size);
    ((struct json_document *)context)->is_short |= !taken;
    return taken;
}

static void *memory_resize(void *context, void *old, size_t old_size, size_t size)
{
    (void)old_size;
    void *taken = realloc(old, size);
    ((struct json_document *)context)->is_short |= !taken;
    return taken;
}

static void memory_free(void *context, void *taken)
{
    (void)context;
    free(taken);
}

void json_document_init(struct json_document *json)
{
    *json = (struct json_document){ .memory = { memory_take, memory_resize, memory_free, json } };
    json->doc = yyjson_mut_doc_new(&json->memory);
    json->root = yyjson_mut_obj(json->doc);
    yyjson_mut_doc_set_root(json->doc, json->root);
}

void json_document_done(struct json_document *json)
{
    yyjson_mut_doc_free(json->doc);
    json->doc = NULL;
}

int json_document_write(struct json_document *json, FILE *into)
{
    size_t size = 0;
    char *text = json->is_short ? NULL
                                : yyjson_mut_write_opts(json->doc, YYJSON_WRITE_NOFLAG,
                                                        &json->memory, &size, NULL);
    if (!text)
        return -ENOMEM;
    fwrite(text, 1, size, into);
    putc('\n', into);
    free(text);
    return 0;
}

yyjson_mut_val *json_list(struct json_document *json, yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *list = yyjson_mut_arr(json->doc);
    yyjson_mut_obj_add_val(json->doc, object, key, list);
    return list;
}

yyjson_mut_val *json_object(struct json_document *json, yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *inner = yyjson_mut_obj(json->doc);
    yyjson_mut_obj_add_val(json->doc, object, key, inner);
    return inner;
}

yyjson_mut_val *json_item(struct json_document *json, yyjson_mut_val *list)
{
    yyjson_mut_val *item = yyjson_mut_obj(json->doc);
    yyjson_mut_arr_append(list, item);
    return item;
}
