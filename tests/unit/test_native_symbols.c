/* Names of native addresses: in this very process, which is its own target, and in made symbol
 * tables. */
#define _GNU_SOURCE 1 /* dladdr */

#include "symbols/native_symbols.h"

#include "sampler/base/cleanup.h"
#include "sampler/target/process.h"
#include "symbols/elf_file.h"
#include "symbols/object_symbols.h"
#include "symbols/symbol_table.h"
#include "tests/unit/skipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, used))

struct self {
    struct process *process;
    struct maps maps;
    struct native_symbols *symbols;
};

static void self_open(struct self *self)
{
    struct failure why;
    assert_int_equal(process_open(getpid(), &self->process, &why), 0);
    assert_int_equal(maps_read(self->process->proc_fd, &self->maps), 0);
    assert_int_equal(
        native_symbols_open(&self->process->memory, self->process->proc_fd, &self->symbols), 0);
    assert_int_equal(native_symbols_set_maps(self->symbols, &self->maps), 0);
}

static void self_close(struct self *self)
{
    native_symbols_close(self->symbols);
    maps_done(&self->maps);
    process_close(self->process);
}

#define AUTO_SELF CLEANUP(self_close) struct self

static struct native_symbol find(struct self *self, remote_addr ip)
{
    struct native_symbol symbol;
    assert_int_equal(native_symbols_find(self->symbols, ip, &symbol), 0);
    return symbol;
}

enum { PLAIN_FUNCTION_FIRST_LINE = __LINE__ };
NOINLINE static int plain_function(int number)
{
    __asm__ volatile("" : "+r"(number));
    return number + 1;
}
enum { PLAIN_FUNCTION_LAST_LINE = __LINE__ };

static const char *own_path(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    return path;
}

static void test_own_function(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    for (int i = 0; i < 2; i++) { /* the second time it is remembered */
        struct native_symbol symbol = find(&self, (remote_addr)plain_function + 1);
        assert_string_equal(symbol.name, "plain_function");
        assert_string_equal(symbol.mangled, "plain_function");
        assert_string_equal(symbol.module, own_path());
        assert_int_equal(symbol.offset, 1);
    }
}

static void test_library_function(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    void *address = dlsym(RTLD_DEFAULT, "lfind");
    Dl_info info;
    assert_true(address && dladdr(address, &info));
    struct native_symbol symbol = find(&self, (remote_addr)address);
    assert_string_equal(symbol.name, "lfind");
    assert_int_equal(symbol.offset, 0);
    char *real = realpath(info.dli_fname, NULL);
    assert_string_equal(symbol.module, real);
    free(real);
}

static size_t objects_count(const struct object_list *list)
{
    size_t count = 0;
    for (const struct object_symbols *object = list->first; object; object = object->next)
        count++;
    return count;
}

/* Two processes that have a file mapped have its symbols once, and each as long as it wants. */
static void test_shared_objects(void **state)
{
    (void)state;
    struct object_list objects = { NULL };
    struct self one = { 0 }, other = { 0 };
    self_open(&one);
    self_open(&other);
    native_symbols_share(one.symbols, &objects);
    native_symbols_share(other.symbols, &objects);
    const char *name = find(&one, (remote_addr)plain_function).name;
    assert_string_equal(name, "plain_function");
    assert_ptr_equal(find(&other, (remote_addr)plain_function).name, name);
    assert_int_equal(objects_count(&objects), 1);
    native_symbols_want_lines(other.symbols, false);
    find(&one, (remote_addr)dlsym(RTLD_DEFAULT, "lfind"));
    find(&other, (remote_addr)dlsym(RTLD_DEFAULT, "lfind"));
    assert_int_equal(objects_count(&objects), 3); /* with source lines it is another thing */
    self_close(&one);
    assert_int_equal(objects_count(&objects), 2);
    assert_string_equal(find(&other, (remote_addr)plain_function + 1).name, "plain_function");
    self_close(&other);
    assert_null(objects.first);
}

