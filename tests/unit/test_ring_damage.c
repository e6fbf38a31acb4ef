/* What is no record, or not one of the process that it says, is refused alone: slots, rows of them
 * and records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_ring.h"

static const uint64_t NOW = MADE_START_NS + 1000000;

/* The record in it is not told, the one behind it is, and one is lost. */
static void check_refused(struct made_ring *made, const char *what)
{
    uint64_t lost = made_lost(made);
    change_put(made, RECORD_FREED, 9, 77, 0);
    long count = made_drain(made, NOW);
    if (count != 1 || made->count != 1 || made->events[0].block != 77)
        fail_msg("%s: %ld records, %zu events", what, count, made->count);
    if (made_lost(made) != lost + 1)
        fail_msg("%s: %llu lost", what, (unsigned long long)(made_lost(made) - lost));
}

static void test_broken_slots(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    uint64_t ticket = change_put(&made, RECORD_FREED, 7, 1, 0);
    slot_at(&made, ticket)->room[30] ^= 1;
    check_refused(&made, "a bit");
    ticket = change_put(&made, RECORD_FREED, 7, 1, 0);
    slot_at(&made, ticket)->check = ring_slot_check(slot_at(&made, ticket), ticket - 64);
    check_refused(&made, "another lap's check");
    ticket = change_put(&made, RECORD_FREED, 7, 1, 0);
    slot_at(&made, ticket)->pid = 0;
    slot_sign(&made, ticket);
    check_refused(&made, "no pid");
    ticket = change_put(&made, RECORD_FREED, 7, 1, 0);
    slot_at(&made, ticket)->count = RING_RECORD_SLOTS + 1;
    slot_sign(&made, ticket);
    check_refused(&made, "too many slots");
    ticket = change_put(&made, RECORD_FREED, 7, 1, 0);
    slot_at(&made, ticket)->count = 40;
    slot_sign(&made, ticket);
    check_refused(&made, "more slots than were given");
}

static void test_broken_rows(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    struct record_frame frames[100] = { { 0, 0 } };
    uint64_t ticket = block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 100);
    slot_at(&made, ticket + 2)->index = 1;
    slot_sign(&made, ticket + 2);
    check_refused(&made, "the same part twice");
    ticket = block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 100);
    slot_at(&made, ticket + 1)->pid = 8;
    slot_sign(&made, ticket + 1);
    check_refused(&made, "a part of another process");
    ticket = block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 100);
    slot_at(&made, ticket + 3)->room[0] ^= 1;
    check_refused(&made, "the last part is broken");
    block_put(&made, RECORD_ALLOCATED, 7, 1, 100, frames, 100);
    change_put(&made, RECORD_FREED, 7, 1, 0);
    assert_int_equal(made_drain(&made, NOW), 2);
}

static void check_block_refused(struct made_ring *made, struct block_record record, size_t size,
                                const char *what)
{
    record_put(made, &record, size);
    check_refused(made, what);
}

static void test_broken_records(void **state)
{
    (void)state;
    AUTO_RING struct made_ring made;
    made_ring_open(&made, 64);
    const size_t size = sizeof(struct block_record);
    const struct block_record right = { .head = head_of(RECORD_ALLOCATED, 7, size),
                                        .block = 1,
                                        .size = 100 };
    struct block_record wrong = right;
    wrong.head.kind = RECORD_KINDS;
    check_block_refused(&made, wrong, size, "an unknown kind");
    wrong = right;
    wrong.head.size = sizeof(struct record_head);
    check_block_refused(&made, wrong, size, "too short for its kind");
    wrong.head.size = RING_SLOT_ROOM + 1;
    check_block_refused(&made, wrong, size, "longer than its slots");
    wrong.head.size = 0;
    check_block_refused(&made, wrong, size, "no size");
    wrong.head.size = UINT32_MAX;
    check_block_refused(&made, wrong, size, "a huge size");
    wrong = right;
    wrong.frame_count = 1;
    check_block_refused(&made, wrong, size, "a frame that is not there");
    wrong.frame_count = UINT16_MAX;
    check_block_refused(&made, wrong, size, "frames that are not there");
    wrong = right;
    wrong.size = 0;
    check_block_refused(&made, wrong, size, "a block of no size");
    wrong.size = UINT64_MAX;
    check_block_refused(&made, wrong, size, "a block of all sizes");
    wrong = right;
    wrong.block = 0;
    check_block_refused(&made, wrong, size, "a block without a number");
    wrong = right;
    wrong.head.kind = RECORD_COPIED;
    check_block_refused(&made, wrong, size, "a copy with a number");
    wrong = right;
    wrong.domain = DOMAIN_OBJECT + 1;
    check_block_refused(&made, wrong, size, "nobody's domain");
    change_put(&made, RECORD_FREED, 7, 0, 0);
    check_refused(&made, "no block is freed");
    struct code_record code = { .head = head_of(RECORD_CODE, 7, sizeof code),
                                .name_size = UINT32_MAX,
                                .file_size = 1 };
    record_put(&made, &code, sizeof code);
    check_refused(&made, "a name that is not there");
    struct change_record foreign = { head_of(RECORD_FREED, 7, sizeof foreign), 1, 0 };
    uint64_t ticket = record_put(&made, &foreign, sizeof foreign);
    slot_at(&made, ticket)->pid = 8;
    slot_sign(&made, ticket);
    check_refused(&made, "in another process's name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_slots),
        cmocka_unit_test(test_broken_rows),
        cmocka_unit_test(test_broken_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
