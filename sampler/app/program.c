#include "sampler/app/program.h"

#include "output/model/source_path.h"
#include "sampler/base/cleanup.h"

#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Interpreter options whose value is the next word. */
static bool option_has_value(const char *word)
{
    return strcmp(word, "-W") == 0 || strcmp(word, "-X") == 0 ||
           strcmp(word, "--check-hash-based-pycs") == 0;
}

static bool is_python(const char *const *argv)
{
    return argv[0] && strncmp(base_name(argv[0]), "python", 6) == 0;
}

/* The first word behind the interpreter that is no option; NULL for -m, -c and the prompt. */
static const char *script_word(const char *const *argv)
{
    if (!argv[0])
        return NULL;
    if (!is_python(argv))
        return strstr(argv[0], ".py") ? argv[0] : NULL;
    for (size_t i = 1; argv[i]; i++) {
        if (strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "-") == 0)
            return NULL;
        if (argv[i][0] != '-')
            return argv[i];
        i += option_has_value(argv[i]) && argv[i + 1];
    }
    return NULL;
}

void program_find(const char *const *argv, const char *cwd, struct program *ret)
{
    *ret = (struct program){ "", "" };
    const char *script = script_word(argv);
    if (!script) {
        snprintf(ret->folder, sizeof ret->folder, "%s", is_python(argv) ? cwd : "");
        return;
    }
    source_path_write(script, cwd, ret->path, sizeof ret->path);
    memcpy(ret->folder, ret->path, sizeof ret->folder);
    char *slash = strrchr(ret->folder, '/');
    if (slash)
        slash[slash == ret->folder] = '\0';
}

static const char mark[] = "@profile";

static bool file_is_marked(const char *path)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    while (file && getline(&line, &size, file) >= 0)
        if (strncmp(line + strspn(line, " \t"), mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

bool program_is_marked(const struct program *program, const char *const *argv)
{
    if (*program->path)
        return file_is_marked(program->path);
    for (size_t i = 0; argv[i]; i++)
        if (strstr(argv[i], mark))
            return true;
    return false;
}
