/*
 * CPython 3.8: v3.8.18, Include/{object, longobject, frameobject, genobject, code}.h,
 * Include/cpython/{object, pystate, unicodeobject, dictobject}.h,
 * Include/internal/pycore_{pystate, ceval, gil, pymem}.h; the dict keys are those of
 * Objects/dict-common.h, the module that of Objects/moduleobject.c.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_8 = {
    .name = "3.8",
    .major = 3,
    .minor = 8,

    .runtime = {
        .interpreters_head = AT(32),
        .interpreters_main = AT(40),
        .finalizing = AT(16),
        .gil = AT(1152),
        .gc_collecting = AT(544),
    },
    .interp = {
        .next = AT(0),
        .id = AT(16),
        .threads_head = AT(8),
        .modules = AT(56),
        .sysdict = AT(72),
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
        .position = AT(104),
        .executing = AT(116),
        .localsplus = AT(360),
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

    .position = POSITION_LAST_BYTE,
    .lines = LINES_LNOTAB,
    .instance = INSTANCE_DICT_OFFSET,
    .integers = INTEGER_OB_SIZE,

    .executing = 1,
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .call_opcodes = {{131, 131}, {141, 142}, {161, 161}},
};
