/*
 * The threads of all interpreters, and their names. The target may be running: links are checked,
 * walks are bounded, and a list that changes under the walk is torn.
 */
#include "pyabi/field.h"
#include "pyabi/python.h"
#include "pyabi/thread_names.h"
#include "pyabi/walk.h"

#include <string.h>

enum {
    THREAD_MAX = 65536,
    STATE_MAX = 4096,          /* of a thread state, as far as we look */
    CODES_PER_ROUND = 1 << 16, /* more are forgotten when the next round starts */
    TEXTS_PER_ROUND = 8 << 20,
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

const uint32_t usual_tid_offsets[USUAL_TID_OFFSETS] = { 720, 208 };

static bool tid_offset_is_usual(uint32_t offset)
{
    for (size_t i = 0; i < USUAL_TID_OFFSETS; i++)
        if (usual_tid_offsets[i] == offset)
            return true;
    return false;
}

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

/*
 * A host may have begun Python in another of its threads, and nobody here bears the process's id,
 * or only by chance, where it is 1. What stands at a usual place is taken, unless it cannot be an
 * id.
 */
static void tid_offset_guess(struct python *python, struct remote *memory, const uint64_t *idents,
                             size_t count)
{
    for (size_t at = 0; at < USUAL_TID_OFFSETS; at++) {
        size_t plausible = 0, strange = 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t tid = 0;
            if (remote_read(memory, idents[i] + usual_tid_offsets[at], &tid, sizeof tid) == 0)
                *(tid > TID_MAX ? &strange : &plausible) += tid != 0;
        }
        if (plausible && !strange) {
            python->tid_offset_plus_one = usual_tid_offsets[at] + 1;
            return;
        }
    }
}

/* The last of the idents is the main thread's, where that is one of Python's. */
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
        if (votes > most || (votes == most && votes >= 0 && tid_offset_is_usual(offset))) {
            most = votes;
            python->tid_offset_plus_one = offset + 1;
        }
    }
    python->tid_witnesses = most > 0 ? (size_t)most : 0;
    bool usual = most == 0 && tid_offset_is_usual(python->tid_offset_plus_one - 1);
    if (most <= 0 && !usual)
        tid_offset_guess(python, memory, idents, count);
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

/* Where the innermost run of the evaluation loop keeps its record: on the stack, or, when there is
 * none, in the thread state (3.11, 3.12). */
static remote_addr c_stack_read(const struct py_layout *layout, remote_addr address,
                                const uint8_t *state)
{
    if (!offset_present(layout->thread.cframe))
        return 0;
    remote_addr cframe = field_address(state, layout->thread.cframe);
    return cframe - address < STATE_MAX ? 0 : cframe;
}

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
        .c_stack = c_stack_read(layout, address, state),
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

/* The frame that every stack of 3.15 ends with is none of the program's. */
static bool state_has_frames(const struct python *python, struct remote *memory, remote_addr state)
{
    const struct py_layout *layout = &python->layout;
    remote_addr head = remote_field(memory, state, layout->thread.frame, 8);
    if (!offset_present(layout->thread.frame))
        head = remote_field(memory, remote_field(memory, state, layout->thread.cframe, 8),
                            layout->cframe.current_frame, 8);
    if (!head || !layout->shim_owners)
        return head;
    uint64_t owner = remote_field(memory, head, layout->frame.owner, 1);
    return remote_field(memory, head, layout->frame.previous, 8) ||
           !(layout->shim_owners >> (owner & 7) & 1);
}

static bool ids_are_shared(const struct py_thread *a, const struct py_thread *b)
{
    return a->ident == b->ident || (a->native_id && a->native_id == b->native_id);
}

/*
 * A thread state that has not begun bears no ids, or, before 3.12, those of the thread that made
 * it; the two are written one after the other by the thread itself. With another's id and without
 * frames it is nobody's yet. With frames its maker had it run by somebody else, who is not told of:
 * a host does so, and interpreters that are made here and run there.
 */
static bool thread_has_begun(struct python *python, struct remote *memory, size_t kept,
                             struct py_thread *thread)
{
    if (!thread->ident || (!thread->native_id && offset_present(python->layout.thread.native_id)))
        return false;
    for (size_t i = 0; i < kept; i++) {
        struct py_thread *older = &python->threads[i];
        if (!ids_are_shared(older, thread))
            continue;
        bool is_sibling = older->interpreter == thread->interpreter;
        if (is_sibling && !state_has_frames(python, memory, thread->state))
            return false;
        older->shares_id = thread->shares_id = true;
        if (is_sibling)
            thread->native_id = 0;
    }
    return true;
}

