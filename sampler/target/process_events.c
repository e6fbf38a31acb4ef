#include "sampler/target/process_events.h"

#include "sampler/base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { BUFFER_BYTES = 4 << 20 };

/* What a message is: linux/connector.h, linux/cn_proc.h. */
struct message {
    struct nlmsghdr header;
    struct cn_msg connector; /* ends with an empty array, so what follows is found by offset */
};

#define AT(member) (sizeof(struct message) + offsetof(struct proc_event, member))

struct request {
    struct nlmsghdr header;
    char connector[sizeof(struct cn_msg)];
    enum proc_cn_mcast_op operation;
} __attribute__((packed));

static int request_send(int fd, enum proc_cn_mcast_op operation)
{
    const struct cn_msg connector = {
        .id = { CN_IDX_PROC, CN_VAL_PROC },
        .len = sizeof operation,
    };
    struct request request = {
        .header = { .nlmsg_len = sizeof request, .nlmsg_type = NLMSG_DONE },
        .operation = operation,
    };
    memcpy(request.connector, &connector, sizeof connector);
    return send(fd, &request, sizeof request, 0) < 0 ? -errno : 0;
}

/* Loads are big-endian, the messages are not: constants are turned, equal words stay equal. */
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(member))
#define IF_WHAT(here, value, there)                                                                \
    [here] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(value), (there) - (here)-1, 0)

static int filter_attach(int fd)
{
    enum { WHAT, FORK = 6, EXIT = 10, COMPARE = 13, DROP, KEEP };
    struct sock_filter rows[] = {
        [WHAT] = LOAD(what),
        IF_WHAT(1, PROC_EVENT_NONE, KEEP),
        IF_WHAT(2, PROC_EVENT_EXEC, KEEP),
        IF_WHAT(3, PROC_EVENT_FORK, FORK),
        IF_WHAT(4, PROC_EVENT_EXIT, EXIT),
        [5] = BPF_STMT(BPF_RET | BPF_K, 0),
        [FORK] = LOAD(event_data.fork.child_pid),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        LOAD(event_data.fork.child_tgid),
        BPF_JUMP(BPF_JMP | BPF_JA, COMPARE - EXIT, 0, 0),
        [EXIT] = LOAD(event_data.exit.process_pid),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        LOAD(event_data.exit.process_tgid),
        [COMPARE] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 1, 0),
        [DROP] = BPF_STMT(BPF_RET | BPF_K, 0),
        [KEEP] = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = { sizeof rows / sizeof *rows, rows };
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0 ? -errno : 0;
}

/* 1, 0 (nothing waits), -ENOBUFS. What does not come from the kernel is passed over. */
static int event_receive(int fd, struct proc_event *ret)
{
    char bytes[512];
    for (;;) {
        struct sockaddr_nl from = { 0 };
        socklen_t from_size = sizeof from;
        ssize_t got = recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &from_size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == ENOBUFS ? -ENOBUFS : 0;
        size_t size = (size_t)got;
        if (from.nl_pid || size < AT(event_data.exit.exit_signal))
            continue;
        *ret = (struct proc_event){ 0 };
        size -= sizeof(struct message);
        memcpy(ret, bytes + sizeof(struct message), size < sizeof *ret ? size : sizeof *ret);
        return 1;
    }
}

/* The kernel answers at once, or never: it is silent to those outside the initial namespaces. */
static int answer_read(int fd)
{
    struct proc_event event;
    int result;
    do {
        result = event_receive(fd, &event);
    } while (result > 0 && event.what != PROC_EVENT_NONE);
    if (result == 0)
        return -ENOTSUP;
    return result < 0 ? result : -(int)event.event_data.ack.err;
}

int process_events_open(void)
{
    AUTO_CLOSE int fd =
        socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    const struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
    if (fd < 0)
        return -ENOTSUP;
    const int size = BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    int result = filter_attach(fd);
    if (result == 0 && bind(fd, (const struct sockaddr *)&group, sizeof group) < 0)
        result = -errno;
    if (result == 0)
        result = request_send(fd, PROC_CN_MCAST_LISTEN);
    if (result == 0)
        result = answer_read(fd);
    return result < 0 ? result : TAKE_FD(fd);
}

/* Before Linux 6.6 the kernel counts its listeners and makes news as long as it knows of one. */
void process_events_close(int fd)
{
    request_send(fd, PROC_CN_MCAST_IGNORE);
    close(fd);
}

int process_events_read(int fd, struct process_notice *ret)
{
    struct proc_event event;
    int result;
    while ((result = event_receive(fd, &event)) > 0) {
        const struct fork_proc_event *fork = &event.event_data.fork;
        const struct exit_proc_event *exit = &event.event_data.exit;
        switch ((unsigned)event.what) {
        case PROC_EVENT_FORK:
            *ret =
                (struct process_notice){ PROCESS_FORKED, fork->child_tgid, fork->parent_tgid, 0 };
            return 1;
        case PROC_EVENT_EXEC:
            *ret =
                (struct process_notice){ PROCESS_EXECED, event.event_data.exec.process_tgid, 0, 0 };
            return 1;
        case PROC_EVENT_EXIT:
            *ret = (struct process_notice){ PROCESS_EXITED, exit->process_tgid, 0,
                                            (int)exit->exit_code };
            return 1;
        }
    }
    return result;
}
