/* Tickets come out in the order in which they went in, through the word and through the ring. */
#include "exec/tickets.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TICKETS = 20000 };

static void empty_has_none(void **state)
{
    struct tt_tickets tickets;
    uint64_t ticket;
    (void)state;
    tt_tickets_init(&tickets);
    assert_false(tt_tickets_take(&tickets, &ticket));
    assert_true(tt_tickets_put(&tickets, 0)); /* the first one of an order */
    assert_true(tt_tickets_take(&tickets, &ticket));
    assert_int_equal(ticket, 0);
    assert_false(tt_tickets_take(&tickets, &ticket));
    tt_tickets_fini(&tickets);
}

/* Put and take in bursts, so that the ring fills, grows, and empties while the word is used. */
static void keeps_order(void **state)
{
    struct tt_tickets tickets;
    uint64_t put = 0, taken = 0, ticket;
    (void)state;
    tt_tickets_init(&tickets);
    for (uint64_t burst = 0; put < TICKETS; burst++) {
        for (uint64_t k = 0; k < burst * 7 % 13 + 1; k++)
            assert_true(tt_tickets_put(&tickets, put++));
        for (uint64_t k = 0; k < burst * 5 % 17 && taken < put; k++) {
            assert_true(tt_tickets_take(&tickets, &ticket));
            assert_int_equal(ticket, taken++);
        }
    }
    while (tt_tickets_take(&tickets, &ticket))
        assert_int_equal(ticket, taken++);
    assert_int_equal(taken, put);
    tt_tickets_fini(&tickets);
}

static void *put_all(void *arg)
{
    for (uint64_t k = 0; k < TICKETS; k++) {
        if (!tt_tickets_put(arg, k)) return arg;
    }
    return NULL;
}

static void keeps_order_between_threads(void **state)
{
    struct tt_tickets tickets;
    pthread_t thread;
    void *failed = NULL;
    uint64_t ticket;
    (void)state;
    tt_tickets_init(&tickets);
    assert_int_equal(pthread_create(&thread, NULL, put_all, &tickets), 0);
    for (uint64_t taken = 0; taken < TICKETS;) {
        if (tt_tickets_take(&tickets, &ticket)) {
            assert_int_equal(ticket, taken++);
        } else {
            sched_yield();
        }
    }
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_false(tt_tickets_take(&tickets, &ticket));
    tt_tickets_fini(&tickets);
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
