/*
 * CPython 3.10: v3.10.13, Include/{object, genobject}.h, Include/cpython/{code, frameobject,
 * object, pystate, unicodeobject, dictobject}.h, Include/internal/pycore_{runtime, interp,
 * ceval, gil, gc, moduleobject}.h; the dict keys are those of Objects/dict-common.h.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_10 = {
    .name = "3.10",
    .major = 3,
    .minor = 10,

    .runtime = {
        .interpreters_head = AT(32),
        .interpreters_main = AT(40),
        .finalizing = AT(16),
        .gil = AT(352),
    },
    .interp = {
        .next = AT(0),
        .id = AT(24),
        .threads_head = AT(8),
        .modules = AT(856),
        .sysdict = AT(872),
        .gc_collecting = AT(816),
    },
    .gil = {
        .last_holder = AT(8),
        .locked = AT(16),
        .end = AT(208),
    },
    .thread = {
        .prev = AT(0),
        .next = AT(8),
        .interp = AT(16),
        .frame = AT(24),
        .ident = AT(176),
    },
    .frame = {
        .previous = AT(24),
        .code = AT(32),
        .position = AT(96),
        .executing = AT(108),
        .localsplus = AT(352),
    },
    .code = {
        .argcount = AT(16),
        .flags = AT(36),
        .firstlineno = AT(40),
        .stacksize = AT(32),
        .filename = AT(104),
        .name = AT(112),
        .line_table = AT(120),
        .bytecode = AT(48),
    },
    .object = {
        .type = AT(8),
        .var_size = AT(16),
    },
    .type = {
        .name = AT(24),
        .basicsize = AT(32),
        .flags = AT(168),
        .dictoffset = AT(288),
        .cached_keys = AT(872),
    },
    .unicode = {
        .length = AT(16),
        .hash = AT(24),
        .state = AT(32),
        .ascii_data = AT(48),
        .compact_data = AT(72),
        .any = AT(72),
    },
    .bytes = {
        .length = AT(16),
        .data = AT(32),
    },
    .integer = {
        .tag = AT(16),
        .digits = AT(24),
    },
    .tuple = {
        .length = AT(16),
        .items = AT(24),
    },
    .dict = {
        .used = AT(16),
        .keys = AT(32),
        .values = AT(40),
    },
    .keys = {
        .index_count = AT(8),
        .entry_count = AT(32),
        .indices = AT(40),
    },
    .values = {.items = AT(0)},
    .module = {.dict = AT(16)},
    .generator = {.frame = AT(16)},

    .position = POSITION_LAST_UNIT,
    .lines = LINES_RANGES,
    .instance = INSTANCE_DICT_OFFSET,
    .integers = INTEGER_OB_SIZE,

    .executing = 0, /* FRAME_EXECUTING */
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .call_opcodes = {{131, 131}, {141, 142}, {161, 161}},
};
