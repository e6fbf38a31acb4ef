/* Starting commands as a shell would: status, streams, masks, signals from a terminal and from
 * others. */
#define _GNU_SOURCE 1 /* pipe2, forkpty */

#include "child.h"
#include "sampler/target/launch.h"
#include "sampler/target/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct launch *, launch_close)
#define AUTO_LAUNCH CLEANUP(launch_closep)
#define AUTO_SIGNALS CLEANUP(signals_close)

#define SH(script) ((char *[]){ (char *)"sh", (char *)"-c", (char *)(script), NULL })

static struct launch *start(char *const *argv, const struct signals *signals)
{
    struct launch *launch;
    struct failure why = { 0 };
    if (launch_start(argv, NULL, signals, &launch, &why))
        fail_msg("launch_start: %s", why.text);
    return launch;
}

static struct signals listen(void)
{
    struct signals signals;
    struct failure why = { 0 };
    if (signals_open(&signals, &why))
        fail_msg("signals_open: %s", why.text);
    return signals;
}

/* The next that is not of the kind that may come at any time. */
static struct signal_event hear(struct signals *signals, enum signal_kind kind)
{
    struct signal_event event;
    for (;;) {
        struct pollfd wait = { signals->fd, POLLIN, 0 };
        if (poll(&wait, 1, CHILD_SECONDS * 1000) != 1)
            fail_msg("no signal of kind %d came", kind);
        if (signals_next(signals, &event) && event.kind == kind)
            return event;
    }
}

static struct launch_end reap(struct launch *launch, struct signals *signals)
{
    struct launch_end end;
    while (!launch_reap(launch, &end))
        hear(signals, SIGNAL_CHILD);
    return end;
}

static int status_of(char *const *argv)
{
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *launch = start(argv, &signals);
    return reap(launch, &signals).exit_status;
}

static void test_status(void **state)
{
    (void)state;
    assert_int_equal(status_of(SH("exit 0")), 0);
    assert_int_equal(status_of(SH("exit 7")), 7);
    assert_int_equal(status_of(SH("kill -TERM $$")), 128 + SIGTERM);
    assert_int_equal(status_of(SH("kill -KILL $$")), 128 + SIGKILL);
}

static void test_end_is_told_again(void **state)
{
    (void)state;
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *launch = start(SH("exit 3"), &signals);
    struct launch_end first = reap(launch, &signals), second;
    assert_int_equal(launch_reap(launch, &second), 1);
    assert_int_equal(second.exit_status, 3);
    assert_true(second.cpu_ns == first.cpu_ns && second.tree_cpu_ns == first.tree_cpu_ns);
    assert_int_equal(waitpid(launch_pid(launch), NULL, WNOHANG), -1);
}

/* The shell's own time, and with it the time of what it waited for. */
static void test_cpu_of_child_and_tree(void **state)
{
    (void)state;
    static const char script[] = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 0";
    char tree[256];
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *alone = start(SH(script), &signals);
    struct launch_end own = reap(alone, &signals);
    assert_in_range(own.cpu_ns, 1000000, UINT64_C(30000000000));
    assert_in_range(own.tree_cpu_ns, own.cpu_ns * 4 / 5, own.cpu_ns * 6 / 5);

    snprintf(tree, sizeof tree, "(%s); true", script);
    AUTO_LAUNCH struct launch *parent = start(SH(tree), &signals);
    struct launch_end both = reap(parent, &signals);
    assert_true(both.tree_cpu_ns > 2 * both.cpu_ns);
}

static void assert_refused(const char *command, int error, int status, const char *text)
{
    char *argv[] = { (char *)command, NULL };
    struct launch *launch = NULL;
    struct failure why = { 0 };
    assert_int_equal(launch_start(argv, NULL, NULL, &launch, &why), error);
    assert_null(launch);
    assert_int_equal(why.code, error);
    if (!strstr(why.text, text))
        fail_msg("\"%s\" does not say \"%s\"", why.text, text);
    assert_int_equal(launch_failed_status(error), status);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static char folder[] = "/tmp/test-launch-XXXXXX";

static const char *file_write(const char *name, const char *bytes, size_t size, mode_t mode)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

#define TEXT(name, text, mode) file_write(name, text, sizeof(text) - 1, mode)

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("no-such-command-here", -ENOENT, 127, "no-such-command-here");
    assert_refused("", -ENOENT, 127, "no command");
    assert_refused("/no/such/file", -ENOENT, 127, "/no/such/file");
    assert_refused("/", -EACCES, 126, "not executable");
    assert_refused(TEXT("plain", "print()\n", 0600), -EACCES, 126, "not executable");
    assert_refused(TEXT("astray", "#!/no/such/interpreter\n", 0700), -ENOENT, 127, "interpreter");
    assert_refused(TEXT("binary", "\177ELF\0\0\0\0", 0700), -ENOEXEC, 126, "no program");
}

