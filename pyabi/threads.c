/*
 * The threads of all interpreters, and their names. The target may be running: links are checked,
 * walks are bounded, and a list that changes under the walk is torn.
 */
#include "pyabi/field.h"
#include "pyabi/python.h"
#include "pyabi/thread_names.h"

#include <string.h>

enum {
    THREAD_MAX = 65536,
    CODES_PER_ROUND = 1 << 16, /* more are forgotten when the next round starts */
    TEXTS_PER_ROUND = 32 << 20,
    TID_MAX = 1 << 22, /* PID_MAX_LIMIT, include/linux/threads.h */
    TID_WITNESSES = 16,
    PTHREAD_WORDS = 512, /* the C library's thread struct is searched so far for the kernel's id */
};

/* Reads a field of a remote struct; 0 when it is absent or unreadable, which every caller takes for
 * "none". */
static uint64_t remote_field(struct remote *memory, remote_addr base, struct py_offset field,
                             size_t size)
{
    uint64_t value = 0;
    if (!offset_present(field) || remote_read(memory, base + offset_of(field), &value, size))
        return 0;
    return value;
}

struct interpreter {
    remote_addr address;
    int64_t id;
    remote_addr gil, gil_end; /* 0: works without one */
};

static void interpreter_read(struct python *python, struct remote *memory, remote_addr address,
                             struct interpreter *ret)
{
    const struct py_layout *layout = &python->layout;
    *ret = (struct interpreter){ .address = address };
    ret->id = (int64_t)remote_field(memory, address, layout->interp.id, 8);
    remote_addr gil = offset_present(layout->runtime.gil)
                          ? python->runtime + offset_of(layout->runtime.gil)
                          : remote_field(memory, address, layout->interp.gil, 8);
    bool enabled =
        !offset_present(layout->gil.enabled) || remote_field(memory, gil, layout->gil.enabled, 4);
    if (gil && enabled) {
        ret->gil = gil;
        ret->gil_end = gil + offset_of(layout->gil.end);
    }
}

/* ---- the kernel's id of a thread ---- */

/* In glibc on x86-64 it stands here: who else holds the same number by chance gives way. */
static const uint32_t usual_tid_offset = 720;

/*
 * Before 3.11 only the C library knows it: in the main thread's struct it is the process's id. A
 * small one, as in a container, may stand there twice; then the other threads tell, which have
 * other ids at the same place. How many confirm it, or -1 when one speaks against it; one that is
 * just beginning or ending says nothing.
 */
static int tid_offset_vote(struct remote *memory, uint32_t offset, uint64_t main_id,
                           const uint64_t *idents, size_t count)
{
    int votes = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t tid = 0;
        bool is_main = idents[i] == idents[count - 1]; /* not begun: it bears its maker's still */
        if (is_main || remote_read(memory, idents[i] + offset, &tid, sizeof tid) || tid == 0)
            continue;
        if (tid == main_id || tid > TID_MAX)
            return -1;
        votes++;
    }
    return votes;
}

/* The last of the idents is the main thread's. */
static void tid_offset_learn(struct python *python, struct remote *memory, uint64_t main_id,
                             const uint64_t *idents, size_t count)
{
    uint32_t words[PTHREAD_WORDS];
    int most = -1;
    long got = remote_read_some(memory, idents[count - 1], words, sizeof words);
    for (long i = 0; i < got / 4; i++) {
        uint32_t offset = (uint32_t)i * 4;
        if (words[i] != main_id)
            continue;
        int votes = tid_offset_vote(memory, offset, main_id, idents, count);
        if (votes > most || (votes == most && votes >= 0 && offset == usual_tid_offset)) {
            most = votes;
            python->tid_offset_plus_one = offset + 1;
        }
    }
    python->tid_witnesses = most > 0 ? (size_t)most : 0;
}

static uint64_t native_id_read(struct python *python, struct remote *memory, const uint8_t *state,
                               uint64_t ident)
{
    uint32_t tid = 0;
    if (offset_present(python->layout.thread.native_id))
        return field_u64(state, python->layout.thread.native_id);
    if (!python->tid_offset_plus_one ||
        remote_read(memory, ident + python->tid_offset_plus_one - 1, &tid, sizeof tid))
        return 0;
    return tid;
}

/* ---- the lists ---- */

