#define _GNU_SOURCE 1 /* accept4, struct ucred */

#include "sampler/app/control.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/proc_file.h"
#include "sampler/target/process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    CLIENTS = 8, /* that have connected and not asked yet */
    NAME_SIZE = 32,
    WORDS_SIZE = 32,
    ANSWER_SECONDS = 30,
    INQUIRY_MS = 1000, /* for all that are asked whether they follow a process */
    ASKED = 256,
};

static const char name_end[] = ".sock";

struct control {
    pid_t target;
    int directory_fd, listening_fd, epoll_fd;
    char name[NAME_SIZE];
    int clients[CLIENTS]; /* -1: free */
};

struct answer {
    int32_t result;
    char text[CONTROL_ANSWER_SIZE];
};

static const char *const names[CONTROL_VERBS] = {
    [CONTROL_ON] = "on",           [CONTROL_OFF] = "off",
    [CONTROL_FLUSH] = "flush",     [CONTROL_STOP] = "stop",
    [CONTROL_STATUS] = "status",   [CONTROL_STATUS_JSON] = "status --json",
    [CONTROL_FOLLOWS] = "follows",
};

const char *control_verb_name(enum control_verb verb)
{
    return names[verb];
}

/* ---- where ---- */

static const char *const fallback_folder = "/tmp";

/* The places to look at, best first; a shell that was entered with su or sudo may know another
 * first one. */
static int folders_list(const char *ret[2])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int count = 0;
    if (runtime && runtime[0] == '/')
        ret[count++] = runtime;
    ret[count++] = fallback_folder;
    return count;
}

/* A descriptor; -ENOENT, or -EPERM for a directory that others could have put things into. */
static int directory_open(const char *folder, bool make, struct failure *why)
{
    char path[4096];
    struct stat stat;
    snprintf(path, sizeof path, "%s/scalene-attach-%u", folder, (unsigned)geteuid());
    if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return failure_set(why, -errno, "cannot make the folder %s: %s", path, strerror(errno));
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0)
        return failure_set(why, -errno, "cannot open the folder %s: %s", path, strerror(errno));
    if (stat.st_uid != geteuid() || (stat.st_mode & 077))
        return failure_set(why, -EPERM,
                           "the folder %s is not yours alone, so that others could steer your "
                           "profilers: remove it, or set XDG_RUNTIME_DIR to a folder of yours",
                           path);
    return TAKE_FD(fd);
}

static void name_write(pid_t target, char *into)
{
    snprintf(into, NAME_SIZE, "%d%s", target, name_end);
}

/* 0: no such name. */
static pid_t name_read(const char *name)
{
    char *end;
    long target = strtol(name, &end, 10);
    return strcmp(end, name_end) == 0 && target > 0 && target <= INT_MAX ? (pid_t)target : 0;
}

/* By way of the descriptor: the directory that was checked, and short however long its path is. */
static struct sockaddr_un address_of(int directory_fd, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory_fd, name);
    return address;
}

/* -ENOENT and -ECONNREFUSED: nobody listens; -EAGAIN: whoever listens does not accept. */
static int socket_connect(int directory_fd, const char *name, int flags)
{
    const struct sockaddr_un address = address_of(directory_fd, name);
    const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Wherever that target's profiler may listen: a descriptor, or what became of the last attempt. */
static int profiler_connect(pid_t target)
{
    char name[NAME_SIZE];
    const char *folders[2];
    int result = -ENOENT;
    name_write(target, name);
    for (int i = 0, count = folders_list(folders); i < count; i++) {
        AUTO_CLOSE int directory_fd = directory_open(folders[i], false, NULL);
        int fd = directory_fd < 0 ? -ENOENT : socket_connect(directory_fd, name, 0);
        if (fd >= 0 || fd == -EAGAIN)
            return fd;
        result = fd;
    }
    return result;
}

static pid_t peer_of(int fd)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
}

static void words_send(int fd, enum control_verb verb, pid_t target)
{
    char words[WORDS_SIZE];
    int length = snprintf(words, sizeof words, "%s %d", names[verb], target);
    send(fd, words, (size_t)length, MSG_NOSIGNAL);
}

static int already_watched(pid_t target, pid_t profiler, struct failure *why)
{
    return failure_set(why, -EBUSY,
                       "process %d is being profiled already, by process %d: end that with "
                       "scalene-attach stop --pid %d",
                       target, profiler, target);
}

/* ---- who follows it ---- */

/* Profilers that were asked and have not answered. */
struct inquiry {
    pid_t target;
    size_t count;
    struct pollfd fds[ASKED]; /* negative: it does not accept */
    pid_t roots[ASKED];       /* whose sockets these are */
};

struct follower {
    pid_t root;     /* 0: nobody follows it */
    pid_t profiler; /* 0: it has not answered */
};

static void inquiry_done(struct inquiry *inquiry)
{
    while (inquiry->count)
        cleanup_close(&inquiry->fds[--inquiry->count].fd);
}

