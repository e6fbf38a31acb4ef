#include "sampler/target/inject.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/target/inject_arch.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    IMAGE_MOST = INJECT_STATE_MOST + (2 << 10),
    WORDS_MOST = 34, /* of the stack of a call */
    LOOK_NS = 20000, /* between two looks at a thread that runs; doubled each time, … */
    LOOK_LONGEST_NS = 2000000,
    LEAVE_NS = 1000000000,
    SYSCALL_STOP = SIGTRAP | 0x80, /* PTRACE_O_TRACESYSGOOD */
};

struct injection_thread {
    pid_t tid;
    bool was_stopped; /* its process is, and others stand still: this one makes its calls */
    bool is_child;    /* as in struct pause */
    int memory_fd;
    struct inject_code code;
    struct inject_plan plan;
    struct inject_state original, calling;
    inject_late *late; /* NULL: nobody is told */
    void *late_context;
};

bool inject_is_known(void)
{
    return native_inject.stage;
}

bool inject_code_find(const uint8_t *text, size_t size, remote_addr address,
                      struct inject_code *code)
{
    return native_inject.find && native_inject.find(text, size, address, code);
}

int inject_write(struct injection_thread *thread, remote_addr address, const void *bytes,
                 size_t size)
{
    ssize_t written = pwrite(thread->memory_fd, bytes, size, (off_t)address);
    if (written == (ssize_t)size)
        return 0;
    return written == 0 ? -ESRCH : -EFAULT; /* the file outlives the memory it shows */
}

int inject_give(struct injection_thread *thread, const void *bytes, size_t size, remote_addr *ret)
{
    if (size > INJECT_DATA)
        return -EFAULT;
    *ret = thread->plan.data;
    return inject_write(thread, thread->plan.data, bytes, size);
}

/* ---- what the thread is ---- */

static int set_read(pid_t tid, int kind, void *into, size_t *size)
{
    struct iovec set = { into, *size };
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kind, &set) < 0)
        return errno == ESRCH ? -ESRCH : -ENOTSUP;
    *size = set.iov_len;
    return 0;
}

static int set_write(pid_t tid, int kind, const void *from, size_t size)
{
    struct iovec set = { (void *)(uintptr_t)from, size };
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)kind, &set) < 0 ? -ESRCH : 0;
}

static int registers_write(pid_t tid, const struct user_regs_struct *registers)
{
    return set_write(tid, NT_PRSTATUS, registers, sizeof *registers);
}

static int mask_write(pid_t tid, uint64_t mask)
{
    return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof mask, &mask) < 0 ? -ESRCH : 0;
}

static int state_read(pid_t tid, struct inject_state *ret)
{
    size_t size = sizeof ret->registers;
    ret->vector_size = sizeof ret->vectors;
    int error = set_read(tid, NT_PRSTATUS, &ret->registers, &size);
    if (!error && size != sizeof ret->registers)
        error = -ENOTSUP; /* a 32-bit program */
    if (!error)
        error = set_read(tid, native_inject.vector_set, ret->vectors, &ret->vector_size);
    if (!error &&
        ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof ret->signal_mask, &ret->signal_mask) < 0)
        error = -ESRCH;
    return error;
}

/*
 * The registers last when the thread is put back, and first when it is sent away: at each moment
 * what has been written is, or will be, made good by the frame.
 */
static void original_restore(const struct injection_thread *thread)
{
    const struct inject_state *original = &thread->original;
    set_write(thread->tid, native_inject.vector_set, original->vectors, original->vector_size);
    mask_write(thread->tid, original->signal_mask);
    registers_write(thread->tid, &original->registers);
}

/* Faults are the call's own, and would end the process if they had to wait. */
static uint64_t mask_of_calls(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
    uint64_t mask = ~(uint64_t)0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        mask &= ~((uint64_t)1 << (faults[i] - 1));
    return mask;
}

/* ---- beginning and end ---- */

