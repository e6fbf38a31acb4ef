/* ELF objects: made ones with every kind of table, hostile ones, and this very process's. */
#define _GNU_SOURCE 1 /* dlsym, memfd_create */

#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/elf_image.h"

DEFINE_CLEANUP(struct elf_file *, elf_file_close)
#define AUTO_ELF CLEANUP(elf_file_closep) struct elf_file *

static const struct elf_plan PLAN = {
    .exported = { { "first", 0x3100 },
                  { "_PyRuntime", 0x3200 },
                  { "elsewhere", 0 },
                  { "x", 0x3300 } },
    .local = { { "hidden", 0x3400 }, { "elsewhere_too", 0 } },
    .section = { ".PyRuntime", 0x3200 },
};

static struct elf_file *open_image(struct elf_image *image)
{
    struct elf_file *file = NULL;
    assert_int_equal(elf_file_open_bytes(image->bytes, sizeof image->bytes, &file), 0);
    return file;
}

static void assert_exports(const struct elf_file *file, const struct elf_plan *plan)
{
    for (const struct elf_name *name = plan->exported; name->name; name++) {
        uint64_t value = 0, size = 0;
        int error = elf_file_find_exported(file, name->name, &value, &size);
        assert_int_equal(error, name->address ? 0 : -ENOENT);
        if (name->address)
            assert_int_equal(value, ELF_IMAGE_BASE + name->address);
    }
    uint64_t value, size;
    assert_int_equal(elf_file_find_exported(file, "absent", &value, &size), -ENOENT);
    assert_int_equal(elf_file_find_exported(file, "hidden", &value, &size), -ENOENT);
    assert_int_equal(elf_file_find_exported(file, "", &value, &size), -ENOENT);
}

static void test_exported_by_each_hash(void **state)
{
    (void)state;
    static const enum elf_image_hash kinds[] = { HASH_GNU, HASH_SYSV };
    for (size_t i = 0; i < 2; i++) {
        struct elf_plan plan = PLAN;
        struct elf_image image;
        plan.hash = kinds[i];
        elf_image_make(&image, &plan);
        AUTO_ELF file = open_image(&image);
        assert_exports(file, &plan);
    }
}

static void test_exported_without_sections(void **state)
{
    (void)state;
    struct elf_plan plan = PLAN;
    struct elf_image image;
    uint64_t value, size;
    plan.no_sections = true;
    elf_image_make(&image, &plan);
    AUTO_ELF file = open_image(&image);
    assert_exports(file, &plan);
    assert_int_equal(elf_file_find_symbol(file, "_PyRuntime", &value, &size), 0);
    assert_int_equal(value, ELF_IMAGE_BASE + 0x3200);
    assert_int_equal(elf_file_find_symbol(file, "hidden", &value, &size), -ENOENT);
    assert_int_equal(elf_file_find_section(file, ".PyRuntime", &value, &size), -ENOENT);
}

static void test_without_hash_nothing_is_exported(void **state)
{
    (void)state;
    struct elf_plan plan = PLAN;
    struct elf_image image;
    uint64_t value, size;
    plan.hash = HASH_NONE;
    elf_image_make(&image, &plan);
    AUTO_ELF file = open_image(&image);
    assert_int_equal(elf_file_find_exported(file, "first", &value, &size), -ENOENT);
}

static void test_needed(void **state)
{
    (void)state;
    struct elf_plan plan = PLAN;
    struct elf_image image;
    for (int asks = 0; asks < 2; asks++) {
        plan.needed = asks ? "libasan.so.8" : NULL;
        elf_image_make(&image, &plan);
        AUTO_ELF file = open_image(&image);
        assert_int_equal(elf_file_needs(file, "libasan.so"), asks);
        assert_int_equal(elf_file_needs(file, "libasan.so.8"), asks);
        assert_false(elf_file_needs(file, "libasan.so.80"));
        assert_false(elf_file_needs(file, "asan"));
    }
}

static void test_symtab(void **state)
{
    (void)state;
    struct elf_image image;
    uint64_t value, size;
    elf_image_make(&image, &PLAN);
    AUTO_ELF file = open_image(&image);
    assert_int_equal(elf_file_find_symbol(file, "hidden", &value, &size), 0);
    assert_int_equal(value, ELF_IMAGE_BASE + 0x3400);
    assert_int_equal(size, 64);
    assert_int_equal(elf_file_find_symbol(file, "first", &value, &size), 0);
    assert_int_equal(elf_file_find_symbol(file, "elsewhere_too", &value, &size), -ENOENT);
}

