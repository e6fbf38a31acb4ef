/* Steering a profiler over its socket: every verb, the socket as a lock, bad folders and bad
 * clients. */
#define _GNU_SOURCE 1 /* pipe2 */

#include "child.h"
#include "sampler/app/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

DEFINE_CLEANUP(struct control *, control_close)
#define AUTO_CONTROL CLEANUP(control_closep)

static pid_t target; /* a number that nobody else's test has */
static char runtime[64], folder[128], socket_path[160];

static int set_up(void **state)
{
    (void)state;
    target = getpid();
    strcpy(runtime, "/tmp/test-control-XXXXXX");
    if (!mkdtemp(runtime))
        return -1;
    snprintf(folder, sizeof folder, "%s/scalene-attach-%u", runtime, (unsigned)geteuid());
    snprintf(socket_path, sizeof socket_path, "%s/%d.sock", folder, target);
    return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(socket_path);
    if (unlink(folder) < 0)
        rmdir(folder);
    return rmdir(runtime);
}

static struct control *open_control(void)
{
    struct control *control;
    struct failure why = { 0 };
    if (control_open(target, &control, &why))
        fail_msg("control_open: %s", why.text);
    return control;
}

/* A command that asks, in a thread of its own. */
struct asker {
    pthread_t thread;
    enum control_verb verb;
    int result;
    char answer[CONTROL_ANSWER_SIZE];
    struct failure why;
};

static void *ask(void *argument)
{
    struct asker *asker = argument;
    asker->result =
        control_ask(target, asker->verb, asker->answer, sizeof asker->answer, &asker->why);
    return NULL;
}

static void asker_start(struct asker *asker, enum control_verb verb)
{
    *asker = (struct asker){ .verb = verb };
    assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static struct control_request await_request(struct control *control)
{
    struct control_request request;
    do {
        struct pollfd wait = { control_fd(control), POLLIN, 0 };
        assert_int_equal(poll(&wait, 1, CHILD_SECONDS * 1000), 1);
    } while (!control_next(control, &request));
    return request;
}

static void check_round(struct control *control, enum control_verb verb, int result,
                        const char *text)
{
    struct asker asker;
    asker_start(&asker, verb);
    struct control_request request = await_request(control);
    assert_int_equal(request.verb, verb);
    assert_int_equal(request.target, target);
    control_answer(&request, result, text);
    pthread_join(asker.thread, NULL);
    assert_int_equal(asker.result, result);
    assert_string_equal(result ? asker.why.text : asker.answer, text);
}

static void test_verbs(void **state)
{
    (void)state;
    AUTO_CONTROL struct control *control = open_control();
    for (int verb = 0; verb < CONTROL_VERBS; verb++)
        check_round(control, verb, 0, control_verb_name(verb));
    check_round(control, CONTROL_STATUS, 0, "");
    check_round(control, CONTROL_FLUSH, -ENOSPC, "the disk is full");
}

static void test_long_answer(void **state)
{
    (void)state;
    AUTO_CONTROL struct control *control = open_control();
    char text[CONTROL_ANSWER_SIZE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    check_round(control, CONTROL_STATUS, 0, text);
}

/* Two at once: the answers find the right one. */
static void test_two_askers(void **state)
{
    (void)state;
    AUTO_CONTROL struct control *control = open_control();
    struct asker askers[2];
    struct control_request requests[2];
    asker_start(&askers[0], CONTROL_ON);
    asker_start(&askers[1], CONTROL_OFF);
    for (int i = 0; i < 2; i++)
        requests[i] = await_request(control);
    for (int i = 0; i < 2; i++)
        control_answer(&requests[i], 0, control_verb_name(requests[i].verb));
    for (int i = 0; i < 2; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].result, 0);
        assert_string_equal(askers[i].answer, control_verb_name(askers[i].verb));
    }
}