static int thread_stage(struct injection_thread *thread)
{
    uint8_t image[IMAGE_MOST] = { 0 };
    int error = state_read(thread->tid, &thread->original);
    if (!error)
        error = native_inject.stage(&thread->original, &thread->code, image, sizeof image,
                                    &thread->plan);
    if (!error)
        error = inject_write(thread, thread->plan.frame, image, thread->plan.image_size);
    if (!error &&
        ptrace(PTRACE_SETOPTIONS, thread->tid, 0, PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD) < 0)
        error = -ESRCH;
    return error;
}

static void thread_free(struct injection_thread *thread)
{
    cleanup_close(&thread->memory_fd);
    free(thread);
}

DEFINE_CLEANUP(struct injection_thread *, thread_free)

int inject_begin(struct process *process, struct pause *pause, const struct inject_code *code,
                 struct injection_thread **ret, struct failure *why)
{
    CLEANUP(thread_freep) struct injection_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return failure_set(why, -ENOMEM, "out of memory");
    thread->tid = pause->tid;
    thread->was_stopped = pause->was_stopped;
    thread->is_child = pause->is_child;
    thread->code = *code;
    thread->memory_fd = openat(process->proc_fd, "mem", O_RDWR | O_CLOEXEC);
    if (thread->memory_fd < 0)
        return failure_set(why, errno == ENOENT ? -ESRCH : -EPERM,
                           "the memory of process %d cannot be written to: %s", process->pid,
                           strerror(errno));
    int error = thread_stage(thread);
    if (error == -ESRCH)
        return failure_set(why, error, "process %d ended", process->pid);
    if (error)
        return failure_set(why, error, "no call can be staged on the stack of thread %d",
                           pause->tid);
    *pause = (struct pause){ 0 };
    *ret = TAKE_PTR(thread);
    return 0;
}

void inject_end(struct injection_thread *thread)
{
    if (!thread)
        return;
    if (thread->tid) {
        original_restore(thread);
        struct pause pause = { .tid = thread->tid, .is_child = thread->is_child };
        thread_resume(&pause);
    }
    thread_free(thread);
}

/* ---- waiting ---- */

/* The next stop, as waitpid's status >> 8; or negative. */
static int stop_await(pid_t tid, uint64_t until_ns)
{
    for (uint64_t look_ns = LOOK_NS;;) {
        siginfo_t info = { 0 };
        if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) < 0)
            return errno == EINTR ? 0 : -ESRCH;
        if (info.si_pid)
            return info.si_status;
        if (clock_ns(CLOCK_MONOTONIC) > until_ns)
            return -ETIMEDOUT;
        const struct timespec look = { .tv_nsec = (long)look_ns };
        nanosleep(&look, NULL);
        look_ns = look_ns < LOOK_LONGEST_NS ? 2 * look_ns : look_ns;
    }
}

static bool stop_is_event(int stop, int event)
{
    return stop >> 8 == event;
}

/* One that runs stands for that; it goes on, and the kernel puts it back when the function has
 * returned. */
static void thread_leave(struct injection_thread *thread, bool runs)
{
    if (runs && ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) == 0)
        stop_await(thread->tid, clock_ns(CLOCK_MONOTONIC) + LEAVE_NS);
    struct pause pause = { .tid = TAKE(thread->tid, 0), .is_child = thread->is_child };
    thread_resume(&pause);
}

/* ---- calls ---- */

static bool is_back(struct injection_thread *thread, struct user_regs_struct *registers)
{
    size_t size = sizeof *registers;
    return set_read(thread->tid, NT_PRSTATUS, registers, &size) == 0 &&
           native_inject.rewind(registers, &thread->plan, &thread->code);
}

/*
 * It asks for the frame's state: that is put off, so that it asks again whenever it runs, and the
 * thread is made to stand where an interrupted system call has been left, as it did at first.
 */
static int call_catch(struct injection_thread *thread, const struct user_regs_struct *registers,
                      uint64_t until_ns)
{
    if (registers_write(thread->tid, registers) ||
        ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) < 0 ||
        ptrace(PTRACE_CONT, thread->tid, 0, 0) < 0)
        return -ESRCH;
    int stop = stop_await(thread->tid, until_ns);
    if (stop < 0)
        return stop;
    return stop_is_event(stop, PTRACE_EVENT_STOP) ? 0 : -ESRCH;
}

