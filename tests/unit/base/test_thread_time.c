/* What a call cost its thread: computing and sleeping are counted; a thread that is ready and gets
 * no processor is not, and neither is one that sleeps until such a thread has run. A processor is
 * taken away by a thread that spins on it, from one that the scheduler serves last. */
#include "../check.h"

#include "base/system/clock.h"
#include "base/system/thread_time.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { MSEC = 1000000, MOST_NSEC = 100 * MSEC, LONG_NSEC = 300 * MSEC };

/* The processor that this thread is on is the only one that new threads get. */
static void share_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void compute(uint64_t nsec)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    while (tt_thread_time_spent(&time).computed_nsec < nsec)
        continue;
}

static void computing_is_counted(void **state)
{
    struct tt_thread_time time;
    struct tt_threads_ready ready = {0};
    (void)state;
    tt_thread_time_begin(&time);
    compute(30 * MSEC);
    const struct tt_thread_spent spent = tt_thread_time_spent(&time);
    assert_true(spent.computed_nsec >= 30 * MSEC);
    assert_true(tt_thread_spent_more(&spent, 30 * MSEC - 1, &ready));
}

static void sleeping_is_counted(void **state)
{
    struct tt_thread_time time;
    struct tt_threads_ready ready = {0};
    (void)state;
    tt_thread_time_begin(&time);
    tt_sleep_usec(150000);
    const struct tt_thread_spent spent = tt_thread_time_spent(&time);
    assert_true(spent.slept_nsec > MOST_NSEC);
    tt_threads_ready_added(&ready, spent.thread);
    assert_true(tt_thread_spent_more(&spent, MOST_NSEC, &ready));
}

/* ---- a thread without a processor ---- */

struct starved {
    pthread_mutex_t lock; /* its own as long as it goes on */
    sem_t begun;
    _Atomic bool done;
    struct tt_thread_spent spent;
    uint64_t passed_nsec;
};

/* Make a call that never sleeps, as the last one that gets the processor. */
static void *starve(void *arg)
{
    struct starved *starved = arg;
    const struct sched_param none = {0};
    struct tt_thread_time time;
    pthread_mutex_lock(&starved->lock);
    sched_setscheduler(0, SCHED_IDLE, &none);
    tt_thread_time_begin(&time);
    const uint64_t start_nsec = tt_now_nsec();
    sem_post(&starved->begun);
    while (!atomic_load(&starved->done))
        sched_yield();
    starved->passed_nsec = tt_now_nsec() - start_nsec;
    starved->spent = tt_thread_time_spent(&time);
    pthread_mutex_unlock(&starved->lock);
    return NULL;
}

/* Take the processor from it, then let it end. */
static void *spin(void *arg)
{
    struct starved *starved = arg;
    const uint64_t end_nsec = tt_now_nsec() + LONG_NSEC;
    while (tt_now_nsec() < end_nsec)
        continue;
    atomic_store(&starved->done, true);
    return NULL;
}

static pthread_t start(struct starved *starved)
{
    pthread_t thread;
    pthread_mutex_init(&starved->lock, NULL);
    sem_init(&starved->begun, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, starve, starved), 0);
    while (sem_wait(&starved->begun))
        continue;
    return thread;
}

static void waiting_for_a_processor_is_not_counted(void **state)
{
    struct starved starved = {.passed_nsec = 0};
    struct tt_threads_ready ready = {0};
    (void)state;
    const pthread_t thread = start(&starved);
    spin(&starved);
    pthread_join(thread, NULL);
    assert_true(starved.passed_nsec > MOST_NSEC);
    assert_int_equal(starved.spent.slept_nsec, 0);
    assert_false(tt_thread_spent_more(&starved.spent, MOST_NSEC, &ready));
}

static void waiting_for_a_thread_without_one_is_not_counted(void **state)
{
    struct starved starved = {.passed_nsec = 0};
    struct tt_threads_ready ready = {0};
    struct tt_thread_time time;
    pthread_t spinner;
    (void)state;
    const pthread_t thread = start(&starved);
    tt_threads_ready_added(&ready, 0);
    tt_thread_time_begin(&time);
    assert_int_equal(pthread_create(&spinner, NULL, spin, &starved), 0);
    pthread_mutex_lock(&starved.lock);
    const struct tt_thread_spent spent = tt_thread_time_spent(&time);
    assert_true(spent.slept_nsec > MOST_NSEC);
    assert_false(tt_thread_spent_more(&spent, MOST_NSEC, &ready));
    pthread_mutex_unlock(&starved.lock);
    pthread_join(spinner, NULL);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_is_counted),
        cmocka_unit_test(sleeping_is_counted),
        cmocka_unit_test(waiting_for_a_processor_is_not_counted),
        cmocka_unit_test(waiting_for_a_thread_without_one_is_not_counted),
    };
    share_one_processor();
    return cmocka_run_group_tests_name("thread_time", tests, NULL, NULL);
}
