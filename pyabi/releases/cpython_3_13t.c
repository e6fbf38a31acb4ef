/*
 * CPython 3.13t: v3.13.0, Include/cpython/{code, pystate, genobject, object, unicodeobject,
 * dictobject, longintrepr}.h, Include/internal/pycore_{runtime, interp, ceval_state, gil, gc,
 * frame, dict, object, moduleobject}.h, with Py_GIL_DISABLED. What a target tells of itself goes
 * before what stands here.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_13t = {
    .name = "3.13t",
    .major = 3,
    .minor = 13,
    .free_threaded = true,

    .runtime = {
        .interpreters_head = AT(632),
        .interpreters_main = AT(640),
        .finalizing = AT(608),
    },
    .interp = {
        .next = AT(7264),
        .id = AT(7272),
        .threads_head = AT(7344),
        .modules = AT(7664),
        .sysdict = AT(7648),
        .gc_collecting = AT(7600),
        .gil = AT(16),
    },
    .gil = {
        .last_holder = AT(16),
        .locked = AT(24),
        .enabled = AT(0),
        .end = AT(216),
    },
    .thread = {
        .prev = AT(0),
        .next = AT(8),
        .interp = AT(16),
        .frame = AT(72),
        .ident = AT(152),
        .native_id = AT(160),
        .datastack_chunk = AT(232),
        .datastack_top = AT(240),
        .attach_state = AT(40),
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
        .argcount = AT(68),
        .flags = AT(64),
        .firstlineno = AT(84),
        .stacksize = AT(80),
        .nlocalsplus = AT(88),
        .framesize = AT(92),
        .version = AT(108),
        .filename = AT(128),
        .name = AT(136),
        .qualname = AT(144),
        .line_table = AT(152),
        .bytecode_inline = AT(216),
    },
    .object = {
        .type = AT(24),
        .var_size = AT(32),
    },
    .type = {
        .name = AT(40),
        .basicsize = AT(48),
        .flags = AT(184),
        .dictoffset = AT(304),
        .cached_keys = AT(896),
    },
    .unicode = {
        .length = AT(32),
        .hash = AT(40),
        .state = AT(48),
        .ascii_data = AT(56),
        .compact_data = AT(72),
        .any = AT(72),
    },
    .bytes = {
        .length = AT(32),
        .data = AT(48),
    },
    .integer = {
        .tag = AT(32),
        .digits = AT(40),
    },
    .tuple = {
        .length = AT(32),
        .items = AT(40),
    },
    .dict = {
        .used = AT(32),
        .keys = AT(48),
        .values = AT(56),
    },
    .keys = {
        .log2_size = AT(8),
        .log2_index_bytes = AT(9),
        .kind = AT(10),
        .entry_count = AT(24),
        .indices = AT(32),
    },
    .values = {
        .valid = AT(3),
        .items = AT(8),
    },
    .module = {.dict = AT(32)},
    .generator = {
        .frame_state = AT(83),
        .frame_inline = AT(88),
    },

    .position = POSITION_INSTRUCTION,
    .lines = LINES_LOCATIONS,
    .instance = INSTANCE_VALUES_INLINE,
    .integers = INTEGER_TAG,

    .shim_owners = 1 << 3, /* FRAME_OWNED_BY_CSTACK */
    .highest_owner = 3,
    .generator_owner = 1,
    .executing = 0, /* FRAME_EXECUTING */
    .unicode_kind_shift = 2,
    .unicode_compact_shift = 5,
    .unicode_ascii_shift = 6,
    .managed_dict_words = 1,
    .type_has_inline_values = 1 << 2,
    .type_has_managed_dict = 1 << 4,
    .debug_offsets_size = 584,
    .debug_offsets = debug_offsets_3_13,
    .call_opcodes = {{53, 54}, {57, 57}, {162, 181}, {244, 246}},
};