static void test_section(void **state)
{
    (void)state;
    for (int extended = 0; extended < 2; extended++) {
        struct elf_plan plan = PLAN;
        struct elf_image image;
        uint64_t address, size;
        plan.extended_counts = extended;
        elf_image_make(&image, &plan);
        AUTO_ELF file = open_image(&image);
        assert_int_equal(elf_file_find_section(file, ".PyRuntime", &address, &size), 0);
        assert_int_equal(address, ELF_IMAGE_BASE + 0x3200);
        assert_int_equal(size, 64);
        assert_int_equal(elf_file_find_section(file, ".PyRun", &address, &size), -ENOENT);
        assert_int_equal(elf_file_find_section(file, ".symtab", &address, &size), -ENOENT);
    }
}

static int bias_of(const struct elf_file *file, uint64_t start, uint64_t offset,
                   const char *permissions, remote_addr *ret)
{
    const struct mapping mapping = {
        .start = start,
        .end = start + 0x1000,
        .file_offset = offset,
        .readable = true,
        .writable = permissions[1] == 'w',
        .executable = permissions[2] == 'x',
    };
    return elf_file_bias(file, &mapping, ret);
}

static void test_bias(void **state)
{
    (void)state;
    struct elf_image image;
    elf_image_make(&image, &PLAN);
    AUTO_ELF file = open_image(&image);
    const uint64_t load = 0x7f0000000000;
    const struct {
        uint64_t at, offset;
        const char *permissions;
    } mappings[] = {
        { 0, 0, "r--" },
        { 0x1000, 0x1000, "r-x" },
        { 0x3000, 0x2000, "rw-" },
        { 0x3000, 0x2000, "r--" }, /* read-only after relocation */
    };
    for (size_t i = 0; i < 4; i++) {
        remote_addr bias = 1;
        assert_int_equal(bias_of(file, load + mappings[i].at, mappings[i].offset,
                                 mappings[i].permissions, &bias),
                         0);
        assert_int_equal(bias, load - ELF_IMAGE_BASE);
    }
    remote_addr bias;
    assert_int_equal(bias_of(file, load, 0x3000, "r--", &bias), -ENOENT);
    assert_int_equal(bias_of(file, load, 0x1000, "rw-", &bias), -ENOENT);
}

static void test_bias_of_fixed_address(void **state)
{
    (void)state;
    struct elf_plan plan = PLAN;
    struct elf_image image;
    remote_addr bias = 1;
    plan.fixed_address = 0x400000;
    elf_image_make(&image, &plan);
    AUTO_ELF file = open_image(&image);
    assert_int_equal(bias_of(file, 0x403000, 0x2000, "rw-", &bias), 0);
    assert_int_equal(bias, 0);
}

/* Text ends and data begin in one page of the file, which is then mapped twice. */
static void test_bias_of_shared_page(void **state)
{
    (void)state;
    struct elf_image image;
    elf_image_make(&image, &PLAN);
    Elf64_Phdr *segments = (Elf64_Phdr *)(image.bytes + sizeof(Elf64_Ehdr));
    segments[1].p_filesz = segments[1].p_memsz = 0x1800;
    segments[2].p_offset += 0x800;
    segments[2].p_vaddr += 0x800;
    AUTO_ELF file = open_image(&image);
    const uint64_t load = 0x7f0000000000;
    remote_addr bias = 0;
    assert_int_equal(bias_of(file, load + 0x2000, 0x2000, "r-x", &bias), 0);
    assert_int_equal(bias, load - ELF_IMAGE_BASE);
    assert_int_equal(bias_of(file, load + 0x3000, 0x2000, "rw-", &bias), 0);
    assert_int_equal(bias, load - ELF_IMAGE_BASE);
    assert_int_equal(bias_of(file, load + 0x3000, 0x2000, "r--", &bias), 0);
    assert_int_equal(bias, load - ELF_IMAGE_BASE);
}

static void test_not_for_us(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
    } changes[] = {
        { EI_MAG1, 'e' },
        { EI_CLASS, ELFCLASS32 },
        { EI_DATA, ELFDATA2MSB },
        { offsetof(Elf64_Ehdr, e_phentsize), 55 },
        { offsetof(Elf64_Ehdr, e_phoff) + 6, 0xff },
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct elf_image image;
        struct elf_file *file = NULL;
        elf_image_make(&image, &PLAN);
        image.bytes[changes[i].at] = changes[i].byte;
        assert_int_equal(elf_file_open_bytes(image.bytes, sizeof image.bytes, &file), -EBADMSG);
        assert_null(file);
    }
}

