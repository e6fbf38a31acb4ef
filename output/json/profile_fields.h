/*
 * The shape of a profile in JSON, as data: every key, what kind of value it has, and where that
 * value lies in a report. The writer and the reader both walk these tables, so neither knows a key
 * the other does not.
 */
#pragma once

#include "output/model/report.h"

enum field_kind {
    /* one value of a kind from value.h, which `value` names */
    FIELD_VALUE,
    FIELD_OPTIONAL, /* int64_t; -1 is null */
    FIELD_RECORD,   /* the record, in place */
    FIELD_RECORDS,  /* a pointer and a count: a list of records */
    FIELD_POINTERS, /* a pointer to pointers, and a count: a list of records that may be shared */
    FIELD_MAP, /* a pointer and a count: an object; the record's first member is each one's key */
    FIELD_COLUMNS, /* the table of columns; nothing in the report */
};

struct record;

struct field {
    const char *key;
    enum field_kind kind;
    enum value_kind value;
    size_t offset;
    const struct record *record;
    const char *group; /* of a column */
};

enum record_shape {
    SHAPE_OBJECT,
    SHAPE_LIST, /* the values alone, in the fields' order */
};

struct record {
    const struct field *fields;
    size_t count, size;
    enum record_shape shape;
    const char *without; /* the group of columns that it has not */
};

extern const struct record profile_record, file_record;

/* The fields that a record has, in the order in which they are written: an object's by key. */
enum { FIELDS_MAX = 64 };

struct ordered {
    const struct record *record;
    const struct field *fields[FIELDS_MAX];
    size_t key_lengths[FIELDS_MAX];
    size_t count;
};

void fields_order(const struct record *record, struct ordered *ret);