/* Not ourselves, who would never answer, nor who has no number here and means others by theirs. */
static void profiler_ask(struct inquiry *inquiry, int directory_fd, const char *name, pid_t root)
{
    AUTO_CLOSE int fd = socket_connect(directory_fd, name, SOCK_NONBLOCK);
    pid_t profiler = fd < 0 ? 0 : peer_of(fd);
    if (fd != -EAGAIN && (!profiler || profiler == getpid()))
        return;
    if (fd >= 0)
        words_send(fd, CONTROL_FOLLOWS, inquiry->target);
    inquiry->roots[inquiry->count] = root;
    inquiry->fds[inquiry->count++] = (struct pollfd){ .fd = TAKE_FD(fd), .events = POLLIN };
}

static void folder_ask(struct inquiry *inquiry, const char *folder)
{
    AUTO_CLOSE int fd = directory_open(folder, false, NULL);
    AUTO_CLOSEDIR DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        return;
    int directory_fd = TAKE_FD(fd);
    for (struct dirent *entry; inquiry->count < ASKED && (entry = readdir(list));) {
        pid_t root = name_read(entry->d_name);
        if (root && root != inquiry->target)
            profiler_ask(inquiry, directory_fd, entry->d_name, root);
    }
}

/* Who says no, or ends, is not waited for any more. */
static struct follower answers_take(struct inquiry *inquiry)
{
    for (size_t i = inquiry->count; i-- > 0;) {
        int32_t result;
        int fd = inquiry->fds[i].fd;
        if (!inquiry->fds[i].revents)
            continue;
        if (recv(fd, &result, sizeof result, MSG_DONTWAIT) == sizeof result && result == 0)
            return (struct follower){ inquiry->roots[i], peer_of(fd) };
        close(fd);
        inquiry->count--;
        inquiry->fds[i] = inquiry->fds[inquiry->count];
        inquiry->roots[i] = inquiry->roots[inquiry->count];
    }
    return (struct follower){ 0 };
}

/* Who does not answer is believed to follow all that descends from its target. */
static struct follower silent_find(const struct inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->count; i++)
        if (process_descends(inquiry->target, inquiry->roots[i]))
            return (struct follower){ .root = inquiry->roots[i] };
    return (struct follower){ 0 };
}

/* All are asked at once: an orphan's ancestors do not tell whom it descends from. */
static struct follower follower_find(pid_t target)
{
    CLEANUP(inquiry_done) struct inquiry inquiry = { .target = target };
    struct follower follower = { 0 };
    const char *folders[2];
    for (int i = 0, count = folders_list(folders); i < count; i++)
        folder_ask(&inquiry, folders[i]);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + INQUIRY_MS * 1000000ull;
    while (inquiry.count && !follower.root && now_ns < end_ns) {
        if (poll(inquiry.fds, inquiry.count, (int)((end_ns - now_ns) / 1000000) + 1) > 0)
            follower = answers_take(&inquiry);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    return follower.root ? follower : silent_find(&inquiry);
}

int control_check(pid_t target, struct failure *why)
{
    struct follower follower = follower_find(target);
    if (follower.profiler)
        return already_watched(target, follower.profiler, why);
    if (follower.root)
        return failure_set(why, -EBUSY,
                           "process %d may be profiled already: it descends from process %d, whose "
                           "profiler does not answer",
                           target, follower.root);
    return 0;
}

/* ---- the profiler's side ---- */

void control_close(struct control *control)
{
    if (!control)
        return;
    if (control->listening_fd >= 0)
        unlinkat(control->directory_fd, control->name, 0);
    for (size_t i = 0; i < CLIENTS; i++)
        cleanup_close(&control->clients[i]);
    cleanup_close(&control->listening_fd);
    cleanup_close(&control->epoll_fd);
    cleanup_close(&control->directory_fd);
    free(control);
}

DEFINE_CLEANUP(struct control *, control_close)

static int others_check(pid_t target, struct failure *why)
{
    AUTO_CLOSE int fd = profiler_connect(target);
    if (fd == -EAGAIN)
        return failure_set(
            why, -EBUSY, "process %d is being profiled already, by a profiler that does not answer",
            target);
    if (fd < 0)
        return 0;
    return already_watched(target, peer_of(fd), why);
}

static int socket_bind(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(0177);
    int result = bind(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? -errno : 0;
    umask(before);
    return result;
}

/* Looking, removing what a killed profiler left, and taking the name: one step for all who lock. */
static int socket_listen(int directory_fd, const char *name)
{
    const struct sockaddr_un address = address_of(directory_fd, name);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    unlinkat(directory_fd, name, 0);
    int result = socket_bind(fd, &address);
    if (result == 0 && listen(fd, CLIENTS) < 0)
        result = -errno;
    return result < 0 ? result : TAKE_FD(fd);
}

static int control_listen(struct control *control, pid_t target, struct failure *why)
{
    flock(control->directory_fd, LOCK_EX);
    int result = others_check(target, why);
    if (result == 0) {
        result = socket_listen(control->directory_fd, control->name);
        if (result < 0)
            failure_set(why, result, "cannot listen for commands: %s", strerror(-result));
        else
            control->listening_fd = result;
    }
    flock(control->directory_fd, LOCK_UN);
    return result < 0 ? result : 0;
}

static void epoll_add(struct control *control, int fd, uint64_t index)
{
    struct epoll_event wanted = { .events = EPOLLIN, .data.u64 = index };
    epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &wanted);
}

int control_open(pid_t target, struct control **ret, struct failure *why)
{
    const char *folders[2];
    CLEANUP(control_closep) struct control *control = calloc(1, sizeof *control);
    if (!control)
        return failure_set(why, -ENOMEM, "out of memory");
    control->directory_fd = control->listening_fd = -1;
    for (size_t i = 0; i < CLIENTS; i++)
        control->clients[i] = -1;
    control->target = target;
    name_write(target, control->name);
    control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0, count = folders_list(folders); i < count && control->directory_fd < 0; i++)
        control->directory_fd = directory_open(folders[i], true, why);
    if (control->directory_fd < 0)
        return control->directory_fd;

