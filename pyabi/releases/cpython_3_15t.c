/*
 * CPython 3.15t: v3.15.2, Include/cpython/{code, pystate, object, unicodeobject, dictobject,
 * longintrepr}.h, Include/internal/pycore_{debug_offsets, runtime_structs, interp_structs,
 * interpframe_structs, frame, gil, dict, object, stackref, moduleobject}.h, with
 * Py_GIL_DISABLED. What a target tells of itself goes before what stands here; FROM_TARGET: it
 * moves with mimalloc.
 */
#include "pyabi/layout.h"

const struct py_layout cpython_3_15t = {
    .name = "3.15t",
    .major = 3,
    .minor = 15,
    .free_threaded = true,

    .runtime = {
        .interpreters_head = AT(936),
        .interpreters_main = AT(944),
        .finalizing = AT(912),
        .audit_hooks = AT(10760),
    },
    .interp = {
        .next = AT(7264),
        .id = AT(7272),
        .threads_head = AT(7336),
        .modules = AT(7592),
        .sysdict = AT(7576),
        .gc_collecting = AT(7512),
        .gc_frame = AT(7520),
        .gil = AT(16),
        .code_generation = AT(7952),
        .tlbc_generation = FROM_TARGET,
        .remote_debug = FROM_TARGET,
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
        .ident = AT(176),
        .native_id = AT(184),
        .datastack_chunk = AT(256),
        .datastack_top = AT(264),
        .base_frame = AT(80),
        .holds_gil = AT(36),
        .gil_requested = AT(40),
        .attach_state = AT(48),
    },
    .debugger = {
        .tracer = AT(112),
        .profiler = AT(104),
        .eval_breaker = AT(24),
        .pending_call = AT(344),
        .script_path = AT(348),
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
        .owner = AT(78),
        .stackpointer = AT(64),
        .localsplus = AT(80),
        .tlbc_index = AT(72),
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
        .bytecode_inline = AT(232),
        .tlbc = AT(224),
    },
    .tlbc = {
        .array_size = AT(0),
        .entries = AT(8),
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
        .cached_keys = AT(904),
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
        .items = AT(48),
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

    .reference_tag_mask = 3,
    .shim_owners = 1 << 3, /* FRAME_OWNED_BY_INTERPRETER */
    .highest_owner = 3,
    .generator_owner = 1,
    .executing = 4, /* FRAME_EXECUTING */
    .unicode_kind_shift = 8,
    .unicode_compact_shift = 11,
    .unicode_ascii_shift = 12,
    .managed_dict_words = 1,
    .type_has_inline_values = 1 << 2,
    .type_has_managed_dict = 1 << 4,
    .script_breaker = 1 << 5, /* _PY_EVAL_PLEASE_STOP_BIT */
    .yield_breaker = 1 << 0,  /* _PY_GIL_DROP_REQUEST_BIT */
    .debug_offsets_size = 888,
    .debug_offsets = debug_offsets_3_15,
    .call_opcodes = {{4, 4}, {50, 50}, {53, 53}, {144, 168}, {249, 251}},
};
