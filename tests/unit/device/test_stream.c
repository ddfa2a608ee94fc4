/* Streams and events: order, the legacy stream's rules, host functions, waiting threads, dead
 * handles. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct gate { /* an item that waits until it is opened */
    struct tt_item item;
    _Atomic int open, ran, released;
    int polls;
};

static enum tt_step gate_step(struct tt_item *item, enum tt_item_call call)
{
    struct gate *gate = (struct gate *)item;
    if (call == TT_ITEM_RELEASE) {
        atomic_fetch_add(&gate->released, 1);
        return TT_STEP_DONE;
    }
    gate->polls++;
    if (!atomic_load(&gate->open)) return TT_STEP_WAIT;
    atomic_fetch_add(&gate->ran, 1);
    return TT_STEP_DONE;
}

static void gate_init(struct gate *gate, bool open)
{
    *gate = (struct gate){.item = {.step = gate_step}};
    atomic_store(&gate->open, open);
}

static int *device_int(int value)
{
    int *ptr = NULL;
    assert_int_equal(tuttiHostMalloc(0, sizeof(*ptr), (void **)&ptr), 0);
    *ptr = value;
    return ptr;
}

static void idle_stream_runs_inline(void **state)
{
    struct CUstream_st *stream = NULL;
    struct gate gate;
    (void)state;
    gate_init(&gate, true);
    assert_int_equal(tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream), 0);
    assert_int_equal(tuttiHostSubmit(stream, &gate.item, true), 0);
    assert_int_equal(atomic_load(&gate.ran), 1);
    assert_int_equal(atomic_load(&gate.released), 1);
    assert_int_equal(tuttiHostStreamQuery(stream), 0);
    assert_int_equal(tuttiHostStreamDestroy(stream), 0);
    assert_int_equal(tuttiHostStreamDestroy(stream), 400);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 400);
    assert_int_equal(tuttiHostStreamSynchronize((struct CUstream_st *)&gate), 400);
}

static void later_work_waits(void **state)
{
    struct CUstream_st *stream = NULL;
    struct gate gate;
    int *from = device_int(5);
    int *to = device_int(0);
    (void)state;
    gate_init(&gate, false);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    assert_int_equal(tuttiHostSubmit(stream, &gate.item, true), 0);
    struct tt_copy copy = {.dst = to, .src = from, .width = sizeof(*to), .height = 1};
    assert_int_equal(tuttiHostCopy(stream, &copy), 0);
    assert_int_equal(tuttiHostStreamQuery(stream), 600);
    assert_int_equal(*to, 0);
    atomic_store(&gate.open, 1);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(*to, 5);
    tuttiHostStreamDestroy(stream);
    tuttiHostFree(from);
    tuttiHostFree(to);
}

static void legacy_order(void **state)
{
    struct CUstream_st *blocking = NULL;
    struct CUstream_st *free_running = NULL;
    struct gate gate;
    int *one = device_int(1);
    int *legacy_saw = device_int(0);
    int *other_saw = device_int(0);
    (void)state;
    gate_init(&gate, false);
    tuttiHostStreamCreate(0, 0, &blocking);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &free_running);
    tuttiHostSubmit(blocking, &gate.item, true);
    struct tt_copy copy = {.dst = legacy_saw, .src = one, .width = sizeof(*one), .height = 1};
    assert_int_equal(tuttiHostCopy(NULL, &copy), 0);
    copy.dst = other_saw;
    assert_int_equal(tuttiHostCopy(free_running, &copy), 0);
    assert_int_equal(*other_saw, 1);
    assert_int_equal(*legacy_saw, 0);
    atomic_store(&gate.open, 1);
    assert_int_equal(tuttiHostStreamSynchronize(NULL), 0);
    assert_int_equal(*legacy_saw, 1);
    tuttiHostStreamDestroy(blocking);
    tuttiHostStreamDestroy(free_running);
    tuttiHostFree(one);
    tuttiHostFree(legacy_saw);
    tuttiHostFree(other_saw);
}

static void open_gate(void *gate)
{
    atomic_store(&((struct gate *)gate)->open, 1);
}

/* A question is no operation: what comes to another blocking stream later need not wait for what
 * was asked about. */
static void asking_the_legacy_stream_orders_nothing(void **state)
{
    struct CUstream_st *first = NULL;
    struct CUstream_st *second = NULL;
    struct gate gate;
    (void)state;
    gate_init(&gate, false);
    tuttiHostStreamCreate(0, 0, &first);
    tuttiHostStreamCreate(0, 0, &second);
    assert_int_equal(tuttiHostStreamQuery(NULL), 0);
    tuttiHostSubmit(first, &gate.item, true);
    assert_int_equal(tuttiHostStreamQuery(NULL), 600);
    assert_int_equal(tuttiHostCall(second, open_gate, &gate), 0);
    assert_int_equal(tuttiHostStreamSynchronize(second), 0);
    assert_int_equal(tuttiHostStreamSynchronize(NULL), 0);
    assert_int_equal(atomic_load(&gate.released), 1);
    assert_int_equal(tuttiHostStreamQuery(NULL), 0);
    tuttiHostStreamDestroy(first);
    tuttiHostStreamDestroy(second);
}