/* Whatever the length, each answer is the right one or none. */
static void test_cut_short(void **state)
{
    (void)state;
    static struct elf_image image;
    elf_image_make(&image, &PLAN);
    int opened = 0, found = 0;
    for (size_t size = 0; size <= sizeof image.bytes; size += 8) {
        AUTO_FREE void *bytes = malloc(size ? size : 1); /* its own block, for the sanitizer */
        AUTO_ELF file = NULL;
        uint64_t value = 0, length;
        memcpy(bytes, image.bytes, size);
        if (elf_file_open_bytes(bytes, size, &file) < 0)
            continue;
        opened++;
        if (elf_file_find_exported(file, "_PyRuntime", &value, &length) == 0) {
            assert_int_equal(value, ELF_IMAGE_BASE + 0x3200);
            found++;
        }
        if (elf_file_find_symbol(file, "hidden", &value, &length) == 0)
            assert_int_equal(value, ELF_IMAGE_BASE + 0x3400);
        if (elf_file_find_section(file, ".PyRuntime", &value, &length) == 0)
            assert_int_equal(value, ELF_IMAGE_BASE + 0x3200);
    }
    assert_true(opened > found && found > 0);
}

static void test_cut_short_while_open(void **state)
{
    (void)state;
    static struct elf_image image;
    uint64_t value, size;
    elf_image_make(&image, &PLAN);
    AUTO_CLOSE int fd = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(write(fd, image.bytes, sizeof image.bytes), sizeof image.bytes);
    AUTO_ELF file = NULL;
    assert_int_equal(elf_file_open_fd(fd, &file), 0);
    assert_int_equal(elf_file_find_symbol(file, "hidden", &value, &size), 0);
    assert_int_equal(ftruncate(fd, 0x180), 0);
    assert_int_equal(elf_file_find_symbol(file, "hidden", &value, &size), -ENOENT);
    assert_int_equal(elf_file_find_exported(file, "_PyRuntime", &value, &size), -ENOENT);
}

static void test_endless_chains_end(void **state)
{
    (void)state;
    struct elf_plan plan = PLAN;
    struct elf_image image;
    uint64_t value, size;
    plan.hash = HASH_SYSV;
    elf_image_make(&image, &plan);
    uint32_t *table = (uint32_t *)(image.bytes + IMAGE_SYSV_HASH);
    for (uint32_t i = 2; i < 5; i++)
        table[i] = 1;
    table[5 + 1] = 1;
    AUTO_ELF file = open_image(&image);
    assert_int_equal(elf_file_find_exported(file, "_PyRuntime", &value, &size), -ENOENT);
}

/* ---- the live oracle: the loader knows where it put things ---- */

static uint64_t address_of(const void *inside, const char *symbol)
{
    AUTO_CLOSE int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(maps_done) struct maps maps = { 0 };
    AUTO_ELF file = NULL;
    remote_addr bias = 0;
    uint64_t value = 0, size;
    assert_int_equal(maps_read(self, &maps), 0);
    const struct mapping *mapping = maps_find(&maps, (uintptr_t)inside);
    assert_non_null(mapping);
    assert_int_equal(elf_file_open_mapping(self, mapping, &file), 0);
    assert_int_equal(elf_file_bias(file, mapping, &bias), 0);
    assert_int_equal(elf_file_find_symbol(file, symbol, &value, &size), 0);
    return bias + value;
}

static int own_data = 1;

static void test_own_objects(void **state)
{
    (void)state;
    void *library = dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
    assert_non_null(library);
    assert_int_equal(address_of(library, "_cmocka_run_group_tests"), (uintptr_t)library);
    assert_int_equal(address_of(library, "_expect_any"),
                     (uintptr_t)dlsym(RTLD_DEFAULT, "_expect_any"));
    assert_int_equal(address_of(test_own_objects, "own_data"), (uintptr_t)&own_data);
    assert_int_equal(address_of(&own_data, "test_own_objects"), (uintptr_t)test_own_objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exported_by_each_hash),
        cmocka_unit_test(test_exported_without_sections),
        cmocka_unit_test(test_without_hash_nothing_is_exported),
        cmocka_unit_test(test_needed),
        cmocka_unit_test(test_symtab),
        cmocka_unit_test(test_section),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_bias_of_fixed_address),
        cmocka_unit_test(test_bias_of_shared_page),
        cmocka_unit_test(test_not_for_us),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_cut_short_while_open),
        cmocka_unit_test(test_endless_chains_end),
        cmocka_unit_test(test_own_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
