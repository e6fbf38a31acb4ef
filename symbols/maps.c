/*
 * Parses /proc/PID/maps. The text is untrusted: a line that does not make sense, or that goes back
 * in address, is left out, so that whoever uses the list may rely on its order.
 */
#include "symbols/maps.h"

#include "sampler/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { FIRST_TEXT_SIZE = 64 * 1024 };

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return 99;
}

static bool take_number(char **cursor, unsigned base, uint64_t *ret)
{
    uint64_t value = 0;
    char *from = *cursor;
    for (; digit_value(**cursor) < (int)base; (*cursor)++) {
        unsigned digit = (unsigned)digit_value(**cursor);
        if (value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *ret = value;
    return *cursor > from;
}

static bool take_char(char **cursor, char wanted)
{
    if (**cursor != wanted)
        return false;
    (*cursor)++;
    return true;
}

static bool take_flag(char **cursor, char letter, bool *ret)
{
    *ret = **cursor == letter;
    return *ret ? take_char(cursor, letter) : take_char(cursor, '-');
}

static bool take_permissions(char **cursor, struct mapping *mapping)
{
    return take_flag(cursor, 'r', &mapping->readable) &&
           take_flag(cursor, 'w', &mapping->writable) &&
           take_flag(cursor, 'x', &mapping->executable) &&
           (take_char(cursor, 'p') || take_char(cursor, 's'));
}

/* The kernel writes a newline in a path as \012 and escapes nothing else (fs/proc/task_mmu.c). */
static void path_unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        bool newline = strncmp(from, "\\012", 4) == 0;
        *to = newline ? '\n' : *from;
        from += newline ? 4 : 1;
    }
    *to = '\0';
}

bool path_cut_deleted(char *path)
{
    static const char suffix[] = " (deleted)";
    size_t length = strlen(path);
    if (length < sizeof suffix || strcmp(path + length - (sizeof suffix - 1), suffix) != 0)
        return false;
    path[length - (sizeof suffix - 1)] = '\0';
    return true;
}

static bool line_parse(char *line, struct mapping *ret)
{
    struct mapping mapping = { 0 };
    uint64_t major_number, minor_number, inode;
    bool sound = take_number(&line, 16, &mapping.start) && take_char(&line, '-') &&
                 take_number(&line, 16, &mapping.end) && take_char(&line, ' ') &&
                 take_permissions(&line, &mapping) && take_char(&line, ' ') &&
                 take_number(&line, 16, &mapping.file_offset) && take_char(&line, ' ') &&
                 take_number(&line, 16, &major_number) && take_char(&line, ':') &&
                 take_number(&line, 16, &minor_number) && take_char(&line, ' ') &&
                 take_number(&line, 10, &inode) && (*line == ' ' || *line == '\0');
    if (!sound || mapping.start >= mapping.end)
        return false;
    while (*line == ' ')
        line++;
    mapping.device = makedev((unsigned)major_number, (unsigned)minor_number);
    mapping.inode = inode;
    path_unescape(line);
    mapping.deleted = path_cut_deleted(line);
    mapping.path = line;
    *ret = mapping;
    return true;
}

static size_t count_lines(const char *text, size_t size)
{
    size_t lines = 1;
    for (const char *end = text + size; (text = memchr(text, '\n', (size_t)(end - text))); text++)
        lines++;
    return lines;
}

/* Takes `text` over, which has room for a NUL at text[size]. */
static int maps_adopt(char *text, size_t size, struct maps *ret)
{
    AUTO_FREE char *owned = text;
    AUTO_FREE struct mapping *list = calloc(count_lines(text, size), sizeof *list);
    if (!list)
        return -ENOMEM;

    size_t count = 0;
    text[size] = '\0';
    for (char *line = text, *next; line <= text + size; line = next) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end)
            end = text + size;
        *end = '\0';
        next = end + 1;
        if (line_parse(line, &list[count]) &&
            (count == 0 || list[count].start >= list[count - 1].end))
            count++;
    }
    ret->text = TAKE_PTR(owned);
    ret->list = TAKE_PTR(list);
    ret->count = count;
    return 0;
}

int maps_parse(const char *text, size_t size, struct maps *ret)
{
    char *copy = malloc(size + 1);
    if (!copy)
        return -ENOMEM;
    if (size)
        memcpy(copy, text, size);
    return maps_adopt(copy, size, ret);
}

static int text_grow(char **text, size_t *capacity)
{
    size_t wanted = *capacity ? *capacity * 2 : FIRST_TEXT_SIZE;
    char *bigger = realloc(*text, wanted);
    if (!bigger)
        return -ENOMEM;
    *text = bigger;
    *capacity = wanted;
    return 0;
}

int maps_read(int proc_fd, struct maps *ret)
{
    AUTO_CLOSE int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
    AUTO_FREE char *text = NULL;
    size_t used = 0, capacity = 0;
    ssize_t got = fd < 0 ? -1 : 1;

    while (got > 0) {
        if (used + 1 >= capacity && text_grow(&text, &capacity) < 0)
            return -ENOMEM;
        got = read(fd, text + used, capacity - used - 1);
        if (got > 0)
            used += (size_t)got;
    }
    if (got < 0)
        return errno == EACCES || errno == EPERM ? -EPERM : errno == ENOMEM ? -ENOMEM : -ESRCH;
    return maps_adopt(TAKE_PTR(text), used, ret);
}

void maps_done(struct maps *maps)
{
    if (!maps)
        return;
    free(maps->list);
    free(maps->text);
    *maps = (struct maps){ 0 };
}

const struct mapping *maps_find(const struct maps *maps, remote_addr address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mapping *mapping = &maps->list[middle];
        if (address < mapping->start)
            high = middle;
        else if (address >= mapping->end)
            low = middle + 1;
        else
            return mapping;
    }
    return NULL;
}