/* Who is known by where its stack lies may have it run by another at the next look. */
static void unborn_drop(struct python *python, struct remote *memory, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < python->thread_count; i++) {
        struct py_thread thread = python->threads[i];
        if (thread_has_begun(python, memory, kept, &thread))
            python->threads[kept++] = thread;
        python->awaits_birth |= thread.shares_id && offset_present(python->layout.thread.cframe);
    }
    python->awaits_birth = python->awaits_birth || kept < python->thread_count;
    python->thread_count = kept;
}

static int threads_walk(struct python *python, struct remote *memory,
                        const struct interpreter *interpreter, uint64_t main_id)
{
    const struct py_layout *layout = &python->layout;
    uint8_t state[STATE_MAX];
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
    unborn_drop(python, memory, first);
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

static bool remembers_too_much(const struct python *python)
{
    return code_cache_count(python->codes) > CODES_PER_ROUND ||
           intern_size(python->texts) > TEXTS_PER_ROUND;
}

static void round_start(struct python *python)
{
    page_cache_forget(python->pages);
    python->ahead = NULL;
    python->thread_count = python->head_count = 0;
    python->awaits_birth = false;
    code_cache_start_round(python->codes);
    intern_empty(python->names);
    if (remembers_too_much(python)) {
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

/* A thread in front of its list knows of one that was put before it; no list begins with the
 * runtime's interpreters. */
static const uint8_t *front_thread(const struct python *python, struct view *ahead, size_t index)
{
    return index ? view_find(ahead, python->head_values[index], python->layout.thread.size) : NULL;
}

/* Together with the view, which tells of some of them itself. */
static int heads_read_ahead(struct python *python, struct view *ahead, remote_addr *now)
{
    struct remote_piece pieces[HEADS_WATCHED];
    size_t count = 0;
    for (size_t i = 0; i < python->head_count; i++)
        if (!front_thread(python, ahead, i))
            pieces[count++] = (struct remote_piece){ python->heads[i], &now[i], sizeof now[i] };
        else
            now[i] = 0;
    int error =
        view_refill_with(ahead, python->memory, python_running_looks(python, ahead), pieces, count);
    for (size_t i = 0; i < python->head_count && !error; i++) {
        const uint8_t *front = now[i] ? NULL : front_thread(python, ahead, i);
        if (front && field_address(front, python->layout.thread.prev) == 0)
            now[i] = python->head_values[i];
    }
    return error;
}

/* What goes wrong with the view alone goes wrong again when it is asked for. */
static int heads_read(struct python *python, struct view *ahead, remote_addr *now)
{
    struct remote_piece pieces[HEADS_WATCHED];
    if (ahead && python->head_count && heads_read_ahead(python, ahead, now) == 0) {
        python->ahead = ahead;
        return 0;
    }
    for (size_t i = 0; i < python->head_count; i++)
        pieces[i] = (struct remote_piece){ python->heads[i], &now[i], sizeof now[i] };
    return remote_read_all(python->memory, pieces, python->head_count);
}

int python_threads_changed(struct python *python, struct view *ahead)
{
    remote_addr now[HEADS_WATCHED];
    page_cache_forget(python->pages);
    python->ahead = NULL;
    int error = heads_read(python, ahead, now);
    if (error)
        return error;
    /* more interpreters than can be watched: look each time */
    return python->awaits_birth || remembers_too_much(python) || python->head_count == 0 ||
           python->head_count == HEADS_WATCHED ||
           memcmp(now, python->head_values, python->head_count * sizeof *now) != 0;
}

bool python_ran_ahead(const struct python *python, const struct view *view)
{
    return python->ahead == view && view_has_moved(view);
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
    uint8_t state[STATE_MAX];
    page_cache_forget(python->pages);
    struct remote *memory = page_cache_remote(python->pages);
    remote_addr at = remote_field(memory, thread->interpreter, layout->interp.threads_head, 8);
    for (size_t i = 0; at && at != thread->state && i < THREAD_MAX; i++)
        at = remote_field(memory, at, layout->thread.next, 8);
    if (!at || remote_read(memory, at, state, layout->thread.size))
        return false;
    /* a new thread gets memory and stack, and so the ident, of one that ended */
    uint64_t ident = field_u64(state, layout->thread.ident);
    return ident == thread->ident &&
           (thread->shares_id || native_id_read(python, memory, state, ident) == thread->native_id);
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
        bool is_its_own = thread->native_id || !thread->shares_id; /* else it is its maker's */
        if (thread->ident == ident && is_its_own && thread->interpreter == naming->interpreter)
            thread->name = intern_text(python->names, name);
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
