/*
 * CPython 3.12: v3.12.1, Include/cpython/{code, pystate, genobject, object, unicodeobject,
 * dictobject, longintrepr}.h, Include/internal/pycore_{runtime, interp, ceval_state, gil, gc,
 * frame, dict, object, moduleobject}.h.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_12 = {
    .name = "3.12",
    .major = 3,
    .minor = 12,

    .runtime = {
        .interpreters_head = AT(40),
        .interpreters_main = AT(48),
        .finalizing = AT(24),
    },
    .interp = {
        .next = AT(0),
        .id = AT(8),
        .threads_head = AT(72),
        .modules = AT(944),
        .sysdict = AT(352),
        .gc_collecting = AT(312),
        .gil = AT(384),
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
        .cframe = AT(56),
        .ident = AT(136),
        .native_id = AT(144),
        .datastack_chunk = AT(232),
        .datastack_top = AT(240),
    },
    .cframe = {
        .current_frame = AT(0),
        .previous = AT(8),
    },
    .chunk = {
        .previous = AT(0),
        .chunk_size = AT(8),
        .top = AT(16),
        .data = AT(24),
    },
    .frame = {
        .previous = AT(8),
        .code = AT(0),
        .instruction = AT(56),
        .owner = AT(70),
        .stacktop = AT(64),
        .localsplus = AT(72),
    },
    .code = {
        .argcount = AT(52),
        .flags = AT(48),
        .firstlineno = AT(68),
        .stacksize = AT(64),
        .nlocalsplus = AT(72),
        .framesize = AT(76),
        .version = AT(92),
        .filename = AT(112),
        .name = AT(120),
        .qualname = AT(128),
        .line_table = AT(136),
        .bytecode_inline = AT(192),
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
        .cached_keys = AT(880),
    },
    .unicode = {
        .length = AT(16),
        .hash = AT(24),
        .state = AT(32),
        .ascii_data = AT(40),
        .compact_data = AT(56),
        .any = AT(56),
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
        .log2_size = AT(8),
        .log2_index_bytes = AT(9),
        .kind = AT(10),
        .entry_count = AT(24),
        .indices = AT(32),
    },
    .values = {.items = AT(0)},
    .module = {.dict = AT(16)},
    .generator = {
        .frame_state = AT(67),
        .frame_inline = AT(72),
    },

    .position = POSITION_BEFORE_NEXT,
    .lines = LINES_LOCATIONS,
    .instance = INSTANCE_TAGGED_BEFORE,
    .integers = INTEGER_TAG,

    .shim_owners = 1 << 3, /* FRAME_OWNED_BY_CSTACK */
    .highest_owner = 3,
    .generator_owner = 1,
    .executing = 0, /* FRAME_EXECUTING */
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .managed_dict_words = 3,
    .type_has_managed_dict = 1 << 4,
    .call_opcodes = {{23, 24}, {28, 29}, {34, 34}, {38, 48}, {56, 56}, {142, 142}, {171, 171},
                     {241, 241}, {244, 244}},
    /* INLINE_CACHE_ENTRIES_CALL, …_BINARY_SUBSCR, …_LOAD_ATTR, Include/internal/pycore_code.h */
    .push_opcodes = {{23, 3}, {24, 3}, {28, 3}, {171, 3}},
};
