/* What a launched command is given to load: the environment, who would not take the library, and
 * the folder in which it lies. */
#define _GNU_SOURCE 1 /* memfd_create, environ */

#include "sampler/app/preload.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/elf_image.h"

static char *own_program(void)
{
    static char path[PATH_MAX];
    assert_non_null(realpath("/proc/self/exe", path));
    return path;
}

/* ---- the environment ---- */

static const char *value_of(char *const *environment, const char *name, size_t *ret_count)
{
    const char *value = NULL;
    size_t length = strlen(name);
    *ret_count = 0;
    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) != 0 || (*environment)[length] != '=')
            continue;
        value = *environment + length + 1;
        ++*ret_count;
    }
    return value;
}

static void check_preload(const char *others, const char *wanted)
{
    size_t count;
    if (others)
        setenv("LD_PRELOAD", others, 1);
    else
        unsetenv("LD_PRELOAD");
    AUTO_FREE char **environment = preload_environment("/tmp/x.so");
    assert_non_null(environment);
    assert_string_equal(value_of(environment, "LD_PRELOAD", &count), wanted);
    assert_int_equal(count, 1);
    assert_string_equal(value_of(environment, "PATH", &count), getenv("PATH"));
    unsetenv("LD_PRELOAD");
    size_t at = 0; /* all the rest is ours, in its order */
    for (char **own = environ; *own; own++, at++)
        assert_ptr_equal(environment[at], *own);
    assert_null(environment[at + 1]);
}

static void test_environment(void **state)
{
    (void)state;
    check_preload(NULL, "/tmp/x.so");
    check_preload("", "/tmp/x.so");
    check_preload("/a.so b.so", "/tmp/x.so:/a.so b.so");
    assert_null(getenv("LD_PRELOAD"));
}

/* ---- who takes it ---- */

struct made_file {
    char path[64];
};

static void file_remove(struct made_file *file)
{
    unlink(file->path);
}

static void file_make(struct made_file *file, const void *bytes, size_t size, mode_t mode)
{
    strcpy(file->path, "/tmp/test-preload-XXXXXX");
    AUTO_CLOSE int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
}

#define MADE_FILE struct made_file CLEANUP(file_remove)

static const char *refusal_of(const char *path)
{
    char *argv[] = { (char *)path, NULL };
    return preload_refusal(path, argv, own_program());
}

/* An ELF file that is nothing but its head, one part, and the name of its loader. */
static void elf_make(struct made_file *file, uint16_t machine, const char *loader)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr part;
        char loader[64];
    } image = { 0 };
    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    image.header.e_machine = machine;
    image.header.e_phoff = sizeof image.header;
    image.header.e_phnum = 1;
    image.part.p_type = loader ? PT_INTERP : PT_LOAD;
    image.part.p_offset = sizeof image.header + sizeof image.part;
    image.part.p_filesz = loader ? strlen(loader) + 1 : 0;
    snprintf(image.loader, sizeof image.loader, "%s", loader ? loader : "");
    file_make(file, &image, sizeof image, 0755);
}

static uint16_t own_machine(void)
{
    Elf64_Ehdr header;
    AUTO_CLOSE int fd = open(own_program(), O_RDONLY);
    assert_int_equal(read(fd, &header, sizeof header), sizeof header);
    return header.e_machine;
}

static void check_elf(uint16_t machine, const char *loader, const char *wanted)
{
    MADE_FILE file;
    char text[128];
    elf_make(&file, machine, loader);
    MADE_FILE script;
    snprintf(text, sizeof text, "#! %s -x\n", file.path);
    file_make(&script, text, strlen(text), 0755);
    const char *refusals[] = { refusal_of(file.path), refusal_of(script.path) };
    for (size_t i = 0; i < 2; i++) {
        if (!wanted)
            assert_null(refusals[i]);
        else if (!refusals[i] || !strstr(refusals[i], wanted))
            fail_msg("%s instead of %s", refusals[i] ? refusals[i] : "nothing", wanted);
    }
}

