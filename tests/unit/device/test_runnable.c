/* Bits of streams that have something to do: those that are set when all threads are done are seen,
 * whichever thread set and cleared others of the same words meanwhile. */
#include "../check.h"

#include "device/host/host_stream.h"
#include "device/host/process/runnable.h"
#include "device/host/stream/stream.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Places that no stream was made in, which count as idle. */
enum { FIRST = 2 * 4096, TURNS = 20000, SPINS = 2000, DELAYS = 64 };

/* One in the same word, one in the same summary, one elsewhere. */
static const size_t others[] = {FIRST + 1, FIRST + 64 * 9, FIRST + 4096};

struct turns {
    _Atomic int asked, done; /* numbers of turns */
    size_t other;
};

/* Both threads go on at once where they have a core each. */
static void await_turn(_Atomic int *number, int turn)
{
    for (int spins = 0; atomic_load_explicit(number, memory_order_acquire) < turn; spins++) {
        if (spins > SPINS) sched_yield();
    }
}

/* Clears a bit while the test's own thread sets another. */
static void *clear_others(void *arg)
{
    struct turns *turns = arg;
    for (int turn = 1; turn <= TURNS; turn++) {
        await_turn(&turns->asked, turn);
        tt_host_runnable_remove(turns->other);
        atomic_store(&turns->done, turn);
    }
    return NULL;
}

struct seen {
    const struct CUstream_st *wanted;
    int times;
};

static void see(struct CUstream_st *stream, void *arg)
{
    struct seen *seen = arg;
    seen->times += stream == seen->wanted;
}

static int times_seen(size_t number)
{
    struct seen seen = {tt_host_stream_numbered(number), 0};
    tt_host_runnable_visit(see, &seen);
    return seen.times;
}

static void set_beside(size_t other)
{
    struct turns turns = {.other = other};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, clear_others, &turns), 0);
    for (int turn = 1; turn <= TURNS; turn++) {
        tt_host_runnable_add(other);
        assert_int_equal(times_seen(other), 1);
        atomic_store(&turns.asked, turn);
        for (volatile int delay = turn % DELAYS; delay; delay--) { /* meet at each step */
        }
        tt_host_runnable_add(FIRST);
        await_turn(&turns.done, turn);
        assert_int_equal(times_seen(FIRST), 1);
        assert_int_equal(times_seen(other), 0);
        tt_host_runnable_remove(FIRST);
        assert_int_equal(times_seen(FIRST), 0);
    }
    pthread_join(thread, NULL);
}

static void bits_are_seen_whoever_clears_others(void **state)
{
    struct CUstream_st *stream = NULL;
    (void)state;
    assert_int_equal(tuttiHostStreamCreate(1, 0, &stream), 0); /* makes the places */
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        print_message("case: %zu beside %d\n", others[i], FIRST);
        set_beside(others[i]);
    }
    assert_int_equal(tuttiHostStreamDestroy(stream), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_seen_whoever_clears_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
