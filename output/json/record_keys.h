/*
 * The values of a record's fields, one after the other in their order: keys that come in it, as we
 * write them, are each found at once. Of a key that comes twice one value is taken, always the same
 * one.
 */
#pragma once

#include "output/json/profile_fields.h"

#include <yyjson.h>

struct record_keys {
    const struct ordered *order;
    yyjson_val *json;
    yyjson_obj_iter at;
    size_t index;
};

/* `json` may be anything, or NULL: then there are none. */
void record_keys_begin(struct record_keys *keys, const struct ordered *order, yyjson_val *json);

/* NULL where there is none. */
yyjson_val *record_keys_next(struct record_keys *keys);