static void test_who_takes_it(void **state)
{
    (void)state;
    assert_null(refusal_of("/bin/sh")); /* we may have a sanitizer ourselves */
    assert_null(refusal_of("/there/is/none"));
    check_elf(own_machine(), "/lib64/ld-linux-x86-64.so.2", NULL);
    check_elf(own_machine(), NULL, NULL); /* static: what it starts may be another matter */
    check_elf(own_machine(), "/lib/ld-musl-x86_64.so.1", "C library");
    check_elf(own_machine() + 1, "/lib64/ld-linux-x86-64.so.2", "architecture");
    check_elf(own_machine(), "", "C library");
}

static void check_needed(const char *needed, const char *settings, const char *wanted)
{
    MADE_FILE file;
    struct elf_image image;
    const struct elf_plan plan = { .needed = needed };
    elf_image_make(&image, &plan);
    ((Elf64_Ehdr *)image.bytes)->e_machine = own_machine();
    file_make(&file, image.bytes, sizeof image.bytes, 0755);
    setenv("ASAN_OPTIONS", settings, 1);
    const char *refusal = refusal_of(file.path);
    unsetenv("ASAN_OPTIONS");
    if (wanted)
        assert_non_null(strstr(refusal ? refusal : "", wanted));
    else
        assert_null(refusal);
}

static void test_sanitizers(void **state)
{
    (void)state;
    check_needed("libm.so.6", "", NULL);
    check_needed("liblsan.so.0", "", NULL); /* nor do others look at who comes first */
    check_needed("libasan.so.8", "", "AddressSanitizer");
    check_needed("libclang_rt.asan-x86_64.so", "detect_leaks=0", "AddressSanitizer");
    check_needed("libasan.so.8", "detect_leaks=0:verify_asan_link_order=0", NULL);
    setenv("LD_PRELOAD", "libm.so.6 /usr/lib/libasan.so.8", 1);
    check_needed("libm.so.6", "", "AddressSanitizer");
    unsetenv("LD_PRELOAD");
}

static void test_scripts_in_a_circle(void **state)
{
    (void)state;
    MADE_FILE script;
    char text[128];
    file_make(&script, "", 0, 0755);
    snprintf(text, sizeof text, "#!%s\n", script.path);
    AUTO_CLOSE int fd = open(script.path, O_WRONLY);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_null(refusal_of(script.path));
}

static void test_another_root(void **state)
{
    (void)state;
    char *elsewhere[] = { (char *)"/usr/sbin/chroot", (char *)"--userspec=0", (char *)"/proc",
                          (char *)"python3", NULL };
    char *here[] = { (char *)"chroot", (char *)"/", (char *)"python3", NULL };
    assert_non_null(strstr(preload_refusal("/usr/sbin/chroot", elsewhere, own_program()), "root"));
    assert_null(preload_refusal("/usr/sbin/chroot", here, own_program()));
}

/* ---- the folder ---- */

static struct shim_folder *folder_open(int ring_fd)
{
    struct shim_folder *folder;
    struct failure why = { 0 };
    if (shim_folder_open(own_program(), ring_fd, &folder, &why))
        fail_msg("%s", why.text);
    return folder;
}

/* The name of what lies beside the library. */
static void beside(const struct shim_folder *folder, const char *name, char *into, size_t size)
{
    const char *library = shim_folder_library(folder);
    snprintf(into, size, "%.*s%s", (int)(strrchr(library, '/') + 1 - library), library, name);
}

static void test_folder(void **state)
{
    (void)state;
    char ring[PATH_MAX], parent[PATH_MAX];
    struct stat stat_buffer, other;
    AUTO_CLOSE int fd = memfd_create("ring", MFD_CLOEXEC);
    struct shim_folder *folder = folder_open(fd);
    beside(folder, "ring", ring, sizeof ring);
    beside(folder, "", parent, sizeof parent);
    assert_int_equal(stat(ring, &stat_buffer), 0);
    assert_int_equal(fstat(fd, &other), 0);
    assert_int_equal(stat_buffer.st_ino, other.st_ino);
    assert_int_equal(access(shim_folder_library(folder), R_OK | X_OK), 0);
    assert_int_equal(stat(parent, &stat_buffer), 0);
    assert_int_equal(stat_buffer.st_mode & 0777, 0711);
    assert_int_equal(stat_buffer.st_uid, geteuid());
    shim_folder_close(folder, false);
    assert_int_equal(stat(parent, &stat_buffer), -1);
}

