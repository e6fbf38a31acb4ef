/* Calls that are injected: what the thread was stays as it was, also when we are killed in the
 * middle. The child's libc is ours, and so are the addresses in it. */
#define _GNU_SOURCE 1 /* dlsym, ppoll */

#include "child.h"
#include "sampler/target/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>

enum { CALLS = 20, KILLS = 40, ROUNDS = 1 << 14 };

struct counters {
    atomic_ulong calls, sum;
    atomic_ulong spins, wrong;
    atomic_long answer;
    atomic_int error;
    atomic_ulong misaligned;
    atomic_bool wait, go;
};

static struct counters *counters;

static int set_up(void **state)
{
    (void)state;
    counters = shared_zeroed(counters, sizeof *counters);
    return 0;
}

/* What is called there: uses what a function may use, and leaves it otherwise than it was. */
static uint64_t count(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    volatile double fresh = (double)a / 3;
    _Alignas(32) volatile char aligned[32] = { 0 };
    counters->misaligned += (uintptr_t)aligned % 32 != 0;
    counters->calls++;
    counters->sum += a + b + c + d + e + f;
    errno = 77;
    return (uint64_t)fresh + a * 1000;
}

static uint64_t count_and_wait(void)
{
    counters->calls++;
    counters->wait = true;
    while (!counters->go)
        sched_yield();
    return 0;
}

static uint64_t crash(void)
{
    __builtin_trap();
    return 0;
}

struct search {
    struct inject_code code;
    bool found;
};