/* Names that compilers and languages make. */
NOINLINE static void rust_function(void) __asm__("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE");
static void rust_function(void)
{
    __asm__ volatile("");
}

static void test_demangled(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    struct native_symbol symbol = find(&self, (remote_addr)rust_function);
    assert_string_equal(symbol.name, "core::fmt::Formatter::pad");
    assert_string_equal(symbol.mangled, "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE");
}

static bool own_program_has_lines(void)
{
    bool found = false;
    size_t names;
    AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        assert_non_null(gelf_getshdr(section, &header));
        found |= strcmp(elf_strptr(elf, names, header.sh_name), ".debug_line") == 0;
    }
    elf_end(elf);
    return found;
}

/* Where this program was built without debug information there must be no line, instead of a wrong
 * one. */
static void test_source_line(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    struct native_symbol symbol = find(&self, (remote_addr)plain_function);
    if (!own_program_has_lines()) {
        assert_null(symbol.file);
        assert_int_equal(symbol.line, 0);
        return;
    }
    const char *name = strrchr(symbol.file, '/');
    assert_string_equal(name ? name + 1 : symbol.file, "test_native_symbols.c");
    assert_in_range(symbol.line, PLAIN_FUNCTION_FIRST_LINE, PLAIN_FUNCTION_LAST_LINE);
}

/* A function without a symbol in one that has one, and an address in it. */
NOINLINE static void *return_address(void)
{
    __asm__ volatile("" ::: "memory"); /* who calls it cannot do so before its loop */
    return __builtin_return_address(0);
}

__attribute__((always_inline)) static inline void *inlined_address(void)
{
    void *volatile address = return_address();
    return address;
}

enum { CALLER_FIRST_LINE = __LINE__ };
NOINLINE static void *caller_of_inlined(int number)
{
    void *address = NULL;
    for (int i = 0; i < number; i++) {
        void *now = inlined_address();
        address = now;
    }
    return address;
}
enum { CALLER_LAST_LINE = __LINE__ };

/* The name is the outer function's, so the line is the one of its call. */
static void test_line_of_inlined_call(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    struct native_symbol symbol = find(&self, (remote_addr)caller_of_inlined(1) - 1);
    assert_string_equal(symbol.name, "caller_of_inlined");
    if (!own_program_has_lines())
        SKIP("this program was built without source lines");
    assert_in_range(symbol.line, CALLER_FIRST_LINE, CALLER_LAST_LINE);
    assert_non_null(strstr(symbol.file, "test_native_symbols.c"));
}

static void test_anonymous(void **state)
{
    (void)state;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    AUTO_SELF self = { 0 };
    self_open(&self);
    struct native_symbol symbol = find(&self, (remote_addr)memory + 8);
    assert_null(symbol.name);
    assert_null(symbol.module);
    assert_int_equal(native_symbols_find(self.symbols, 8, &symbol), -ENOENT);
    assert_null(symbol.module);
    munmap(memory, 4096);
}

/* A file that is no ELF can be mapped executable, too. */
static void test_no_object(void **state)
{
    (void)state;
    char path[] = "/tmp/no-object-XXXXXX";
    AUTO_CLOSE int fd = mkstemp(path);
    assert_int_equal(ftruncate(fd, 8192), 0);
    void *memory = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    AUTO_SELF self = { 0 };
    self_open(&self);
    struct native_symbol symbol = find(&self, (remote_addr)memory + 4098);
    assert_null(symbol.name);
    assert_string_equal(symbol.module, path);
    assert_int_equal(symbol.offset, 4098);
    munmap(memory, 8192);
    unlink(path);
}

/* What was learnt of an address is forgotten with the mapping. */
static void test_maps_change(void **state)
{
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    remote_addr ip = (remote_addr)plain_function;
    assert_string_equal(find(&self, ip).name, "plain_function");
    struct maps none = { 0 };
    struct native_symbol symbol;
    assert_int_equal(native_symbols_set_maps(self.symbols, &none), 0);
    assert_int_equal(native_symbols_find(self.symbols, ip, &symbol), -ENOENT);
    assert_int_equal(native_symbols_set_maps(self.symbols, &self.maps), 0);
    assert_string_equal(find(&self, ip).name, "plain_function");
}

