/*
 * CPython 3.11: v3.11.7, Include/cpython/{code, pystate, genobject, object, unicodeobject,
 * dictobject, longintrepr}.h, Include/internal/pycore_{runtime, interp, ceval, gil, gc, frame,
 * dict, object, moduleobject}.h.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_11 = {
    .name = "3.11",
    .major = 3,
    .minor = 11,

    .runtime = {
        .interpreters_head = AT(40),
        .interpreters_main = AT(48),
        .finalizing = AT(24),
        .gil = AT(360),
    },
    .interp = {
        .next = AT(0),
        .id = AT(48),
        .threads_head = AT(16),
        .modules = AT(888),
        .sysdict = AT(904),
        .gc_collecting = AT(848),
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
        .ident = AT(152),
        .native_id = AT(160),
        .datastack_chunk = AT(296),
        .datastack_top = AT(304),
    },
    .cframe = {
        .current_frame = AT(8),
        .previous = AT(16),
    },
    .chunk = {
        .previous = AT(0),
        .chunk_size = AT(8),
        .top = AT(16),
        .data = AT(24),
    },
    .frame = {
        .previous = AT(48),
        .code = AT(32),
        .instruction = AT(56),
        .owner = AT(69),
        .is_entry = AT(68),
        .stacktop = AT(64),
        .localsplus = AT(72),
    },
    .code = {
        .argcount = AT(56),
        .flags = AT(48),
        .firstlineno = AT(72),
        .stacksize = AT(68),
        .nlocalsplus = AT(76),
        .filename = AT(112),
        .name = AT(120),
        .qualname = AT(128),
        .line_table = AT(136),
        .bytecode_inline = AT(184),
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
        .log2_size = AT(8),
        .log2_index_bytes = AT(9),
        .kind = AT(10),
        .entry_count = AT(24),
        .indices = AT(32),
    },
    .values = {.items = AT(0)},
    .module = {.dict = AT(16)},
    .generator = {
        .frame_state = AT(75),
        .frame_inline = AT(80),
    },

    .position = POSITION_BEFORE_NEXT,
    .lines = LINES_LOCATIONS,
    .instance = INSTANCE_VALUES_BEFORE,
    .integers = INTEGER_OB_SIZE,

    .highest_owner = 2,
    .generator_owner = 1,
    .executing = 0, /* FRAME_EXECUTING */
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .managed_dict_words = 3,
    .type_has_managed_dict = 1 << 4,
    .call_opcodes = {{22, 24}, {64, 67}, {72, 73}, {76, 81}, {113, 113}, {121, 121}, {127, 127},
                     {141, 143}, {166, 166}, {171, 171}},
    /* INLINE_CACHE_ENTRIES_CALL, …_BINARY_SUBSCR, Include/internal/pycore_code.h */
    .push_opcodes = {{22, 4}, {23, 4}, {24, 4}, {171, 4}},
};