/* As Debian, Fedora and all others have it; the literal name is no file for who expands nothing. */
static void test_name_for_the_loader(void **state)
{
    (void)state;
    static const char *const places[] = { "", "lib/", "lib64/", "lib/x86_64-linux-gnu/",
                                          "lib/aarch64-linux-gnu/" };
    char name[128], file[PATH_MAX], wanted[PATH_MAX];
    AUTO_CLOSE int fd = memfd_create("ring", MFD_CLOEXEC);
    struct shim_folder *folder = folder_open(fd);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(name, sizeof name, "%slibscalene_shim.so", places[i]);
        beside(folder, name, file, sizeof file);
        assert_int_equal(access(file, R_OK | X_OK), 0);
        snprintf(name, sizeof name, "%sring", places[i]);
        beside(folder, name, file, sizeof file);
        assert_int_equal(access(file, R_OK), 0);
    }
    beside(folder, "$LIB/libscalene_shim.so", wanted, sizeof wanted);
    assert_string_equal(shim_folder_preload(folder), wanted);
    assert_int_equal(access(wanted, F_OK), -1);
    shim_folder_close(folder, false);
}

/* What the loader does not find so it is told plainly: it would not take this at all. */
static void test_name_that_is_not_found(void **state)
{
    (void)state;
    MADE_FILE text;
    struct shim_folder *folder;
    struct failure why = { 0 };
    AUTO_CLOSE int fd = memfd_create("ring", MFD_CLOEXEC);
    file_make(&text, "no library", 10, 0755);
    assert_int_equal(shim_folder_open(text.path, fd, &folder, &why), 0);
    assert_string_equal(shim_folder_preload(folder), shim_folder_library(folder));
    shim_folder_close(folder, false);
}

static void test_folder_that_is_used(void **state)
{
    (void)state;
    char ring[PATH_MAX], library[PATH_MAX], parent[PATH_MAX];
    AUTO_CLOSE int fd = memfd_create("ring", MFD_CLOEXEC);
    struct shim_folder *folder = folder_open(fd);
    beside(folder, "ring", ring, sizeof ring);
    beside(folder, "", parent, sizeof parent);
    snprintf(library, sizeof library, "%s", shim_folder_library(folder));

    /* somebody's environment names it */
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = { (char *)"cat", NULL }, *environment[] = { library, NULL };
        dup2(gate[0], 0);
        close(gate[1]);
        execve("/bin/cat", argv, environment);
        _exit(1);
    }
    close(gate[0]);
    char comm[64] = "", path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", child);
    while (strcmp(comm, "cat\n") != 0) {
        AUTO_FCLOSE FILE *from = fopen(path, "re");
        assert_non_null(from);
        assert_non_null(fgets(comm, sizeof comm, from));
    }
    shim_folder_close(folder, true);
    assert_int_equal(access(library, F_OK), 0);
    assert_int_equal(faccessat(AT_FDCWD, ring, F_OK, AT_SYMLINK_NOFOLLOW), -1);
    shim_folder_close(folder_open(fd), false); /* another run leaves it alone … */
    assert_int_equal(access(library, F_OK), 0);
    close(gate[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    shim_folder_close(folder_open(fd), false); /* … until nobody knows it */
    assert_int_equal(access(parent, F_OK), -1);
}

static void test_folder_of_the_living(void **state)
{
    (void)state;
    AUTO_CLOSE int fd = memfd_create("ring", MFD_CLOEXEC);
    struct shim_folder *one = folder_open(fd);
    struct shim_folder *other = folder_open(fd);
    assert_int_equal(access(shim_folder_library(one), F_OK), 0);
    shim_folder_close(one, false);
    assert_int_equal(access(shim_folder_library(other), F_OK), 0);
    shim_folder_close(other, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),         cmocka_unit_test(test_who_takes_it),
        cmocka_unit_test(test_sanitizers),          cmocka_unit_test(test_scripts_in_a_circle),
        cmocka_unit_test(test_another_root),        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_name_for_the_loader), cmocka_unit_test(test_name_that_is_not_found),
        cmocka_unit_test(test_folder_that_is_used), cmocka_unit_test(test_folder_of_the_living),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
