/* The registry of waits: enter, list, leave, a full table, and readers beside writers. */
#include "../check.h"

#include "base/mem.h"
#include "base/member.h"
#include "base/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { TABLE_MAX = 4096, ROUNDS = 2000, WRITERS = 3 };

static void waits_are_listed_by_owner(void **state)
{
    struct tt_member alice = {.rank = 1};
    struct tt_member bob = {.rank = 2};
    struct tt_wait list[4];
    (void)state;
    const int first = tt_wait_enter(&(struct tt_wait){&alice, 3, 7, "slot of next", {0}, 11});
    const int second = tt_wait_enter(&(struct tt_wait){&bob, -1, 8, "arrival", {0}, 12});
    assert_true(first >= 0 && second >= 0 && first != second);
    assert_int_equal(tt_wait_list(NULL, list, 4), 2);
    assert_int_equal(tt_wait_list(&alice, list, 4), 1);
    assert_ptr_equal(list[0].owner, &alice);
    assert_int_equal(list[0].peer, 3);
    assert_int_equal(list[0].op_seq, 7);
    assert_int_equal(list[0].since_nsec, 11);
    assert_string_equal(list[0].what, "slot of next");
    assert_int_equal(tt_wait_list(NULL, list, 1), 1);
    tt_wait_leave(first);
    assert_int_equal(tt_wait_list(&alice, list, 4), 0);
    tt_wait_leave(second);
    tt_wait_leave(-1);
    assert_int_equal(tt_wait_list(NULL, list, 4), 0);
}

static void full_table_refuses(void **state)
{
    struct tt_member owner = {0};
    static int slots[TABLE_MAX];
    static struct tt_wait list[TABLE_MAX];
    int count = 0;
    (void)state;
    while (count < TABLE_MAX) {
        const int slot = tt_wait_enter(&(struct tt_wait){&owner, 0, 0, "x", {0}, 0});
        if (slot < 0) break;
        slots[count++] = slot;
    }
    assert_true(count > 100 && count < TABLE_MAX);
    assert_int_equal(tt_wait_list(&owner, list, TABLE_MAX), count);
    for (int i = 0; i < count; i++) {
        tt_wait_leave(slots[i]);
    }
    assert_int_equal(tt_wait_list(&owner, list, TABLE_MAX), 0);
}

struct writer {
    struct tt_member member;
    _Atomic bool *stop;
};

/* Fields of one entry always carry the same number, so a torn copy shows. */
static void *write_waits(void *argument)
{
    struct writer *writer = argument;
    for (uint64_t i = 1; !atomic_load(writer->stop); i++) {
        const struct tt_wait wait = {&writer->member, (int)(i & 0xFFFF), i, "x", {i, i, i}, i};
        tt_wait_leave(tt_wait_enter(&wait));
    }
    return NULL;
}

static void readers_never_see_torn_entries(void **state)
{
    _Atomic bool stop = false;
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    struct tt_wait list[8];
    bool torn = false;
    (void)state;
    memset(writers, 0, sizeof(writers));
    for (int i = 0; i < WRITERS; i++) {
        writers[i].stop = &stop;
        assert_int_equal(pthread_create(&threads[i], NULL, write_waits, &writers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const int count = tt_wait_list(NULL, list, 8);
        for (int k = 0; k < count; k++) {
            torn = torn || list[k].op_seq != list[k].since_nsec ||
                   list[k].peer != (int)(list[k].op_seq & 0xFFFF);
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_false(torn);
}

static void relax_counts_and_saturates(void **state)
{
    uint32_t spins = 0;
    (void)state;
    for (int i = 0; i < 2300; i++) {
        tt_wait_relax(&spins, i % 2);
    }
    assert_int_equal(spins, 2300);
    spins = UINT32_MAX;
    tt_wait_relax(&spins, false);
    assert_int_equal(spins, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_listed_by_owner),
        cmocka_unit_test(full_table_refuses),
        cmocka_unit_test(readers_never_see_torn_entries),
        cmocka_unit_test(relax_counts_and_saturates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
