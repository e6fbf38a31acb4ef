/* What is recorded is replayed the same; rows that make no sense are refused with their line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampler/base/cleanup.h"
#include "sampler/loop/recorder.h"

#include <string.h>

DEFINE_CLEANUP(struct recorder *, recorder_free)

/* A replay into a recorder: text in, text out. */
struct echo {
    struct stream_sink sink;
    struct recorder *recorder;
};

static int echo_process(struct stream_sink *sink, const struct process_event *process)
{
    return recorder_add_process(((struct echo *)sink)->recorder, process);
}

static int echo_tick(struct stream_sink *sink, const struct tick_event *tick)
{
    return recorder_add_tick(((struct echo *)sink)->recorder, tick);
}

static int echo_sampling(struct stream_sink *sink, const struct sampling_event *sampling)
{
    return recorder_add_sampling(((struct echo *)sink)->recorder, sampling);
}

static int echo_memory(struct stream_sink *sink, const struct memory_event *event)
{
    return recorder_add_memory(((struct echo *)sink)->recorder, event);
}

static int echo_memory_loss(struct stream_sink *sink, const struct memory_loss_event *loss)
{
    return recorder_add_memory_loss(((struct echo *)sink)->recorder, loss);
}

static int echo(const char *text, char **ret, struct failure *why)
{
    size_t size;
    CLEANUP(recorder_freep) struct recorder *recorder = NULL;
    AUTO_FCLOSE FILE *from = fmemopen((char *)(uintptr_t)text, strlen(text), "re");
    FILE *into = open_memstream(ret, &size);
    assert_int_equal(recorder_new(into, &recorder), 0);
    struct echo sink = { { echo_process, echo_tick, echo_sampling, echo_memory, echo_memory_loss },
                         recorder };
    int result = stream_replay(from, &sink.sink, why);
    fclose(into);
    return result;
}

static void test_events(void **state)
{
    (void)state;
    AUTO_FREE char *first = NULL, *second = NULL;
    size_t size;
    FILE *into = open_memstream(&first, &size);
    CLEANUP(recorder_freep) struct recorder *recorder = NULL;
    const char *argv[] = { "python3", "-c", "print(1)\n\t\\", "-", "", NULL };
    struct frame_event frames[600];
    for (int i = 0; i < 600; i++)
        frames[i] = (struct frame_event){ .kind = FRAME_PYTHON, .name = "f", .line = i % 400 };
    frames[0] = (struct frame_event){
        .kind = FRAME_NATIVE, .module = "/a b.so", .ip = UINT64_MAX, .offset = 16
    };
    frames[1] = (struct frame_event){ .kind = FRAME_GC, .name = "<GC>" };
    struct sample_event samples[] = {
        { .tid = 5,
          .ident = UINT64_MAX,
          .name = "-",
          .is_main = true,
          .state = THREAD_WAIT_OTHER,
          .python_ns = 1,
          .native_ns = 2,
          .kernel_ns = 3,
          .wait_ns = 4,
          .samples = 5,
          .frames = frames,
          .frame_count = 600 },
        { .tid = 6, .state = THREAD_RUNNING },
    };
    struct tick_event tick = { .time_ns = 7,
                               .pid = 8,
                               .wall_ns = 9,
                               .idle_ns = 10,
                               .rss_bytes = 11,
                               .samples = samples,
                               .sample_count = 2 };
    struct process_event process = { .pid = 8,
                                     .ppid = 1,
                                     .rank = -1,
                                     .argv = argv,
                                     .start_s = 0.25,
                                     .end_s = 1.5,
                                     .cpu_s = 1e-9,
                                     .exit_status = 139,
                                     .note = "" };
    struct sampling_event sampling = { .rate_hz = 1000, .elapsed_s = 1.5, .missed = 3 };
    assert_int_equal(recorder_new(into, &recorder), 0);
    assert_int_equal(recorder_add_process(recorder, &process), 0);
    assert_int_equal(recorder_add_tick(recorder, &tick), 0);
    assert_int_equal(recorder_add_tick(recorder, &tick), 0);
    assert_int_equal(recorder_add_sampling(recorder, &sampling), 0);
    fclose(into);
    struct failure why = { 0 };
    if (echo(first, &second, &why))
        fail_msg("%s", why.text);
    assert_string_equal(second, first);
    assert_non_null(strstr(first, "\\-\t")); /* a name that is a minus sign is not no name */
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "stream\t1",
        "nonsense\t1",
        "tick\t1\t2\t3",
        "tick\t1\t2\t3\t4\t5\t6",
        "tick\tx\t2\t3\t4\t5",
        "sample\t1\t1\tn\tmain\trunning\t0\t0\t0\t0\t1\t",
        "frame\t2\tpy\tf\ta.py\t1\t1\t1\t-\t0\t0",
        "frame\t1\tlua\tf\ta.py\t1\t1\t1\t-\t0\t0",
        "sampling\t1",
        "process\t99999999999\t1\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t-\t-\t-\t-",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        AUTO_FREE char *out = NULL;
        struct failure why = { 0 };
        snprintf(text, sizeof text, "# comment\n\n%s\n", rows[i]);
        assert_int_equal(echo(text, &out, &why), -EBADMSG);
        assert_non_null(strstr(why.text, "line 3"));
    }
}

static void test_unknown_frame(void **state)
{
    (void)state;
    AUTO_FREE char *out = NULL;
    struct failure why = { 0 };
    assert_int_equal(echo("tick\t1\t2\t3\t4\t5\n"
                          "sample\t1\t1\tn\tmain\trunning\t0\t0\t0\t0\t1\t1\n",
                          &out, &why),
                     -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unknown_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
