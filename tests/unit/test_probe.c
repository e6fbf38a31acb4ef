/* Is that a runtime? One whose newest threads end while it is asked is one still. */
#include "pyabi/python.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/counted_remote.h"

enum { RUNTIME = 0x10000, INTERPRETER = 0x100000, THREADS = 0x200000, SIZE = 0x8000 };

struct made {
    struct counted_remote counted;
    struct image_range ranges[3];
    const struct py_layout *layout;
    unsigned ends; /* threads that end as soon as they have been found at the head */
    remote_addr newest;
    uint8_t runtime[SIZE], interpreter[SIZE], threads[SIZE];
};

static void put(uint8_t *bytes, struct py_offset offset, uint64_t value)
{
    memcpy(bytes + offset_of(offset), &value, sizeof value);
}

/* Whoever has read the head looks at a thread next, which ends before. */
static void thread_ends(struct counted_remote *counted)
{
    struct made *made = (struct made *)counted;
    if (!made->ends)
        return;
    made->ends--;
    made->newest += 64;
    put(made->interpreter, made->layout->interp.threads_head, made->newest);
}

static int probe(struct made *made, unsigned ends, uint64_t back)
{
    uint32_t version = 0;
    struct {
        char cookie[8];
        uint64_t version, free_threaded;
    } head = { "xdebugp", 0x030d01f0, 1 };
    *made = (struct made){ .layout = layout_find(3, 13, true), .newest = THREADS };
    const struct py_layout *layout = made->layout;
    head.cookie[7] = 'y';
    memcpy(made->runtime, &head, sizeof head);
    put(made->runtime, layout->runtime.interpreters_head, INTERPRETER);
    put(made->runtime, layout->runtime.interpreters_main, INTERPRETER);
    put(made->interpreter, layout->interp.threads_head, THREADS);
    /* ended ones bear nothing; the one that stays points back */
    put(made->threads + 64 * ends, layout->thread.interp, back);
    made->ranges[0] = (struct image_range){ RUNTIME, made->runtime, SIZE };
    made->ranges[1] = (struct image_range){ INTERPRETER, made->interpreter, SIZE };
    made->ranges[2] = (struct image_range){ THREADS, made->threads, SIZE };
    counted_remote_init(&made->counted, made->ranges, 3);
    made->counted.before_piece = thread_ends;
    made->ends = ends;
    return python_probe(&made->counted.remote, RUNTIME, 0, &version);
}

static void test_threads_that_end(void **state)
{
    (void)state;
    static struct made made;
    for (unsigned ends = 0; ends < 40; ends++)
        assert_int_equal(probe(&made, ends, INTERPRETER), 0);
}

static void test_no_way_back(void **state)
{
    (void)state;
    static struct made made;
    for (unsigned ends = 0; ends < 40; ends++)
        assert_int_equal(probe(&made, ends, INTERPRETER + 8), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_that_end),
        cmocka_unit_test(test_no_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