static int thread_add(struct python *python, struct remote *memory, remote_addr address,
                      const uint8_t *state, const struct interpreter *interpreter)
{
    const struct py_layout *layout = &python->layout;
    int error = array_reserve(&python->threads, &python->thread_capacity, python->thread_count + 1,
                              sizeof *python->threads);
    if (error)
        return error;
    struct py_thread *thread = &python->threads[python->thread_count++];
    *thread = (struct py_thread){
        .state = address,
        .interpreter = interpreter->address,
        .interpreter_id = interpreter->id,
        .ident = field_u64(state, layout->thread.ident),
        .gil = interpreter->gil,
        .gil_end = interpreter->gil_end,
    };
    thread->native_id = native_id_read(python, memory, state, thread->ident);
    return 0;
}

/* Before 3.11. New threads are put in front: the last of the main interpreter's is the main thread.
 */
static void main_thread_learn(struct python *python, struct remote *memory, remote_addr head,
                              uint64_t main_id)
{
    const struct py_layout *layout = &python->layout;
    uint64_t idents[TID_WITNESSES + 1];
    size_t count = 0;
    if (offset_present(layout->thread.native_id) || python->tid_witnesses)
        return;
    for (size_t i = 0; head && i < THREAD_MAX; i++) {
        /* the newest are the witnesses, the last place is the main thread's */
        uint64_t ident = remote_field(memory, head, layout->thread.ident, 8);
        count += count <= TID_WITNESSES;
        idents[count - 1] = ident;
        head = remote_field(memory, head, layout->thread.next, 8);
    }
    if (!count)
        return;
    tid_offset_learn(python, memory, main_id, idents, count);
}

/* Oldest first, as people count them. */
static void threads_reverse(struct python *python, size_t first)
{
    for (size_t last = python->thread_count; first + 1 < last; first++) {
        struct py_thread other = python->threads[first];
        python->threads[first] = python->threads[--last];
        python->threads[last] = other;
    }
}

/*
 * A thread state that has not begun bears no ids, or, before 3.12, those of the thread that made
 * it; the two are written one after the other by the thread itself. With another's id it is
 * nobody's yet.
 */
static bool thread_has_begun(const struct python *python, size_t first, size_t end,
                             const struct py_thread *thread)
{
    if (!thread->ident || (!thread->native_id && offset_present(python->layout.thread.native_id)))
        return false;
    for (size_t i = first; i < end; i++) {
        const struct py_thread *older = &python->threads[i];
        if (older->ident == thread->ident ||
            (thread->native_id && older->native_id == thread->native_id))
            return false;
    }
    return true;
}

static void unborn_drop(struct python *python, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < python->thread_count; i++)
        if (thread_has_begun(python, first, kept, &python->threads[i]))
            python->threads[kept++] = python->threads[i];
    python->awaits_birth = python->awaits_birth || kept < python->thread_count;
    python->thread_count = kept;
}

static int threads_walk(struct python *python, struct remote *memory,
                        const struct interpreter *interpreter, uint64_t main_id)
{
    const struct py_layout *layout = &python->layout;
    uint8_t state[4096];
    size_t first = python->thread_count;
    remote_addr at = remote_field(memory, interpreter->address, layout->interp.threads_head, 8);
    if (layout->thread.size > sizeof state)
        return -EBADMSG;
    if (interpreter->id == 0)
        main_thread_learn(python, memory, at, main_id);
    for (remote_addr before = 0; at;) {
        int error = remote_read(memory, at, state, layout->thread.size);
        if (error)
            return error == -EFAULT ? -EAGAIN : error;
        if (field_address(state, layout->thread.interp) != interpreter->address ||
            field_address(state, layout->thread.prev) != before ||
            python->thread_count >= THREAD_MAX)
            return -EAGAIN;
        error = thread_add(python, memory, at, state, interpreter);
        if (error)
            return error;
        before = at;
        at = field_address(state, layout->thread.next);
    }
    threads_reverse(python, first);
    unborn_drop(python, first);
    return 0;
}

/* The list has the newest interpreter first; we want the main one there. One that does not end goes
 * in a circle. */
