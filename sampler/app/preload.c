#define _GNU_SOURCE 1 /* environ */

#include "sampler/app/preload.h"

#include "sampler/base/cleanup.h"
#include "symbols/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static const char variable[] = "LD_PRELOAD=";

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

enum { SCRIPTS_MAX = 4 }; /* as many as the kernel follows: BINPRM_MAX_RECURSION, fs/exec.c */

/* ---- the environment ---- */

char **preload_environment(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    bool any = others && *others;
    size_t count = 0, at = 0;
    while (environ[count])
        count++;
    size_t text_size = sizeof variable + strlen(library) + 1 + (any ? strlen(others) : 0);
    char **list = malloc((count + 2) * sizeof *list + text_size);
    if (!list)
        return NULL;
    char *text = (char *)(list + count + 2);
    snprintf(text, text_size, "%s%s%s%s", variable, library, any ? ":" : "", any ? others : "");
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], variable, strlen(variable)) != 0)
            list[at++] = environ[i];
    list[at++] = text;
    list[at] = NULL;
    return list;
}

/* ---- who takes it ---- */

/* What a script's first line runs. Cut off at the first blank; false: it is no script. */
static bool script_interpreter(int fd, char *into, size_t size)
{
    char line[PATH_MAX];
    ssize_t length = pread(fd, line, sizeof line - 1, 0);
    if (length < 3 || memcmp(line, "#!", 2) != 0)
        return false;
    line[length] = '\0';
    const char *from = line + 2 + strspn(line + 2, " \t");
    snprintf(into, size, "%.*s", (int)strcspn(from, " \t\n"), from);
    return *into;
}

static int program_open(const char *path)
{
    char script[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < SCRIPTS_MAX && fd >= 0 && script_interpreter(fd, script, sizeof script);
         i++) {
        close(fd);
        fd = open(script, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

static bool header_read(int fd, Elf64_Ehdr *ret)
{
    return pread(fd, ret, sizeof *ret, 0) == sizeof *ret &&
           memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0;
}

static bool loader_read(int fd, const Elf64_Ehdr *header, char *into, size_t size)
{
    Elf64_Phdr part;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        off_t at = (off_t)(header->e_phoff + i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != sizeof part)
            return false;
        if (part.p_type != PT_INTERP)
            continue;
        size_t length = part.p_filesz < size ? (size_t)part.p_filesz : size - 1;
        ssize_t got = pread(fd, into, length, (off_t)part.p_offset);
        into[got > 0 ? got : 0] = '\0';
        return got > 0;
    }
    return false;
}

/* A static program takes no library and does not mind; its children may take it. */
static const char *loader_refusal(int fd, const Elf64_Ehdr *header)
{
    char loader[PATH_MAX];
    if (!loader_read(fd, header, loader, sizeof loader))
        return NULL;
    const char *slash = strrchr(loader, '/');
    return strncmp(slash ? slash + 1 : loader, "ld-linux", strlen("ld-linux")) == 0
               ? NULL
               : "the command's C library is another one";
}

/* AddressSanitizer's runtime as a library, of GCC and of clang. It ends a program in which another
 * library comes before it, unless it is told not to look; behind it ours makes the program hang. */
static bool is_sanitized(int fd)
{
    static const char *const names[] = { "libasan.so", "libclang_rt.asan" };
    const char *others = getenv("LD_PRELOAD"), *settings = getenv("ASAN_OPTIONS");
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    if (settings && strstr(settings, "verify_asan_link_order=0"))
        return false;
    bool is_read = elf_file_open_fd(fd, &file) == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((others && strstr(others, names[i])) || (is_read && elf_file_needs(file, names[i])))
            return true;
    return false;
}

/* chroot(1): all of its options are one word. */
static const char *root_of(char *const *argv)
{
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash ? slash + 1 : argv[0], "chroot") != 0)
        return NULL;
    while (*++argv)
        if (**argv != '-')
            return *argv;
    return NULL;
}

static bool is_set_user(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && (stat.st_mode & (S_ISUID | S_ISGID)) && geteuid() != 0;
}

const char *preload_refusal(const char *path, char *const *argv, const char *library)
{
    char inside[PATH_MAX];
    Elf64_Ehdr header, ours;
    AUTO_CLOSE int fd = program_open(path);
    AUTO_CLOSE int library_fd = open(library, O_RDONLY | O_CLOEXEC);
    if (root_of(argv)) {
        snprintf(inside, sizeof inside, "%s%s", root_of(argv), library);
        if (access(inside, R_OK) < 0)
            return "the command goes into a root folder from which the shim cannot be seen";
    }
    if (fd < 0 || library_fd < 0 || !header_read(fd, &header) || !header_read(library_fd, &ours))
        return NULL;
    if (header.e_ident[EI_CLASS] != ours.e_ident[EI_CLASS] || header.e_machine != ours.e_machine)
        return "the command is made for another architecture";
    if (is_set_user(fd))
        return "the command changes its user, and the loader does not bring libraries along then";
    if (is_sanitized(fd))
        return "AddressSanitizer ends a program in which another library comes before its own";
    return loader_refusal(fd, &header);
}