/* ---- the evaluation loop ---- */

#define NAMED_FUNCTION(function, name)                                                             \
    NOINLINE static void function(void) __asm__(name);                                             \
    static void function(void)                                                                     \
    {                                                                                              \
        __asm__ volatile("# " name);                                                               \
    }

NAMED_FUNCTION(loop, "_PyEval_EvalFrameDefault")
NAMED_FUNCTION(loop_cold, "_PyEval_EvalFrameDefault.cold")
NAMED_FUNCTION(loop_private, "_PyEval_EvalFrameDefault.lto_priv.0")
NAMED_FUNCTION(tail_call, "_TAIL_CALL_LOAD_FAST.llvm.123")
NAMED_FUNCTION(other, "_PyEval_EvalFrameDefaults")
NAMED_FUNCTION(vector, "_PyEval_Vector")

static void test_evaluator(void **state)
{
    static const struct {
        void (*function)(void);
        bool is_evaluator;
    } ROWS[] = {
        { loop, true },      { loop_cold, true }, { loop_private, true },
        { tail_call, true }, { other, false },    { vector, false },
    };
    (void)state;
    AUTO_SELF self = { 0 };
    self_open(&self);
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
            assert_int_equal(
                native_symbols_is_evaluator(self.symbols, (remote_addr)ROWS[i].function),
                ROWS[i].is_evaluator);
    assert_false(native_symbols_is_evaluator(self.symbols, 8));
}

/* ---- made tables ---- */

static const struct symbol MADE[] = {
    { 0x1000, 0x100, "function", NULL, 6 },
    { 0x1000, 0x100, "alias", NULL, 4 },
    { 0x1040, 0, "label_inside", NULL, 2 },
    { 0x1200, 0x400, "outer", NULL, 6 },
    { 0x1300, 0x10, "inner", NULL, 4 },
    { 0x2000, 0, "sizeless", NULL, 4 },
    { 0xfffffffffffffff0, 0x100, "at_the_end", NULL, 4 },
};

static const char *name_at(const struct symbol_table *table, uint64_t address)
{
    struct symbol *symbol = symbol_table_find(table, address);
    return symbol ? symbol_readable(symbol) : "";
}

static void test_table(void **state)
{
    static const struct {
        uint64_t address;
        const char *name;
    } ROWS[] = {
        { 0, "" },
        { 0xfff, "" },
        { 0x1000, "function" },
        { 0x1040, "function" },
        { 0x10ff, "function" },
        { 0x1100, "" },
        { 0x11ff, "" },
        { 0x1200, "outer" },
        { 0x1300, "inner" },
        { 0x1310, "outer" },
        { 0x1600, "" },
        { 0x2000, "sizeless" },
        { 0x2fff, "sizeless" },
        { 0x3000, "" },
        { UINT64_MAX, "at_the_end" },
    };
    (void)state;
    struct symbol_table table = { calloc(1, sizeof MADE), sizeof MADE / sizeof MADE[0], 0 };
    memcpy(table.list, MADE, sizeof MADE);
    symbol_table_sort(&table);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_string_equal(name_at(&table, ROWS[i].address), ROWS[i].name);
    symbol_table_done(&table);
    assert_null(symbol_table_find(&table, 0x1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_function),   cmocka_unit_test(test_library_function),
        cmocka_unit_test(test_shared_objects), cmocka_unit_test(test_demangled),
        cmocka_unit_test(test_source_line),    cmocka_unit_test(test_line_of_inlined_call),
        cmocka_unit_test(test_anonymous),      cmocka_unit_test(test_no_object),
        cmocka_unit_test(test_maps_change),    cmocka_unit_test(test_evaluator),
        cmocka_unit_test(test_table),
    };
    elf_version(EV_CURRENT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
