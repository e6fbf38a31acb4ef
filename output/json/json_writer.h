/* JSON as it is written: commas, line ends and escapes. What comes out is valid, whatever bytes go
 * in, and it is there when what was begun first has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *into;
    unsigned depth;
    unsigned flat; /* from this depth on all is on one line; 0: nowhere */
    bool has_items;
    bool has_key;
    size_t used;
    char bytes[16384]; /* on their way */
};

void json_begin(struct json_writer *json, char bracket); /* { or [ */
void json_end(struct json_writer *json, char bracket);   /* } or ] */

/* What follows is its value. */
void json_key(struct json_writer *json, const char *key);

void json_text(struct json_writer *json, const char *text); /* NULL: null */
void json_integer(struct json_writer *json, int64_t number);
void json_float(struct json_writer *json, double number);   /* with six digits; never an integer */
void json_word(struct json_writer *json, const char *word); /* true, false, null */