/* How the thread goes on after a stop that is not the end of the call: 0, or why not. */
static int stop_pass(struct injection_thread *thread, int stop)
{
    int signal = stop & 0x7f;
    if (stop_is_event(stop, PTRACE_EVENT_EXIT))
        return -ESRCH;
    bool group_stop = stop_is_event(stop, PTRACE_EVENT_STOP) && signal != SIGTRAP;
    if (group_stop && !thread->was_stopped)
        return ptrace(PTRACE_LISTEN, thread->tid, 0, 0) < 0 ? -ESRCH : 0;
    if (stop >> 8 || stop == SYSCALL_STOP)
        signal = 0;
    else if (!(mask_of_calls() >> (signal - 1) & 1))
        return -EFAULT;
    return ptrace(PTRACE_SYSCALL, thread->tid, 0, (long)signal) < 0 ? -ESRCH : 0;
}

void inject_set_late(struct injection_thread *thread, inject_late *late, void *context)
{
    thread->late = late;
    thread->late_context = context;
}

/* The next stop, soon or after somebody was told that it is late. */
static int stop_await_late(struct injection_thread *thread, uint64_t until_ns)
{
    for (unsigned times = 0; thread->late; times++) {
        uint64_t late_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)INJECT_LATE_MS * 1000000u;
        int stop = stop_await(thread->tid, late_ns);
        if (stop != -ETIMEDOUT)
            return stop;
        if (!thread->late(thread->late_context, times))
            thread->late = NULL;
    }
    return stop_await(thread->tid, until_ns);
}

static int call_await(struct injection_thread *thread)
{
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)INJECT_PATIENCE_MS * 1000000u;
    struct user_regs_struct registers;
    for (;;) {
        int stop = stop_await_late(thread, until_ns);
        if (stop < 0)
            return stop;
        if (stop == SYSCALL_STOP && is_back(thread, &registers))
            return call_catch(thread, &registers, until_ns);
        int error = stop ? stop_pass(thread, stop) : 0;
        if (error)
            return error;
    }
}

/* What the function returns to: the keeper, and behind the words that this takes off the frame. */
static int stack_write(struct injection_thread *thread)
{
    uint64_t words[WORDS_MOST] = { thread->code.keeper };
    size_t count = 1 + thread->code.keeper_words;
    if (count >= WORDS_MOST)
        return -EFAULT;
    words[count] = thread->code.restorer;
    return inject_write(thread, thread->plan.stack, words, (count + 1) * sizeof *words);
}

static int call_begin(struct injection_thread *thread, remote_addr function,
                      const uint64_t *arguments)
{
    struct inject_state *calling = &thread->calling;
    *calling = thread->original;
    native_inject.call(calling, &thread->plan, &thread->code, function, arguments);
    int error = stack_write(thread);
    if (!error)
        error = registers_write(thread->tid, &calling->registers);
    if (!error)
        error = set_write(thread->tid, native_inject.vector_set, calling->vectors,
                          calling->vector_size);
    if (!error)
        error = mask_write(thread->tid, mask_of_calls() | thread->original.signal_mask);
    if (!error && ptrace(PTRACE_SYSCALL, thread->tid, 0, 0) < 0)
        error = -ESRCH;
    return error;
}

int inject_call(struct injection_thread *thread, remote_addr function, const uint64_t *arguments,
                uint64_t *ret)
{
    int error = thread->tid ? call_begin(thread, function, arguments) : -ESRCH;
    if (!error)
        error = call_await(thread);
    if (error) {
        if (error == -EFAULT)
            original_restore(thread); /* as if it had not been made */
        thread_leave(thread, error == -ETIMEDOUT);
        return error;
    }
    ssize_t got = pread(thread->memory_fd, ret, sizeof *ret, (off_t)thread->plan.result);
    return got == (ssize_t)sizeof *ret ? 0 : -ESRCH;
}
