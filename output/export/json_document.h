/* What the formats that are JSON share: a document on its way out. Whatever finds no room in memory
 * is told of when it is written, so nothing needs to be checked before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yyjson.h>

struct json_document {
    yyjson_mut_doc *doc;
    yyjson_mut_val *root; /* an object */
    yyjson_alc memory;
    bool is_short; /* of memory */
};

/* Texts and keys that are added to it are borrowed until it is written. */
void json_document_init(struct json_document *json);
void json_document_done(struct json_document *json);

/* 0 or -ENOMEM */
int json_document_write(struct json_document *json, FILE *into);

/* An empty list, or an empty object, in the object. */
yyjson_mut_val *json_list(struct json_document *json, yyjson_mut_val *object, const char *key);
yyjson_mut_val *json_object(struct json_document *json, yyjson_mut_val *object, const char *key);

/* A new object at the end of the list. */
yyjson_mut_val *json_item(struct json_document *json, yyjson_mut_val *list);
