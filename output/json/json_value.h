/* A value of a report in JSON: how it is written follows from its kind alone. */
#pragma once

#include "output/json/json_writer.h"
#include "output/model/value.h"

/* 0 or -ENOMEM. */
int json_value_write(struct json_writer *json, enum value_kind kind, const void *value);