static void test_nobody_there(void **state)
{
    (void)state;
    char answer[64];
    struct failure why = { 0 };
    assert_int_equal(control_ask(target, CONTROL_STOP, answer, sizeof answer, &why), -ENOENT);
    assert_non_null(strstr(why.text, "no profiler of yours watches"));
    control_close(open_control());
    assert_int_equal(control_ask(target, CONTROL_STOP, answer, sizeof answer, &why), -ENOENT);
    assert_int_equal(access(socket_path, F_OK), -1);
}

static void test_profiler_ends_unanswered(void **state)
{
    (void)state;
    struct asker asker;
    struct control *control = open_control();
    asker_start(&asker, CONTROL_FLUSH);
    struct control_request request = await_request(control);
    close(request.client);
    control_close(control);
    pthread_join(asker.thread, NULL);
    assert_int_equal(asker.result, -ENOENT);
    assert_non_null(strstr(asker.why.text, "ended before"));
}

static void test_second_profiler(void **state)
{
    (void)state;
    char wanted[32];
    struct control *second = NULL;
    struct failure why = { 0 };
    AUTO_CONTROL struct control *first = open_control();
    assert_int_equal(control_open(target, &second, &why), -EBUSY);
    assert_null(second);
    snprintf(wanted, sizeof wanted, "by process %d", getpid());
    assert_non_null(strstr(why.text, wanted));
    check_round(first, CONTROL_STATUS, 0, "unharmed");
}

/* Of whom an environment says otherwise, too. */
static void test_second_profiler_elsewhere(void **state)
{
    (void)state;
    struct control *second = NULL;
    unsetenv("XDG_RUNTIME_DIR");
    struct control *first = open_control();
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    int result = control_open(target, &second, NULL);
    control_close(first);
    assert_int_equal(result, -EBUSY);
}

static void hold_control(struct child_side *side)
{
    open_control();
    rest(side);
}

static void test_killed_profiler_leaves_nothing(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(hold_control, NULL);
    child_await_ready(&child);
    assert_int_equal(control_open(target, &(struct control *){ NULL }, NULL), -EBUSY);
    child_kill(&child);
    assert_int_equal(access(socket_path, F_OK), 0);
    AUTO_CONTROL struct control *control = open_control();
    check_round(control, CONTROL_ON, 0, "mine");
}

/* A profiler of the test that follows nobody but itself. */
static void follow_oneself(struct child_side *side)
{
    struct control *control = open_control();
    child_say_ready(side);
    for (;;) {
        char text[32];
        struct control_request request = await_request(control);
        snprintf(text, sizeof text, "of %d", request.target);
        control_answer(&request, request.target == getpid() ? 0 : -ENOENT, text);
    }
}

/* It answers for those alone whom it follows. */
static void test_follower(void **state)
{
    (void)state;
    char answer[64], wanted[64];
    struct failure why = { 0 };
    AUTO_CHILD struct child child = child_start(follow_oneself, NULL);
    child_await_ready(&child);
    assert_int_equal(control_ask(child.pid, CONTROL_OFF, answer, sizeof answer, &why), 0);
    snprintf(wanted, sizeof wanted, "of %d", child.pid);
    assert_string_equal(answer, wanted);
    assert_int_equal(control_check(child.pid, &why), -EBUSY);
    snprintf(wanted, sizeof wanted, "by process %d: ", child.pid);
    assert_non_null(strstr(why.text, wanted));
    assert_int_equal(control_ask(getppid(), CONTROL_STOP, answer, sizeof answer, &why), -ENOENT);
    assert_non_null(strstr(why.text, "no profiler of yours watches"));
    assert_int_equal(control_check(getppid(), &why), 0);
}

/* It is not waited for for long, and believed to follow whoever descends from its target. */
static void test_silent_follower(void **state)
{
    (void)state;
    struct failure why = { 0 };
    AUTO_CHILD struct child child = child_start(hold_control, NULL);
    child_await_ready(&child);
    uint64_t began_s = seconds_now();
    assert_int_equal(control_check(getppid(), &why), 0);
    assert_int_equal(control_check(child.pid, &why), -EBUSY);
    assert_non_null(strstr(why.text, "whose profiler does not answer"));
    assert_in_range(seconds_now() - began_s, 0, CHILD_SECONDS / 2);
}

