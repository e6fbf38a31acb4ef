/* A message of protobuf as text, by its own description: a line a value, and what is not there has
 * none. */
#pragma once

#include <inttypes.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <string.h>

static inline void message_print(FILE *into, const ProtobufCMessage *message, int depth);

static inline void member_print(FILE *into, const ProtobufCFieldDescriptor *field,
                                const void *member, int depth)
{
    const ProtobufCBinaryData *bytes = member;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        fprintf(into, "%*s%s {\n", depth, "", field->name);
        message_print(into, *(const ProtobufCMessage *const *)member, depth + 1);
        fprintf(into, "%*s}\n", depth, "");
        return;
    }
    fprintf(into, "%*s%s ", depth, "", field->name);
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        fprintf(into, "%" PRId64 "\n", *(const int64_t *)member);
        break;
    case PROTOBUF_C_TYPE_STRING:
        fprintf(into, "%s\n", *(const char *const *)member);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        fprintf(into, "%.*s\n", (int)bytes->len, (const char *)bytes->data);
        break;
    default:
        fprintf(into, "%" PRId32 "\n", *(const int32_t *)member);
    }
}

static inline size_t member_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(int32_t);
    }
}

/* Whether a value of a field that is not repeated is there: without a mark, what is not 0. */
static inline bool member_is_there(const ProtobufCFieldDescriptor *field, const char *message)
{
    const void *member = message + field->offset;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return *(const char *const *)member && **(const char *const *)member;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(const void *const *)member;
    if (field->quantifier_offset)
        return *(const protobuf_c_boolean *)(message + field->quantifier_offset);
    return member_size(field) == sizeof(int64_t) ? *(const int64_t *)member
                                                 : *(const int32_t *)member;
}

static inline void message_print(FILE *into, const ProtobufCMessage *message, int depth)
{
    const char *bytes = (const char *)message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            if (member_is_there(field, bytes))
                member_print(into, field, bytes + field->offset, depth);
            continue;
        }
        const char *items = *(const char *const *)(bytes + field->offset);
        size_t count = *(const size_t *)(bytes + field->quantifier_offset);
        for (size_t n = 0; n < count; n++)
            member_print(into, field, items + n * member_size(field), depth);
    }
}

/* The caller frees it. */
static inline char *message_text(const ProtobufCMessage *message)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    assert_non_null(into);
    message_print(into, message, 0);
    assert_int_equal(fclose(into), 0);
    return text;
}