static void test_scripts(void **state)
{
    (void)state;
    char *shebang[] = { (char *)TEXT("shebang", "#!/bin/sh\nexit $#\n", 0700), (char *)"a", NULL };
    assert_int_equal(status_of(shebang), 1);
    char *bare[] = { (char *)TEXT("bare", "exit $#\n", 0700), (char *)"a", (char *)"b", NULL };
    assert_int_equal(status_of(bare), 2);
}

/* Where the PATH lists a folder, with a file that may not be run in one before it. */
static void test_path(void **state)
{
    (void)state;
    char path[256];
    AUTO_FREE char *before = strdup(getenv("PATH"));
    TEXT("sh", "no program", 0600);
    snprintf(path, sizeof path, "%s:/no/such/folder:%s", folder, before);
    setenv("PATH", path, 1);
    assert_int_equal(status_of(SH("exit 5")), 5);
    setenv("PATH", folder, 1);
    assert_refused("sh", -EACCES, 126, "not executable");
    setenv("PATH", before, 1);
}

static void test_streams_are_ours(void **state)
{
    (void)state;
    int ends[2];
    char text[16] = "";
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int saved = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    int status = status_of(SH("echo out"));
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], text, sizeof text), 4);
    assert_string_equal(text, "out\n");
    close(ends[0]);
}

static bool own_status_matches(const char *pattern)
{
    char *argv[] = { (char *)"grep", (char *)"-q", (char *)pattern, (char *)"/proc/self/status",
                     NULL };
    return status_of(argv) == 0;
}

/* As the child sees its own: SIGUSR1 blocked and nothing else; SIGHUP and SIGCHLD ignored. */
static void test_child_inherits_what_we_did(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigset_t one, before, after;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_SETMASK, &one, &before);
    bool blocked = own_status_matches("^SigBlk:.*0000000000000200$");
    bool ignored = own_status_matches("^SigIgn:.*[13579bdf]...[13579bdf]$");
    sigprocmask(SIG_SETMASK, &before, &after);
    assert_int_equal(sigismember(&after, SIGUSR1), 1);
    assert_int_equal(sigismember(&after, SIGINT), 0);
    signal(SIGHUP, SIG_DFL);
    assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
    assert_true(blocked);
    assert_true(ignored);
}

/* What nohup ignores for us does not end us. */
static void test_ignored_stays_ignored(void **state)
{
    (void)state;
    struct signal_event event;
    signal(SIGHUP, SIG_IGN);
    AUTO_SIGNALS struct signals signals = listen();
    kill(getpid(), SIGHUP);
    assert_int_equal(signals_next(&signals, &event), 0);
    kill(getpid(), SIGTERM);
    assert_int_equal(signals_next(&signals, &event), 1);
    assert_int_equal(event.number, SIGTERM);
    signal(SIGHUP, SIG_DFL);
}

/* Counts the signal; ends with the count when a line comes in. */
#define COUNTING(name)                                                                             \
    "n=0; trap 'n=$((n+1)); echo got' " name "; echo ready; until read -r x; do :; done; exit $n"

struct talk {
    FILE *from, *to;
};

/* The launched program's streams are ours at that moment: pipes to this test. */
static struct launch *start_talk(const char *script, const struct signals *signals,
                                 struct talk *ret)
{
    int in[2], out[2], saved[2] = { dup(STDIN_FILENO), dup(STDOUT_FILENO) };
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    struct launch *launch = start(SH(script), signals);
    dup2(saved[0], STDIN_FILENO);
    dup2(saved[1], STDOUT_FILENO);
    int done[] = { in[0], out[1], saved[0], saved[1] };
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        close(done[i]);
    *ret = (struct talk){ fdopen(out[0], "r"), fdopen(in[1], "w") };
    return launch;
}

static void expect_line(FILE *from, const char *wanted)
{
    char line[256] = "";
    while (!strstr(line, wanted))
        if (!fgets(line, sizeof line, from))
            fail_msg("the program ended before it said %s", wanted);
}

static void say_line(FILE *to)
{
    assert_true(fputs("\n", to) >= 0 && fflush(to) == 0);
}

static void check_forwarded(int number, const char *name)
{
    char script[256];
    struct talk talk;
    snprintf(script, sizeof script, COUNTING("%s"), name);
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *launch = start_talk(script, &signals, &talk);
    AUTO_FCLOSE FILE *from = talk.from;
    AUTO_FCLOSE FILE *to = talk.to;
    expect_line(from, "ready");

    kill(getpid(), number);
    struct signal_event event = hear(&signals, SIGNAL_END);
    assert_int_equal(event.number, number);
    assert_false(event.by_terminal);
    launch_forward(launch, &event);
    expect_line(from, "got");
    say_line(to);
    assert_int_equal(reap(launch, &signals).exit_status, 1);
    launch_forward(launch, &event); /* to nobody */
}

