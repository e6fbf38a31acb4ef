#include "sampler/app/program.h"

#include "output/model/source_path.h"
#include "sampler/base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

enum option_kind {
    OPTION_ALONE,
    OPTION_WITH_VALUE, /* which is the next word */
    OPTION_MODULE,     /* here and below there is no script, */
    OPTION_CODE,
    OPTION_INPUT,
};

/* One word may hold several of one letter, and the value of the last: -Im, -mMODULE, -Werror. */
static enum option_kind option_read(const char *word)
{
    if (strcmp(word, "--check-hash-based-pycs") == 0)
        return OPTION_WITH_VALUE;
    if (word[1] == '-')
        return OPTION_ALONE;
    size_t plain = strcspn(word + 1, "mcWX");
    char last = word[1 + plain];
    if (!word[1])
        return OPTION_INPUT;
    if (last == 'm' || last == 'c')
        return last == 'm' ? OPTION_MODULE : OPTION_CODE;
    return last && !word[2 + plain] ? OPTION_WITH_VALUE : OPTION_ALONE;
}

static bool is_python(const char *const *argv)
{
    return argv[0] && strncmp(base_name(argv[0]), "python", 6) == 0;
}

/* Where the interpreter's own options end: at the script, at -m, -c or -, or where all ends. */
static size_t options_end(const char *const *argv)
{
    size_t i = 1;
    for (; argv[i] && argv[i][0] == '-'; i++) {
        enum option_kind kind = option_read(argv[i]);
        if (kind >= OPTION_MODULE)
            break;
        i += kind == OPTION_WITH_VALUE && argv[i + 1];
    }
    return i;
}

/* The first word behind the interpreter that is no option; NULL for -m, -c and the prompt. */
static const char *script_word(const char *const *argv)
{
    if (!argv[0])
        return NULL;
    if (!is_python(argv))
        return ends_with(argv[0], ".py") ? argv[0] : NULL;
    const char *word = argv[options_end(argv)];
    return word && word[0] != '-' ? word : NULL;
}

/* Does the letter end the word? What it is for is the next word then. */
static bool value_is_apart(const char *word)
{
    return !word[2 + strcspn(word + 1, "mc")];
}

const char *const *program_arguments(const char *const *argv, const char **ret_first)
{
    size_t at = is_python(argv) ? options_end(argv) : 0;
    const char *word = argv[at];
    *ret_first = word ?: "";
    if (!word)
        return argv + at;
    enum option_kind kind = at && word[0] == '-' ? option_read(word) : OPTION_ALONE;
    if (kind < OPTION_MODULE || kind == OPTION_INPUT)
        return argv + at + 1;
    *ret_first = kind == OPTION_CODE ? "-c" : "";
    return argv + at + 1 + (value_is_apart(word) && argv[at + 1]);
}

/* pytest, gunicorn and their like stand with the interpreter and run code from anywhere, and what
 * is compiled already bears the names of files that were elsewhere. */
static bool tells_no_folder(const char *path, const char *folder)
{
    return ends_with(path, ".pyc") || (ends_with(folder, "/bin") && !ends_with(path, ".py"));
}

void program_find(const char *const *argv, const char *cwd, struct program *ret)
{
    *ret = (struct program){ .is_python = is_python(argv) };
    const char *word = ret->is_python ? argv[options_end(argv)] : NULL;
    ret->is_module = word && word[0] == '-' && option_read(word) == OPTION_MODULE;
    const char *script = script_word(argv);
    if (!script) {
        snprintf(ret->folder, sizeof ret->folder, "%s", ret->is_python ? cwd : "");
        return;
    }
    source_path_write(script, cwd, ret->path, sizeof ret->path);
    memcpy(ret->folder, ret->path, sizeof ret->folder);
    char *slash = strrchr(ret->folder, '/');
    if (slash)
        slash[slash == ret->folder] = '\0';
    if (tells_no_folder(ret->path, ret->folder))
        ret->folder[0] = '\0';
}

enum { ENTRIES_MOST = 2000 }; /* that are looked through, some milliseconds */

static const char mark[] = "@profile";

/* What cannot be read may be. */
static bool file_may_be_marked(const char *path)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    struct stat status;
    if (stat(path, &status) || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return true; /* what goes through a pipe is not ours to read */
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file)
        return true;
    while (getline(&line, &size, file) >= 0)
        if (strncmp(line + strspn(line, " \t"), mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

/* Is there a mark below the folder, or more than can be looked through? */
static bool folder_may_be_marked(const char *path, unsigned *left)
{
    AUTO_CLOSEDIR DIR *folder = opendir(path);
    struct dirent *entry;
    char inner[4096];
    bool may_be = !folder && errno == EACCES;
    while (folder && !may_be && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        bool fits = *left && length < (int)sizeof inner;
        *left -= fits;
        if (!fits)
            may_be = true;
        else if (ends_with(entry->d_name, ".py"))
            may_be = file_may_be_marked(inner);
        else if (entry->d_type != DT_REG)
            may_be =
                strcmp(entry->d_name, "site-packages") != 0 && folder_may_be_marked(inner, left);
    }
    return may_be;
}

bool program_may_be_marked(const struct program *program, const char *const *argv)
{
    unsigned left = ENTRIES_MOST;
    if (*program->path && file_may_be_marked(program->path))
        return true;
    for (size_t i = 0; argv[i]; i++)
        if (strstr(argv[i], mark))
            return true;
    return !*program->folder || folder_may_be_marked(program->folder, &left);
}