static int text_search(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct search *search = argument;
    (void)size;
    if (!strstr(info->dlpi_name, "/libc.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            search->found =
                inject_code_find((const uint8_t *)info->dlpi_addr + part->p_vaddr, part->p_memsz,
                                 info->dlpi_addr + part->p_vaddr, &search->code);
    }
    return 1;
}

static struct inject_code code_of_libc(void)
{
    struct search search = { 0 };
    dl_iterate_phdr(text_search, &search);
    assert_true(search.found);
    return search.code;
}

static void pause_whole(pid_t tid, struct pause *ret)
{
    int result;
    while ((result = thread_pause(tid, ret)) == -EAGAIN || (result == 0 && ret->signal)) {
        if (result == 0)
            thread_resume(ret);
        sched_yield();
    }
    if (result)
        fail_msg("thread_pause of %d: %d", tid, result);
}

static struct injection_thread *begin(struct process *process)
{
    struct pause pause;
    struct injection_thread *thread;
    struct failure why = { 0 };
    const struct inject_code code = code_of_libc();
    pause_whole(process->pid, &pause);
    if (inject_begin(process, &pause, &code, &thread, &why))
        fail_msg("%s", why.text);
    assert_int_equal(pause.tid, 0);
    return thread;
}

static void call_some(struct process *process, int calls)
{
    struct injection_thread *thread = begin(process);
    unsigned long before = counters->calls;
    for (uint64_t i = 0; i < (uint64_t)calls; i++) {
        const uint64_t arguments[INJECT_ARGUMENTS] = { i, 1, 2, 3, 4, 5 };
        uint64_t answer;
        assert_int_equal(inject_call(thread, (uintptr_t)count, arguments, &answer), 0);
        assert_int_equal(answer, i / 3 + i * 1000);
    }
    assert_int_equal(counters->calls - before, calls);
    assert_int_equal(counters->misaligned, 0);
    inject_end(thread);
}

/* ---- what is interrupted ---- */

static void sleep_whole(struct child_side *side)
{
    const struct timespec time = { 1, 0 };
    struct timespec before, after;
    child_say_ready(side);
    clock_gettime(CLOCK_MONOTONIC, &before);
    errno = 0;
    counters->answer = nanosleep(&time, NULL);
    counters->error = errno;
    clock_gettime(CLOCK_MONOTONIC, &after);
    counters->spins = (unsigned long)((after.tv_sec - before.tv_sec) * 1000 +
                                      (after.tv_nsec - before.tv_nsec) / 1000000);
}

static void test_sleep(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(sleep_whole, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_SLEEP);
    call_some(process, CALLS);
    child_wait(&child);
    assert_int_equal(counters->answer, 0); /* it went on, and slept for as long as it was to */
    assert_in_range(counters->spins, 1000, CHILD_SECONDS * 1000);
}

static void read_whole(struct child_side *side)
{
    char bytes[2] = { 0 };
    child_say_ready(side);
    counters->answer = read(side->orders, bytes, 2);
    counters->error = errno;
    counters->wrong += bytes[0] != 'o';
}

static void test_read(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(read_whole, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    for (int i = 0; i < CALLS; i++)
        call_some(process, 1);
    child_order(&child);
    child_wait(&child);
    assert_int_equal(counters->answer, 1);
    assert_int_equal(counters->wrong, 0);
}

static void poll_whole(struct child_side *side)
{
    struct pollfd fd = { .fd = side->orders, .events = POLLIN };
    child_say_ready(side);
    counters->answer = poll(&fd, 1, CHILD_SECONDS * 1000);
    counters->error = errno;
}

static void test_poll(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(poll_whole, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    call_some(process, CALLS);
    child_order(&child);
    child_wait(&child);
    assert_int_equal(counters->answer, 1);
}

/* A sum whose every part is live in a register, general or vector. */
static double mixed_sum(uint64_t *ret_words)
{
    double sums[8] = { 0 };
    uint64_t words[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    for (int i = 0; i < ROUNDS; i++)
        for (int j = 0; j < 8; j++) {
            sums[j] = sums[j] * 0.5 + (double)(i + j);
            words[j] = words[j] * 6364136223846793005u + (uint64_t)i;
        }
    *ret_words =
        words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5] ^ words[6] ^ words[7];
    return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

static void reckon(struct child_side *side)
{
    uint64_t words, words_now;
    double sum = mixed_sum(&words);
    child_say_ready(side);
    while (!counters->go) {
        bool right = mixed_sum(&words_now) == sum && words_now == words; /* NOLINT */
        counters->wrong += !right;
        counters->spins++;
    }
}

static void test_reckoning(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(reckon, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    for (int i = 0; i < 10 * CALLS; i++) {
        unsigned long before = counters->spins;
        call_some(process, 2);
        if (i % CALLS == 0)
            await(counters->spins > before);
    }
    counters->go = true;
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->wrong, 0);
}

/* ---- what goes wrong ---- */

static void test_crash(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(reckon, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    const uint64_t arguments[INJECT_ARGUMENTS] = { 0 };
    uint64_t answer;
    struct injection_thread *thread = begin(process);
    assert_int_equal(inject_call(thread, (uintptr_t)crash, arguments, &answer), -EFAULT);
    assert_int_equal(inject_call(thread, (uintptr_t)count, arguments, &answer), -ESRCH);
    inject_end(thread);
    unsigned long before = counters->spins;
    await(counters->spins > before);
    counters->go = true;
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->wrong + counters->calls, 0);
}

static void test_target_killed(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(reckon, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    const uint64_t arguments[INJECT_ARGUMENTS] = { 0 };
    uint64_t answer;
    struct injection_thread *thread = begin(process);
    kill(child.pid, SIGKILL);
    assert_int_equal(inject_call(thread, (uintptr_t)count, arguments, &answer), -ESRCH);
    inject_end(thread);
}

static void take_signal(int number)
{
    (void)number;
    counters->sum++;
}

static void reckon_with_signals(struct child_side *side)
{
    struct sigaction action = { .sa_handler = take_signal };
    sigaction(SIGUSR1, &action, NULL);
    reckon(side);
}

static void test_signals_arrive(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(reckon_with_signals, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    const uint64_t arguments[INJECT_ARGUMENTS] = { 0 };
    uint64_t answer;
    for (unsigned long i = 1; i <= CALLS; i++) {
        struct injection_thread *thread = begin(process);
        kill(child.pid, SIGUSR1);
        assert_int_equal(inject_call(thread, (uintptr_t)count, arguments, &answer), 0);
        assert_int_equal(counters->sum, i - 1); /* not in the middle */
        inject_end(thread);
        await(counters->sum == i);
    }
    counters->go = true;
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->wrong, 0);
}

/* The profiler, as a process that can be killed. */
static void inject_for_ever(struct child_side *side)
{
    struct process *process = side->argument;
    uint64_t answer;
    const uint64_t arguments[INJECT_ARGUMENTS] = { 0 };
    child_say_ready(side);
    for (;;) {
        struct injection_thread *thread = begin(process);
        if (inject_call(thread, (uintptr_t)count, arguments, &answer))
            _exit(91);
        inject_end(thread);
    }
}

static void test_injector_killed(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(reckon, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    for (int i = 0; i < KILLS; i++) {
        struct child injector = child_start(inject_for_ever, process);
        child_await_ready(&injector);
        unsigned long calls = counters->calls;
        for (int step = 0; step < i * 7; step++)
            sched_yield(); /* another moment each time */
        await(counters->calls > calls);
        child_kill(&injector);
        unsigned long before = counters->spins;
        await(counters->spins > before);
    }
    counters->go = true;
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->wrong, 0);
}

static void wait_in_call(struct child_side *side)
{
    struct process *process = side->argument;
    uint64_t answer;
    const uint64_t arguments[INJECT_ARGUMENTS] = { 0 };
    struct injection_thread *thread = begin(process);
    child_say_ready(side);
    int error = inject_call(thread, (uintptr_t)count_and_wait, arguments, &answer);
    inject_end(thread);
    _exit(error ? 92 : 0);
}

/* The injector is killed while the function runs: that comes to its end without it. */
static void test_killed_within(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(read_whole, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    struct child injector = child_start(wait_in_call, process);
    child_await_ready(&injector);
    await(counters->wait);
    child_kill(&injector);
    counters->go = true;
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    child_order(&child);
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->calls, 1);
    assert_int_equal(counters->answer, 1);
    assert_int_equal(counters->wrong, 0);
}

/* A stop of the process holds while a call is under way, and the call goes on after it. */
static void test_stopped_within(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(read_whole, NULL);
    child_await_ready(&child);
    AUTO_PROCESS struct process *process = open_child(&child);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    struct child injector = child_start(wait_in_call, process);
    child_await_ready(&injector);
    await(counters->wait);
    kill(child.pid, SIGSTOP);
    await(thread_letter(child.pid) == 't' || thread_letter(child.pid) == 'T');
    counters->go = true;
    kill(child.pid, SIGCONT);
    assert_int_equal(child_wait(&injector), 0);
    await(wait_of(process, child.pid) == THREAD_WAIT_IO);
    child_order(&child);
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(counters->calls, 1);
    assert_int_equal(counters->answer, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sleep, set_up),
        cmocka_unit_test_setup(test_read, set_up),
        cmocka_unit_test_setup(test_poll, set_up),
        cmocka_unit_test_setup(test_reckoning, set_up),
        cmocka_unit_test_setup(test_crash, set_up),
        cmocka_unit_test_setup(test_target_killed, set_up),
        cmocka_unit_test_setup(test_signals_arrive, set_up),
        cmocka_unit_test_setup(test_injector_killed, set_up),
        cmocka_unit_test_setup(test_killed_within, set_up),
        cmocka_unit_test_setup(test_stopped_within, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