    int result = control_listen(control, target, why);
    if (result < 0)
        return result;
    epoll_add(control, control->listening_fd, CLIENTS);
    *ret = TAKE_PTR(control);
    return 0;
}

int control_fd(const struct control *control)
{
    return control->epoll_fd;
}

/* Who comes when all places are taken goes away with a closed connection. */
static void client_accept(struct control *control)
{
    AUTO_CLOSE int fd = accept4(control->listening_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (size_t i = 0; fd >= 0 && i < CLIENTS; i++) {
        if (control->clients[i] >= 0)
            continue;
        epoll_add(control, fd, i);
        control->clients[i] = TAKE_FD(fd);
    }
}

/* The verb and the process, which is left out where the socket is that one's. */
static bool words_read(const struct control *control, char *words, struct control_request *ret)
{
    char *last = strrchr(words, ' ');
    pid_t target = last ? proc_parse_id(last + 1) : -1;
    if (target > 0)
        *last = '\0';
    ret->target = target > 0 ? target : control->target;
    for (ret->verb = 0; ret->verb < CONTROL_VERBS; ret->verb++)
        if (strcmp(words, names[ret->verb]) == 0)
            return true;
    return false;
}

/* 1 when it asked for something; otherwise it is gone, or made no sense and is let go. */
static int client_read(struct control *control, size_t index, struct control_request *ret)
{
    char words[WORDS_SIZE];
    struct control_request request;
    AUTO_CLOSE int fd = TAKE_FD(control->clients[index]);
    ssize_t length = recv(fd, words, sizeof words - 1, MSG_DONTWAIT);
    words[length > 0 ? length : 0] = '\0';
    epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    if (length <= 0)
        return 0;
    bool is_known = words_read(control, words, &request);
    request.client = TAKE_FD(fd);
    if (is_known)
        *ret = request;
    else
        control_answer(&request, -EINVAL, "the profiler does not know this command");
    return is_known;
}

int control_next(struct control *control, struct control_request *ret)
{
    struct epoll_event fired;
    while (epoll_wait(control->epoll_fd, &fired, 1, 0) == 1) {
        if (fired.data.u64 == CLIENTS)
            client_accept(control);
        else if (client_read(control, (size_t)fired.data.u64, ret))
            return 1;
    }
    return 0;
}

void control_answer(struct control_request *request, int result, const char *text)
{
    struct answer answer = { .result = result };
    size_t length = strnlen(text, sizeof answer.text);
    memcpy(answer.text, text, length);
    send(request->client, &answer, offsetof(struct answer, text) + length,
         MSG_NOSIGNAL | MSG_DONTWAIT);
    cleanup_close(&request->client);
    request->client = -1;
}

/* ---- the command's side ---- */

static int no_answer(pid_t target, struct failure *why)
{
    return failure_set(why, -ETIMEDOUT, "the profiler of process %d does not answer", target);
}

static int answer_read(int fd, pid_t target, char *text, size_t size, struct failure *why)
{
    struct answer answer;
    ssize_t got = recv(fd, &answer, sizeof answer, 0);
    if (got < 0)
        return no_answer(target, why);
    if ((size_t)got < offsetof(struct answer, text))
        return failure_set(why, -ENOENT, "the profiler of process %d ended before it answered",
                           target);
    size_t length = (size_t)got - offsetof(struct answer, text);
    if (answer.result < 0)
        return failure_set(why, answer.result, "%.*s", (int)length, answer.text);
    snprintf(text, size, "%.*s", (int)length, answer.text);
    return 0;
}

int control_ask(pid_t target, enum control_verb verb, char *answer, size_t size,
                struct failure *why)
{
    struct follower follower = { .root = target };
    AUTO_CLOSE int fd = profiler_connect(target);
    if (fd < 0 && fd != -EAGAIN) {
        follower = follower_find(target);
        fd = follower.root ? profiler_connect(follower.root) : -ENOENT;
    }
    if (fd == -EAGAIN)
        return no_answer(follower.root, why);
    if (fd < 0)
        return failure_set(why, -ENOENT,
                           "no profiler of yours watches process %d; one that was started with "
                           "sudo is steered with sudo",
                           target);
    words_send(fd, verb, target);
    return answer_read(fd, follower.root, answer, size, why);
}