static void test_signals_are_forwarded(void **state)
{
    (void)state;
    check_forwarded(SIGINT, "INT");
    check_forwarded(SIGTERM, "TERM");
    check_forwarded(SIGHUP, "HUP");
    check_forwarded(SIGQUIT, "QUIT");
}

/* In a session with a terminal of its own: returns the exit status that the test looks at. */
static int run_on_terminal(const char *script)
{
    struct signals signals;
    struct launch *launch;
    struct launch_end end;
    if (signals_open(&signals, NULL) || launch_start(SH(script), NULL, &signals, &launch, NULL))
        return 101;
    struct signal_event event = hear(&signals, SIGNAL_END);
    if (!event.by_terminal || event.number != SIGINT)
        return 102;
    launch_forward(launch, &event);
    if (puts("heard") < 0 || fflush(stdout))
        return 103;
    while (!launch_reap(launch, &end))
        hear(&signals, SIGNAL_CHILD);
    launch_close(launch);
    return end.exit_status;
}

static int status_on_terminal(const char *script)
{
    int terminal, status;
    pid_t test = getpid(), pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        end_with_parent(test);
        _exit(run_on_terminal(script));
    }
    AUTO_FCLOSE FILE *stream = fdopen(terminal, "r+");
    setvbuf(stream, NULL, _IONBF, 0);
    expect_line(stream, "ready");
    assert_int_equal(write(terminal, "\3", 1), 1);
    expect_line(stream, "heard");
    assert_int_equal(write(terminal, "\n", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The terminal has given it to the child already: it gets one, not two. */
static void test_ctrl_c(void **state)
{
    (void)state;
    assert_int_equal(status_on_terminal(COUNTING("INT")), 1);
    assert_int_equal(status_on_terminal("echo ready; read -r x; exit 0"), 128 + SIGINT);
}

/* The end of a child is found between two stops of a thread that we trace ourselves. */
static void test_reap_leaves_stops_alone(void **state)
{
    (void)state;
    struct talk talk;
    struct pause pause;
    struct launch_end end;
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *launch =
        start_talk("echo ready; read -r x; exit 4", &signals, &talk);
    AUTO_FCLOSE FILE *from = talk.from;
    AUTO_FCLOSE FILE *to = talk.to;
    expect_line(from, "ready");
    assert_int_equal(ptrace(PTRACE_SEIZE, launch_pid(launch), 0, 0), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, launch_pid(launch), 0, 0), 0);
    await(thread_letter(launch_pid(launch)) == 't');
    assert_int_equal(launch_reap(launch, &end), 0);

    siginfo_t info = { 0 };
    assert_int_equal(waitid(P_PID, (id_t)launch_pid(launch), &info, WSTOPPED | WNOHANG), 0);
    assert_int_equal(info.si_pid, launch_pid(launch));
    assert_int_equal(ptrace(PTRACE_DETACH, launch_pid(launch), 0, 0), 0);
    assert_int_equal(thread_pause(launch_pid(launch), &pause), 0);
    assert_true(thread_resume(&pause) > 0);
    say_line(to);
    assert_int_equal(reap(launch, &signals).exit_status, 4);
}

/* A pause of a thread is no end of a child: it must not wake the loop. */
static void test_pauses_send_no_signal(void **state)
{
    (void)state;
    struct talk talk;
    struct signal_event event;
    AUTO_SIGNALS struct signals signals = listen();
    AUTO_LAUNCH struct launch *launch =
        start_talk("echo ready; read -r x; exit 0", &signals, &talk);
    AUTO_FCLOSE FILE *from = talk.from;
    AUTO_FCLOSE FILE *to = talk.to;
    expect_line(from, "ready");
    for (int i = 0; i < 10; i++) {
        struct pause pause;
        assert_int_equal(thread_pause(launch_pid(launch), &pause), 0);
        thread_resume(&pause);
    }
    assert_int_equal(signals_next(&signals, &event), 0);
    say_line(to);
    assert_int_equal(reap(launch, &signals).exit_status, 0);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    AUTO_CLOSEDIR DIR *open_folder = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open_folder));)
        unlinkat(dirfd(open_folder), entry->d_name, 0);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_end_is_told_again),
        cmocka_unit_test(test_cpu_of_child_and_tree),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_streams_are_ours),
        cmocka_unit_test(test_child_inherits_what_we_did),
        cmocka_unit_test(test_ignored_stays_ignored),
        cmocka_unit_test(test_signals_are_forwarded),
        cmocka_unit_test(test_ctrl_c),
        cmocka_unit_test(test_reap_leaves_stops_alone),
        cmocka_unit_test(test_pauses_send_no_signal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
