/* The types of options: how a value is read from text and written as text, once for the command
 * line, the configuration and what documents say of it. */
#pragma once

#include "sampler/app/option_rows.h"

/* What YAML must have where such a value stands. */
enum option_scalar { SCALAR_SWITCH, SCALAR_NUMBER, SCALAR_TEXT };

/* What a shell can fill in for a value. */
enum option_filling {
    FILL_NOTHING,
    FILL_FILE,
    FILL_FOLDER,
    FILL_COMMAND,
    FILL_PROCESS,
    FILL_WORD /* one of a few: option_word */
};

struct option_kind {
    const char *wants;
    enum option_scalar scalar;
    enum option_filling filling;
    bool repeats; /* values add up */
    size_t size;  /* of the member */
};

const struct option_kind *option_kind(const struct option_row *row);

/* What its value must be, for a sentence: "a number that is not negative". */
const char *option_wants(const struct option_row *row, char *scratch, size_t size);
#define OPTION_WANTS(row) option_wants(row, (char[256]){ "" }, 256)

/* Of FILL_WORD, each word; NULL behind the last. */
const char *option_word(const struct option_row *row, size_t index);

/*
 * Stores what the text says. `called` is the option's name where it stood, for the sentence of
 * `why`. 0, -EINVAL or -ENOMEM. Text is copied.
 */
int option_store(const struct option_row *row, const char *called, const char *text,
                 struct options *options, struct failure *why);

/* For types whose scalar is SCALAR_SWITCH. */
void option_switch(const struct option_row *row, bool on, struct options *options);

/* The other way round: value number `index` as text that option_store would take, NULL behind the
 * last. What is left open has none. `scratch` may be what is returned. */
const char *option_text(const struct option_row *row, const struct options *options, size_t index,
                        char *scratch, size_t size);

static inline void *option_member(struct options *options, const struct option_row *row)
{
    return (char *)options + row->member;
}
