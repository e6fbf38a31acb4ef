/*
 * From the instruction that runs up to the evaluation loop: another mapped object, or a C function
 * that Python called, means native; the interpreter's own helpers, and what it does to call a
 * Python function, are Python.
 */
#include "sampler/loop/cpu_kind.h"

#include <string.h>

/* Between the loop and what it calls; says nothing of who is called. Objects/call.c, Python/ceval.c
 * of all releases. */
static const char *const plumbing[] = {
    "call_function",        "do_call_core",
    "_PyObject_Vectorcall", "PyObject_Vectorcall",
    "PyObject_Call",        "_PyObject_Call",
    "PyVectorcall_Call",    "_PyVectorcall_Call",
    "method_vectorcall",    "_PyObject_VectorcallTstate",
    "PyEval_EvalFrame",     "_PyEval_EvalFrame",
    "trace_call_function",  "_PyObject_MakeTpCall",
    "object_vacall",
};

/* What the interpreter does itself to enter a Python function, and around each call. */
static const char *const entering[] = {
    "_PyFunction_Vectorcall",
    "function_code_fastcall",
    "_PyEval_Vector",
    "_PyEval_EvalCodeWithName",
    "_PyEval_EvalCode",
    "_PyEvalFramePushAndInit",
    "_PyEval_MakeFrameVector",
    "_PyFrame_New_NoTrack",
    "initialize_locals",
    "_PyThreadState_PushFrame",
    "clear_thread_frame",
    "_PyEvalFrameClearAndPop",
    "_PyEval_FrameClearAndPop",
    "_PyFrame_ClearLocals",
    "_PyFunction_SetVersion",
    "_PyFrame_ClearExceptCode",
    "frame_dealloc",
    "_PyEvalFramePushAndInit_Ex",
    "_Py_CheckFunctionResult",
    "PyErr_Occurred",
    "_PyErr_Occurred",
    "_Py_Dealloc",
    "PyObject_Free",
    "_PyObject_Free",
    "PyObject_GC_Del",
    "func_dealloc",
    "tupledealloc",
    "list_dealloc",
    "dict_dealloc",
};

/* Another object's code that compilers call for the interpreter's own: its thread-local variables.
 */
static const char *const runtime[] = { "__tls_get_addr", "update_get_addr", "_dl_update_slotinfo" };

static bool name_in(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(list[i]);
        /* compilers append .part.0, .constprop.0, .lto_priv.0 */
        if (strncmp(name, list[i], length) == 0 && (!name[length] || name[length] == '.'))
            return true;
    }
    return false;
}

#define NAME_IN(name, list) name_in(name, list, sizeof(list) / sizeof *(list))

/* Our own, which stands between the interpreter and its allocators: who called is what counts. */
static bool is_shim(const struct native_symbol *symbol)
{
    const char *slash = symbol->module ? strrchr(symbol->module, '/') : NULL;
    return slash && strcmp(slash, "/libscalene_shim.so") == 0;
}

static bool is_foreign(const struct cpu_look *look, const struct native_symbol *symbol)
{
    return symbol->module && strcmp(symbol->module, look->interpreter_path) != 0 &&
           !is_shim(symbol);
}

enum cpu_kind cpu_kind_find(const struct cpu_look *look)
{
    if (look->in_call)
        return CPU_KERNEL;
    size_t above = 0; /* native frames inside the innermost evaluation */
    for (; above < look->native_count; above++) {
        struct native_symbol symbol = { 0 };
        if (native_symbols_is_evaluator(look->symbols, look->native[above].ip))
            break;
        if (native_symbols_find(look->symbols, look->native[above].ip, &symbol) == 0 &&
            is_foreign(look, &symbol) && !(symbol.mangled && NAME_IN(symbol.mangled, runtime)))
            return CPU_NATIVE;
    }
    if (!look->stack->count)
        return CPU_NATIVE;
    if (!python_frame_calls(&look->stack->frames[0]))
        return CPU_PYTHON;
    while (above-- > 0) {
        struct native_symbol symbol = { 0 };
        native_symbols_find(look->symbols, look->native[above].ip, &symbol);
        if (is_shim(&symbol) || (symbol.mangled && NAME_IN(symbol.mangled, plumbing)))
            continue;
        return symbol.mangled && NAME_IN(symbol.mangled, entering) ? CPU_PYTHON : CPU_NATIVE;
    }
    return CPU_PYTHON;
}