/* Who asks from within a run is not told of that very run, which could not answer meanwhile. */
static void test_own_socket(void **state)
{
    (void)state;
    AUTO_CONTROL struct control *own = open_control();
    AUTO_CHILD struct child child = child_start(rest, NULL);
    assert_non_null(own);
    child_await_ready(&child);
    assert_int_equal(control_check(child.pid, NULL), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat stat_buffer;
    assert_int_equal(lstat(path, &stat_buffer), 0);
    return stat_buffer.st_mode & 07777;
}

static void test_modes(void **state)
{
    (void)state;
    mode_t before = umask(0);
    AUTO_CONTROL struct control *control = open_control();
    assert_non_null(control);
    assert_int_equal(umask(before), 0);
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(mode_of(socket_path), 0600);
}

/* Others could have put things there: passed over. */
static void test_open_folder_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0770), 0);
    AUTO_CONTROL struct control *control = open_control();
    assert_int_equal(access(socket_path, F_OK), -1);
    check_round(control, CONTROL_ON, 0, "elsewhere");
}

static void test_symlink_is_refused(void **state)
{
    (void)state;
    char elsewhere[] = "/tmp/test-control-XXXXXX";
    assert_non_null(mkdtemp(elsewhere));
    assert_int_equal(symlink(elsewhere, folder), 0);
    AUTO_CONTROL struct control *control = open_control();
    assert_int_equal(access(socket_path, F_OK), -1);
    assert_int_equal(rmdir(elsewhere), 0);
    check_round(control, CONTROL_ON, 0, "elsewhere");
}

static int connect_raw(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", socket_path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Some that say nothing, one that went, one that talks nonsense; none holds up the next. */
static void test_bad_clients(void **state)
{
    (void)state;
    struct control_request request;
    char bytes[128] = "";
    AUTO_CONTROL struct control *control = open_control();
    AUTO_CLOSE int silent = connect_raw();
    close(connect_raw());
    AUTO_CLOSE int odd = connect_raw();
    assert_int_equal(send(odd, "sing", 4, 0), 4);
    assert_int_equal(control_next(control, &request), 0);
    ssize_t got = recv(odd, bytes, sizeof bytes - 1, 0);
    assert_true(got > 4);
    assert_non_null(strstr(bytes + 4, "does not know"));
    check_round(control, CONTROL_STATUS, 0, "still here");
    assert_int_equal(send(silent, "off", 3, 0), 3);
    assert_int_equal(await_request(control).verb, CONTROL_OFF);
}

/* Whoever comes when all places are taken is told so by the end of the connection. */
static void test_too_many_clients(void **state)
{
    (void)state;
    enum { FITTING = 8 };
    struct control_request request;
    char byte;
    int clients[FITTING + 1];
    AUTO_CONTROL struct control *control = open_control();
    for (int i = 0; i <= FITTING; i++) {
        clients[i] = connect_raw();
        assert_int_equal(control_next(control, &request), 0);
    }
    assert_int_equal(recv(clients[FITTING], &byte, 1, 0), 0);
    assert_int_equal(recv(clients[0], &byte, 1, MSG_DONTWAIT), -1);
    close(clients[0]);
    check_round(control, CONTROL_STATUS, 0, "a place again");
    for (int i = 1; i <= FITTING; i++)
        close(clients[i]);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_verbs),
        TEST(test_long_answer),
        TEST(test_two_askers),
        TEST(test_nobody_there),
        TEST(test_profiler_ends_unanswered),
        TEST(test_second_profiler),
        TEST(test_second_profiler_elsewhere),
        TEST(test_killed_profiler_leaves_nothing),
        TEST(test_follower),
        TEST(test_silent_follower),
        TEST(test_own_socket),
        TEST(test_modes),
        TEST(test_open_folder_is_refused),
        TEST(test_symlink_is_refused),
        TEST(test_bad_clients),
        TEST(test_too_many_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
