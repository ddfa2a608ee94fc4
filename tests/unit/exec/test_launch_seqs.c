/* Sequence numbers come out in the order in which they went in, through the word and through the
 * ring. */
#include "../check.h"

#include "exec/launch_seqs.h"

#include <pthread.h>
#include <sched.h>

enum { NUMBERS = 20000 };

static void empty_has_none(void **state)
{
    struct tt_launch_seqs seqs;
    uint64_t seq;
    (void)state;
    tt_launch_seqs_init(&seqs);
    assert_false(tt_launch_seqs_take(&seqs, &seq));
    assert_true(tt_launch_seqs_put(&seqs, 0)); /* the first one of a queue */
    assert_true(tt_launch_seqs_take(&seqs, &seq));
    assert_int_equal(seq, 0);
    assert_false(tt_launch_seqs_take(&seqs, &seq));
    tt_launch_seqs_fini(&seqs);
}

/* Put and take in bursts, so that the ring fills, grows, and empties while the word is used. */
static void keeps_order(void **state)
{
    struct tt_launch_seqs seqs;
    uint64_t put = 0, taken = 0, seq;
    (void)state;
    tt_launch_seqs_init(&seqs);
    for (uint64_t burst = 0; put < NUMBERS; burst++) {
        for (uint64_t k = 0; k < burst * 7 % 13 + 1; k++)
            assert_true(tt_launch_seqs_put(&seqs, put++));
        for (uint64_t k = 0; k < burst * 5 % 17 && taken < put; k++) {
            assert_true(tt_launch_seqs_take(&seqs, &seq));
            assert_int_equal(seq, taken++);
        }
    }
    while (tt_launch_seqs_take(&seqs, &seq))
        assert_int_equal(seq, taken++);
    assert_int_equal(taken, put);
    tt_launch_seqs_fini(&seqs);
}

static void *put_all(void *arg)
{
    for (uint64_t k = 0; k < NUMBERS; k++) {
        if (!tt_launch_seqs_put(arg, k)) return arg;
    }
    return NULL;
}

static void keeps_order_between_threads(void **state)
{
    struct tt_launch_seqs seqs;
    pthread_t thread;
    void *failed = NULL;
    uint64_t seq;
    (void)state;
    tt_launch_seqs_init(&seqs);
    assert_int_equal(pthread_create(&thread, NULL, put_all, &seqs), 0);
    for (uint64_t taken = 0; taken < NUMBERS;) {
        if (tt_launch_seqs_take(&seqs, &seq)) {
            assert_int_equal(seq, taken++);
        } else {
            sched_yield();
        }
    }
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_false(tt_launch_seqs_take(&seqs, &seq));
    tt_launch_seqs_fini(&seqs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_none),
        cmocka_unit_test(keeps_order),
        cmocka_unit_test(keeps_order_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
