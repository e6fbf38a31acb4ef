#include "sampler/target/proc_file.h"

#include "sampler/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

static int proc_errno(int error)
{
    switch (error) {
    case ENOENT:
        return -ESRCH;
    case EACCES:
        return -EPERM;
    default:
        return -error;
    }
}

int proc_read_file(int directory, const char *path, char *into, size_t size)
{
    AUTO_CLOSE int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return proc_errno(errno);

    size_t done = 0;
    while (done < size - 1) {
        ssize_t got = read(fd, into + done, size - 1 - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return proc_errno(errno);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    into[done] = '\0';
    return (int)done;
}

int proc_parse_stat(const char *text, struct proc_stat *ret)
{
    /* The numbers follow the last bracket: a command can hold brackets, numbers cannot. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2])
        return -EBADMSG;

    enum { FIRST = 4, LAST = 39 };
    uint64_t fields[LAST + 1];
    struct proc_stat stat = { .state = at[2] };
    at += 3;
    for (int i = FIRST; i <= LAST; i++) {
        char *end;
        fields[i] = strtoull(at, &end, 10);
        if (end == at)
            return -EBADMSG;
        at = end;
    }
    stat.parent = (pid_t)fields[4];
    stat.group = (pid_t)fields[5];
    stat.session = (pid_t)fields[6];
    stat.flags = fields[9];
    stat.children_ticks = fields[16] + fields[17];
    stat.threads = fields[20];
    stat.start_time = fields[22];
    stat.stack_start = fields[28];
    stat.core = (int)fields[39];
    *ret = stat;
    return 0;
}

int proc_read_stat(int directory, const char *path, struct proc_stat *ret)
{
    char text[1024];
    int length = proc_read_file(directory, path, text, sizeof text);
    return length < 0 ? length : proc_parse_stat(text, ret);
}

int proc_read_pid_stat(pid_t pid, struct proc_stat *ret)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return proc_read_stat(AT_FDCWD, path, ret);
}

const char *proc_find_field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, length) && line[length] == ':') {
            line += length + 1;
            return line + strspn(line, " \t");
        }
    }
    return NULL;
}

uint64_t proc_find_number(const char *text, const char *name, int base)
{
    const char *value = proc_find_field(text, name);
    return value ? strtoull(value, NULL, base) : 0;
}

int proc_find_inner_pid(const char *status, pid_t *ret)
{
    const char *at = proc_find_field(status, "NSpid");
    int count = 0;
    while (at && *at && *at != '\n') {
        char *end;
        long id = strtol(at, &end, 10);
        if (end == at)
            break;
        *ret = (pid_t)id;
        count++;
        at = end;
    }
    return count;
}

pid_t proc_parse_id(const char *entry)
{
    char *end;
    errno = 0;
    long id = strtol(entry, &end, 10);
    return entry[0] >= '1' && entry[0] <= '9' && !*end && !errno && id <= INT_MAX ? (pid_t)id : -1;
}