static void events_order_streams(void **state)
{
    struct CUstream_st *first = NULL;
    struct CUstream_st *second = NULL;
    struct CUevent_st *event = NULL;
    struct CUevent_st *early = NULL;
    struct gate gate;
    int *one = device_int(1);
    int *saw = device_int(0);
    float msec = -1;
    (void)state;
    gate_init(&gate, false);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &first);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &second);
    assert_int_equal(tuttiHostEventCreate(0, &event), 0);
    assert_int_equal(tuttiHostEventCreate(0, &early), 0);
    assert_int_equal(tuttiHostEventQuery(event), 0);
    assert_int_equal(tuttiHostEventRecord(early, first), 0);
    tuttiHostSubmit(first, &gate.item, true);
    assert_int_equal(tuttiHostEventRecord(event, first), 0);
    assert_int_equal(tuttiHostEventQuery(event), 600);
    assert_int_equal(tuttiHostEventElapsed(&msec, early, event), 600);
    assert_int_equal(tuttiHostStreamWaitEvent(second, event), 0);
    struct tt_copy copy = {.dst = saw, .src = one, .width = sizeof(*one), .height = 1};
    tuttiHostCopy(second, &copy);
    assert_int_equal(tuttiHostStreamQuery(second), 600);
    atomic_store(&gate.open, 1);
    assert_int_equal(tuttiHostEventSynchronize(event), 0);
    assert_int_equal(tuttiHostStreamSynchronize(second), 0);
    assert_int_equal(*saw, 1);
    assert_int_equal(tuttiHostEventElapsed(&msec, early, event), 0);
    assert_true(msec >= 0);
    assert_int_equal(tuttiHostEventDestroy(event), 0);
    assert_int_equal(tuttiHostEventDestroy(event), 400);
    tuttiHostEventDestroy(early);
    tuttiHostFree(one);
    tuttiHostFree(saw);
    tuttiHostStreamDestroy(first);
    tuttiHostStreamDestroy(second);
}

static void set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static void wait_flag(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        usleep(100);
    }
}

/* A host function that waits for another stream's host function: no thread waits for either from
 * outside. */
static void host_functions_do_not_deadlock(void **state)
{
    struct CUstream_st *first = NULL;
    struct CUstream_st *second = NULL;
    _Atomic int flag = 0;
    _Atomic int end = 0;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &first);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &second);
    assert_int_equal(tuttiHostCall(first, wait_flag, &flag), 0);
    assert_int_equal(tuttiHostCall(first, set_flag, &end), 0);
    assert_int_equal(tuttiHostCall(second, set_flag, &flag), 0);
    assert_int_equal(tuttiHostStreamSynchronize(first), 0);
    assert_int_equal(atomic_load(&end), 1);
    assert_int_equal(tuttiHostStreamSynchronize(second), 0);
    tuttiHostStreamDestroy(first);
    tuttiHostStreamDestroy(second);
}

/* No thread waits: a worker takes it; destroying the stream does not lose it. */
static void work_of_a_destroyed_stream_runs(void **state)
{
    struct CUstream_st *stream = NULL;
    _Atomic int flag = 0;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    tuttiHostCall(stream, set_flag, &flag);
    assert_int_equal(tuttiHostStreamDestroy(stream), 0);
    wait_flag(&flag);
}

enum { THREADS = 4, STREAMS = 4, TURNS = 2000 };

struct counter { /* increments of one stream: no two at a time, none lost */
    struct tt_item item;
    int *value;
};

static enum tt_step count_step(struct tt_item *item, enum tt_item_call call)
{
    struct counter *counter = (struct counter *)item;
    if (call == TT_ITEM_RELEASE) {
        free(counter);
        return TT_STEP_DONE;
    }
    (*counter->value)++;
    return TT_STEP_DONE;
}

struct stress {
    struct CUstream_st *streams[STREAMS];
    int values[STREAMS];
    unsigned seed;
};

static void *stress_thread(void *arg)
{
    struct stress *stress = arg;
    unsigned seed = stress->seed;
    for (int turn = 0; turn < TURNS; turn++) {
        int s = rand_r(&seed) % STREAMS;
        struct counter *counter = calloc(1, sizeof(*counter));
        counter->item.step = count_step;
        counter->value = &stress->values[s];
        assert_int_equal(tuttiHostSubmit(stress->streams[s], &counter->item, rand_r(&seed) % 2), 0);
        if (turn % 16 == 0) tuttiHostStreamSynchronize(stress->streams[rand_r(&seed) % STREAMS]);
    }
    return NULL;
}

static void many_threads_many_streams(void **state)
{
    struct stress stress = {.seed = 3};
    pthread_t threads[THREADS];
    int sum = 0;
    (void)state;
    for (int s = 0; s < STREAMS; s++) {
        tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stress.streams[s]);
    }
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, stress_thread, &stress), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    for (int s = 0; s < STREAMS; s++) {
        tuttiHostStreamSynchronize(stress.streams[s]);
        sum += stress.values[s];
        tuttiHostStreamDestroy(stress.streams[s]);
    }
    assert_int_equal(sum, THREADS * TURNS);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_stream_runs_inline),
        cmocka_unit_test(later_work_waits),
        cmocka_unit_test(legacy_order),
        cmocka_unit_test(asking_the_legacy_stream_orders_nothing),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(host_functions_do_not_deadlock),
        cmocka_unit_test(work_of_a_destroyed_stream_runs),
        cmocka_unit_test(many_threads_many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