static int interpreters_list(struct python *python, struct remote *memory, remote_addr *list)
{
    const struct py_layout *layout = &python->layout;
    remote_addr at = remote_field(memory, python->runtime, layout->runtime.interpreters_head, 8);
    int count = 0;
    while (at && count < INTERPRETER_MAX) {
        list[count++] = at;
        at = remote_field(memory, at, layout->interp.next, 8);
    }
    if (at || count == 0)
        return -EAGAIN;
    for (int i = 0; i < count / 2; i++) {
        remote_addr other = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = other;
    }
    return count;
}

static void round_start(struct python *python)
{
    page_cache_forget(python->pages);
    python->thread_count = python->head_count = 0;
    python->awaits_birth = false;
    code_cache_start_round(python->codes);
    if (code_cache_count(python->codes) > CODES_PER_ROUND ||
        intern_size(python->texts) > TEXTS_PER_ROUND) {
        code_cache_empty(python->codes);
        intern_empty(python->texts);
    }
}

/* ---- has it changed? ---- */

/* New threads and interpreters are put in front of their lists, so the lists' first links tell of
 * them. */
static void head_watch(struct python *python, remote_addr head, remote_addr value)
{
    if (python->head_count == HEADS_WATCHED)
        return;
    python->heads[python->head_count] = head;
    python->head_values[python->head_count++] = value;
}

int python_threads_changed(struct python *python)
{
    page_cache_forget(python->pages);
    remote_addr now[HEADS_WATCHED];
    struct remote_piece pieces[HEADS_WATCHED];
    for (size_t i = 0; i < python->head_count; i++)
        pieces[i] = (struct remote_piece){ python->heads[i], &now[i], sizeof now[i] };
    int error = remote_read_all(python->memory, pieces, python->head_count);
    if (error)
        return error;
    /* more interpreters than can be watched: look each time */
    return python->awaits_birth || python->head_count == 0 || python->head_count == HEADS_WATCHED ||
           memcmp(now, python->head_values, python->head_count * sizeof *now) != 0;
}

int python_list_threads(struct python *python, uint64_t main_id, const struct py_thread **ret)
{
    remote_addr list[INTERPRETER_MAX];
    round_start(python);
    struct remote *memory = page_cache_remote(python->pages);
    int count = interpreters_list(python, memory, list);
    if (count < 0)
        return count;
    head_watch(python, python->runtime + offset_of(python->layout.runtime.interpreters_head),
               list[count - 1]);
    for (int i = 0; i < count; i++) {
        struct interpreter interpreter;
        interpreter_read(python, memory, list[i], &interpreter);
        head_watch(python, list[i] + offset_of(python->layout.interp.threads_head),
                   remote_field(memory, list[i], python->layout.interp.threads_head, 8));
        int error = threads_walk(python, memory, &interpreter, main_id);
        if (error) {
            python->head_count = 0; /* what was not read whole has changed */
            return error;
        }
    }
    *ret = python->threads;
    return (int)python->thread_count;
}

bool python_has_thread(struct python *python, const struct py_thread *thread)
{
    const struct py_layout *layout = &python->layout;
    page_cache_forget(python->pages);
    struct remote *memory = page_cache_remote(python->pages);
    remote_addr at = remote_field(memory, thread->interpreter, layout->interp.threads_head, 8);
    for (size_t i = 0; at && at != thread->state && i < THREAD_MAX; i++)
        at = remote_field(memory, at, layout->thread.next, 8);
    return at == thread->state &&
           remote_field(memory, at, layout->thread.ident, 8) == thread->ident;
}

/* ---- names ---- */

struct naming {
    struct python *python;
    remote_addr interpreter;
};

static int thread_name(void *context, uint64_t ident, const char *name)
{
    struct naming *naming = context;
    struct python *python = naming->python;
    for (size_t i = 0; i < python->thread_count; i++) {
        struct py_thread *thread = &python->threads[i];
        if (thread->ident == ident && thread->interpreter == naming->interpreter)
            thread->name = intern_text(python->texts, name);
    }
    return 0;
}

void python_name_threads(struct python *python)
{
    struct naming naming = { .python = python };
    for (size_t i = 0; i < python->thread_count; i++) {
        if (python->threads[i].interpreter == naming.interpreter)
            continue;
        naming.interpreter = python->threads[i].interpreter;
        thread_names_walk(page_cache_remote(python->pages), &python->layout, naming.interpreter,
                          thread_name, &naming);
    }
}
