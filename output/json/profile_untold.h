/*
 * What a profile that is read does not tell: keys that are missing, and values of another type than
 * their key's, which are empty in the report. Its views must not take them for zeros.
 */
#pragma once

#include "output/json/profile_fields.h"

#include <yyjson.h>

/* Counts among the report's misfits a value that does not fit; a record of the field's list, too.
 */
void untold_field_check(struct report *report, const struct field *field, yyjson_val *json);
void untold_record_check(struct report *report, const struct field *field, yyjson_val *json);

/* Once all is read: keeps what is absent, and adds a note of the misfits. 0 or -ENOMEM. */
int untold_note(struct report *report, yyjson_val *root);
