/* A process that stands while a call asks the loader: not as long as one of its threads is there.
 * And what it has loaded, seen from outside. */
#define _GNU_SOURCE 1 /* dl_iterate_phdr */

#include "child.h"
#include "sampler/loop/loaded_list.h"
#include "sampler/loop/quiet.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

enum { THREADS = 3 };

static int stay(struct dl_phdr_info *info, size_t size, void *side)
{
    (void)info;
    (void)size;
    child_say_ready(side);
    child_await_order(side);
    return 1;
}

static _Atomic int spinning;

/* Who begins may be in the allocator still. */
static void *walk(void *side)
{
    while (spinning < THREADS)
        sched_yield();
    dl_iterate_phdr(stay, side);
    child_say_ready(side);
    pause();
    return NULL;
}

static void *spin(void *unused)
{
    volatile unsigned long count = 0;
    spinning++;
    while (++count)
        ;
    return unused;
}

static void begin(struct child_side *side)
{
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, spin, NULL);
    pthread_create(&thread, NULL, walk, side);
    pause();
}

struct asked {
    struct process *process;
    struct thread_places *places;
    struct stillness still;
    const char *obstacle;
    pid_t thread;
};

static struct asked asked_open(const struct child *child)
{
    struct failure why;
    struct asked asked = { 0 };
    child_await_ready(child);
    assert_int_equal(process_open(child->pid, &asked.process, &why), 0);
    assert_int_equal(thread_places_open(asked.process, &asked.places), 0);
    assert_int_equal(thread_places_learn(asked.places), 0);
    return asked;
}

static int ask(struct asked *asked)
{
    return quiet_begin(asked->process, asked->places, &asked->still, &asked->obstacle,
                       &asked->thread);
}

static void asked_close(struct asked *asked)
{
    thread_places_close(asked->places);
    process_close(asked->process);
}

static void test_one_is_there(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(begin, NULL);
    struct asked asked = asked_open(&child);
    await(thread_letter(child.pid) == 'S');
    assert_int_equal(ask(&asked), -EAGAIN);
    assert_non_null(strstr(asked.obstacle, "loader"));
    assert_true(asked.thread && asked.thread != child.pid);

    child_order(&child);
    child_await_ready(&child);
    int error;
    while ((error = ask(&asked)) == -EAGAIN) /* in a page fault, or on its way out */
        sched_yield();
    assert_int_equal(error, 0);
    assert_int_equal(asked.still.count, THREADS + 2);
    quiet_loosen(asked.places, &asked.still);
    for (size_t i = 0; i < asked.still.count; i++)
        assert_true(asked.still.pauses[i].tid);
    stillness_end(&asked.still);
    assert_true(asked.still.stood.count == THREADS + 2 && asked.still.stood.longest_ns);
    asked_close(&asked);
}

static void load(struct child_side *side)
{
    child_say_ready(side);
    child_await_order(side);
    if (!dlopen("libanl.so.1", RTLD_NOW))
        _exit(91);
    child_say_ready(side);
    child_await_order(side);
}

static void test_list(void **state)
{
    (void)state;
    AUTO_CHILD struct child child = child_start(load, NULL);
    struct asked asked = asked_open(&child);
    struct loaded_list *list;
    struct maps maps;
    assert_int_equal(maps_read(asked.process->proc_fd, &maps), 0);
    assert_int_equal(loaded_list_open(asked.process, &maps, &list), 0);
    maps_done(&maps);
    assert_true(loaded_list_look(list));
    assert_false(loaded_list_look(list));
    child_order(&child);
    child_await_ready(&child);
    assert_true(loaded_list_look(list));
    assert_false(loaded_list_look(list));
    loaded_list_close(list);
    asked_close(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_there),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
