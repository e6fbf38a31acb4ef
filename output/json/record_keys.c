#include "output/json/record_keys.h"

void record_keys_begin(struct record_keys *keys, const struct ordered *order, yyjson_val *json)
{
    *keys = (struct record_keys){ .order = order, .json = json };
    yyjson_obj_iter_init(json, &keys->at);
}

yyjson_val *record_keys_next(struct record_keys *keys)
{
    size_t index = keys->index++;
    if (keys->order->record->shape != SHAPE_OBJECT)
        return yyjson_arr_get(keys->json, index);
    return keys->at.obj ? yyjson_obj_iter_getn(&keys->at, keys->order->fields[index]->key,
                                               keys->order->key_lengths[index])
                        : NULL;
}
