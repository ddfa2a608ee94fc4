/* Who waits for whom: the legacy stream's rules with several threads, waits for present work only,
 * host functions that wait for each other, the end of a process's fork. Every case would lose an
 * update or never end if the rule did not hold. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_graph.h"
#include "device/host/host_stream.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STREAMS = 4, TURNS = 1500 };

/* ---- legacy and blocking streams ---- */

struct shared { /* legacy operations alone write `turn`, which blocking ones copy to their own */
    int64_t turn;
    int64_t own[THREADS];
    _Atomic int inside_legacy, inside_own, broken;
};

struct touch {
    struct tt_item item;
    struct shared *shared;
    int who; /* -1: the legacy stream */
    int steps;
};

static enum tt_step touch_step(struct tt_item *item, enum tt_item_call call)
{
    struct touch *touch = (struct touch *)item;
    struct shared *shared = touch->shared;
    if (call == TT_ITEM_RELEASE) {
        free(touch);
        return TT_STEP_DONE;
    }
    if (touch->who < 0) {
        if (atomic_fetch_add(&shared->inside_legacy, 1) || atomic_load(&shared->inside_own))
            atomic_store(&shared->broken, 1);
        shared->turn++;
        if (atomic_load(&shared->inside_own)) atomic_store(&shared->broken, 1);
        atomic_fetch_sub(&shared->inside_legacy, 1);
    } else {
        atomic_fetch_add(&shared->inside_own, 1);
        if (atomic_load(&shared->inside_legacy)) atomic_store(&shared->broken, 1);
        shared->own[touch->who] = shared->turn;
        atomic_fetch_sub(&shared->inside_own, 1);
    }
    return --touch->steps > 0 ? TT_STEP_PROGRESS : TT_STEP_DONE;
}

static void submit_touch(struct shared *shared, struct CUstream_st *stream, int who, unsigned *seed)
{
    struct touch *touch = calloc(1, sizeof(*touch));
    *touch = (struct touch){{.step = touch_step}, shared, who, rand_r(seed) % 8 ? 1 : 600};
    assert_int_equal(tuttiHostSubmit(stream, &touch->item, rand_r(seed) % 4 != 0), 0);
}

struct toucher {
    struct shared *shared;
    int who;
};

static void *touch_thread(void *arg)
{
    const struct toucher *toucher = arg;
    struct CUstream_st *stream = NULL;
    unsigned seed = (unsigned)toucher->who + 17;
    tuttiHostSetDevice(1);
    if (toucher->who >= 0) assert_int_equal(tuttiHostStreamCreate(0, 0, &stream), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        submit_touch(toucher->shared, stream, toucher->who, &seed);
        if (rand_r(&seed) % 64 == 0) assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
        if (rand_r(&seed) % 16 == 0) sched_yield();
        if (toucher->who < 0 || rand_r(&seed) % 32) continue;
        /* streams come and go while others look at them */
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
        assert_int_equal(tuttiHostStreamDestroy(stream), 0);
        assert_int_equal(tuttiHostStreamCreate(0, 0, &stream), 0);
    }
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    if (toucher->who >= 0) assert_int_equal(tuttiHostStreamDestroy(stream), 0);
    return NULL;
}

/* Plain variables are enough: a legacy operation never overlaps one of a blocking stream. */
static void legacy_and_blocking_never_overlap(void **state)
{
    struct shared shared;
    struct toucher touchers[THREADS + 1];
    pthread_t threads[THREADS + 1];
    (void)state;
    memset(&shared, 0, sizeof(shared));
    for (int t = 0; t <= THREADS; t++) {
        touchers[t] = (struct toucher){&shared, t - 1};
        assert_int_equal(pthread_create(&threads[t], NULL, touch_thread, &touchers[t]), 0);
    }
    for (int t = 0; t <= THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    assert_int_equal(atomic_load(&shared.broken), 0);
    assert_true(shared.turn >= TURNS);
}

/* ---- present work only ---- */

struct gate {
    struct tt_item item;
    _Atomic int open;
};

static enum tt_step gate_step(struct tt_item *item, enum tt_item_call call)
{
    struct gate *gate = (struct gate *)item;
    if (call == TT_ITEM_RELEASE) return TT_STEP_DONE;
    return atomic_load(&gate->open) ? TT_STEP_DONE : TT_STEP_WAIT;
}

struct behind {
    struct CUstream_st *stream;
    struct gate *late;
    _Atomic int queued, returned;
};

static void *wait_thread(void *arg)
{
    struct behind *behind = arg;
    while (!atomic_load(&behind->queued))
        sched_yield();
    assert_int_equal(tuttiHostStreamSynchronize(behind->stream), 0);
    atomic_store(&behind->returned, 1);
    return NULL;
}

/* The second gate is queued while the thread waits for the first one, and never opens before it
 * has returned. */
static void a_wait_ends_with_present_work(void **state)
{
    struct gate early = {{.step = gate_step}, 0};
    struct gate late = {{.step = gate_step}, 0};
    struct behind behind = {.late = &late};
    struct CUevent_st *event = NULL;
    pthread_t thread;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &behind.stream);
    tuttiHostEventCreate(TT_EVENT_NO_TIMING, &event);
    assert_int_equal(tuttiHostSubmit(behind.stream, &early.item, true), 0);
    assert_int_equal(tuttiHostEventRecord(event, behind.stream), 0);
    atomic_store(&early.open, 1);
    assert_int_equal(tuttiHostSubmit(behind.stream, &late.item, false), 0);
    assert_int_equal(tuttiHostEventSynchronize(event), 0);
    assert_int_equal(tuttiHostStreamQuery(behind.stream), 600);
    atomic_store(&late.open, 1);
    assert_int_equal(pthread_create(&thread, NULL, wait_thread, &behind), 0);
    atomic_store(&behind.queued, 1);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&behind.returned), 1);
    tuttiHostEventDestroy(event);
    tuttiHostStreamDestroy(behind.stream);
}

/* ---- host functions ---- */

struct lock_user {
    pthread_mutex_t lock;
    int count;
    pthread_t caller;
    _Atomic int in_call, ran_inside;
};

static void take_lock(void *arg)
{
    struct lock_user *user = arg;
    if (atomic_load(&user->in_call)) atomic_store(&user->ran_inside, 1);
    pthread_mutex_lock(&user->lock);
    user->count++;
    pthread_mutex_unlock(&user->lock);
}

/* The caller holds what the host function takes: it may not run in the call, nor in a query. */
static void host_functions_run_elsewhere(void **state)
{
    struct lock_user user = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct CUstream_st *stream = NULL;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&user.lock);
        assert_int_equal(tuttiHostCall(stream, take_lock, &user), 0);
        tuttiHostStreamQuery(stream);
        tuttiHostHelp();
        pthread_mutex_unlock(&user.lock);
        if (i % 3 == 0) assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    }
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(user.count, 200);
    tuttiHostStreamDestroy(stream);
}

struct chain {
    _Atomic int *mine, *next;
};

static void pass_on(void *arg)
{
    const struct chain *chain = arg;
    if (chain->next) atomic_store(chain->next, 1);
    while (!atomic_load(chain->mine))
        sched_yield();
}

/* Each function waits for the one queued after it, all in different streams: every one but the last
 * occupies a thread until the last has run. */
static void blocked_host_functions_leave_threads(void **state)
{
    enum { LINKS = 6 };
    struct CUstream_st *streams[LINKS];
    _Atomic int flags[LINKS];
    struct chain chains[LINKS];
    (void)state;
    for (int i = 0; i < LINKS; i++) {
        atomic_store(&flags[i], 0);
        chains[i] = (struct chain){&flags[i], i ? &flags[i - 1] : NULL};
        tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &streams[i]);
    }
    for (int i = 0; i < LINKS - 1; i++) {
        assert_int_equal(tuttiHostCall(streams[i], pass_on, &chains[i]), 0);
    }
    atomic_store(&flags[LINKS - 1], 1);
    assert_int_equal(tuttiHostCall(streams[LINKS - 1], pass_on, &chains[LINKS - 1]), 0);
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(tuttiHostStreamSynchronize(streams[i]), 0);
        tuttiHostStreamDestroy(streams[i]);
    }
}

static void call_back(void *arg)
{
    *(int *)arg = tuttiHostStreamSynchronize(NULL);
}

static void host_functions_may_not_wait(void **state)
{
    int code = 0;
    (void)state;
    assert_int_equal(tuttiHostCall(NULL, call_back, &code), 0);
    assert_int_equal(tuttiHostStreamSynchronize(NULL), 0);
    assert_int_equal(code, 800);
}

/* ---- waits across streams ---- */

struct hop {
    struct tt_item item;
    int *value, expect;
    _Atomic int *wrong;
};

static enum tt_step hop_step(struct tt_item *item, enum tt_item_call call)
{
    struct hop *hop = (struct hop *)item;
    if (call == TT_ITEM_RELEASE) {
        free(hop);
        return TT_STEP_DONE;
    }
    if ((*hop->value)++ != hop->expect) atomic_store(hop->wrong, 1);
    return TT_STEP_DONE;
}

/* One counter handed through streams by events that are recorded again and again. */
static void events_hand_over(void **state)
{
    struct CUstream_st *streams[STREAMS];
    struct CUevent_st *events[2];
    _Atomic int wrong = 0;
    unsigned seed = 5;
    int value = 0;
    int last = 0;
    (void)state;
    for (int s = 0; s < STREAMS; s++) {
        tuttiHostSetDevice(s % 2);
        tuttiHostStreamCreate(s % 2 ? 0 : TT_STREAM_NON_BLOCKING, 0, &streams[s]);
    }
    for (int e = 0; e < 2; e++) {
        tuttiHostSetDevice(e);
        tuttiHostEventCreate(e ? 0 : TT_EVENT_NO_TIMING, &events[e]);
    }
    tuttiHostSetDevice(0);
    for (int turn = 0; turn < 4 * TURNS; turn++) {
        int next = rand_r(&seed) % STREAMS;
        struct hop *hop = calloc(1, sizeof(*hop));
        *hop = (struct hop){{.step = hop_step}, &value, turn, &wrong};
        assert_int_equal(tuttiHostEventRecord(events[last % 2], streams[last]), 0);
        assert_int_equal(tuttiHostStreamWaitEvent(streams[next], events[last % 2]), 0);
        assert_int_equal(tuttiHostSubmit(streams[next], &hop->item, rand_r(&seed) % 2), 0);
        last = next;
    }
    for (int s = 0; s < STREAMS; s++) {
        assert_int_equal(tuttiHostStreamSynchronize(streams[s]), 0);
        tuttiHostStreamDestroy(streams[s]);
    }
    assert_int_equal(value, 4 * TURNS);
    assert_int_equal(atomic_load(&wrong), 0);
    tuttiHostEventDestroy(events[0]);
    tuttiHostEventDestroy(events[1]);
}

/* ---- copies ---- */

static void large_copies_arrive(void **state)
{
    const size_t bytes = (size_t)70 << 20;
    struct CUstream_st *stream = NULL;
    unsigned char *from = NULL;
    unsigned char *to = NULL;
    (void)state;
    tuttiHostMalloc(0, bytes, (void **)&from);
    tuttiHostMalloc(1, bytes, (void **)&to);
    tuttiHostStreamCreate(0, 0, &stream);
    assert_int_equal(
        tuttiHostSet(stream, &(struct tt_set){from, 0x01020304, 4, bytes, bytes / 4, 1}), 0);
    struct tt_copy copy = {.dst = to, .src = from, .width = bytes};
    assert_int_equal(tuttiHostCopy(stream, &copy), 0);
    copy = (struct tt_copy){.dst = to + 1, .src = to, .width = bytes - 1}; /* overlaps */
    assert_int_equal(tuttiHostCopy(stream, &copy), 0);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(to[0], 4);
    assert_int_equal(to[1], 4);
    assert_int_equal(to[bytes - 1], from[bytes - 2]);
    assert_int_equal(to[bytes / 2], from[bytes / 2 - 1]);
    tuttiHostStreamDestroy(stream);
    tuttiHostFree(from);
    tuttiHostFree(to);
}

/* ---- handles and processes ---- */

static void *own_default(void *arg)
{
    struct tt_stream_info info;
    assert_int_equal(tuttiHostStreamInfo((struct CUstream_st *)2, &info), 0);
    *(uint64_t *)arg = info.stream_id;
    return NULL;
}

static void threads_have_default_streams_of_their_own(void **state)
{
    struct tt_stream_info info;
    uint64_t other = 0;
    pthread_t thread;
    (void)state;
    assert_int_equal(tuttiHostStreamInfo((struct CUstream_st *)2, &info), 0);
    assert_int_equal(pthread_create(&thread, NULL, own_default, &other), 0);
    pthread_join(thread, NULL);
    assert_int_not_equal(other, info.stream_id);
    assert_int_equal(tuttiHostStreamDestroy((struct CUstream_st *)2), 400);
    assert_int_equal(tuttiHostStreamDestroy(NULL), 400);
}

/* A blocking stream that captures must not be made to wait by the legacy stream. */
static void legacy_work_breaks_captures(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUgraph_st *graph = NULL;
    void *ptr = NULL;
    (void)state;
    tuttiHostMalloc(0, 64, &ptr);
    tuttiHostStreamCreate(0, 0, &stream);
    assert_int_equal(tuttiHostCaptureBegin(stream, 2), 0);
    const struct tt_set set = {ptr, 1, 1, 64, 64, 1};
    assert_int_equal(tuttiHostSet(NULL, &set), 906);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 901);
    assert_int_equal(tuttiHostSet(NULL, &set), 0);
    tuttiHostStreamDestroy(stream);
    tuttiHostFree(ptr);
}

static void a_forked_child_gets_error_3(void **state)
{
    struct CUstream_st *stream = NULL;
    void *ptr = NULL;
    int status = 0;
    (void)state;
    tuttiHostStreamCreate(0, 0, &stream);
    pid_t child = fork();
    if (child == 0) {
        bool right = tuttiHostReady() == 3 && tuttiHostMalloc(0, 8, &ptr) == 3 &&
                     tuttiHostStreamSynchronize(stream) == 3 &&
                     tuttiHostStreamSynchronize(NULL) == 3 && tuttiHostSetDevice(0) == 3 &&
                     tuttiHostDeviceSynchronize(0) == 3;
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tuttiHostStreamDestroy(stream);
}

static void reset_takes_everything(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUevent_st *event = NULL;
    size_t free_bytes = 0;
    size_t total = 0;
    void *ptr = NULL;
    (void)state;
    tuttiHostSetDevice(1);
    tuttiHostStreamCreate(0, 0, &stream);
    tuttiHostEventCreate(0, &event);
    tuttiHostMalloc(1, 100000, &ptr);
    assert_int_equal(tuttiHostDeviceReset(1), 0);
    assert_int_equal(tuttiHostStreamQuery(stream), 400);
    assert_int_equal(tuttiHostEventQuery(event), 400);
    assert_int_equal(tuttiHostFree(ptr), 1);
    assert_int_equal(tuttiHostMemInfo(1, &free_bytes, &total), 0);
    assert_int_equal(free_bytes, total);
    assert_int_equal(tuttiHostDeviceReset(2), 101);
    tuttiHostSetDevice(0);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "2", 1);
    setenv("TUTTI_DEVICE_MEMORY", "1G", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legacy_and_blocking_never_overlap),
        cmocka_unit_test(a_wait_ends_with_present_work),
        cmocka_unit_test(host_functions_run_elsewhere),
        cmocka_unit_test(blocked_host_functions_leave_threads),
        cmocka_unit_test(host_functions_may_not_wait),
        cmocka_unit_test(events_hand_over),
        cmocka_unit_test(large_copies_arrive),
        cmocka_unit_test(threads_have_default_streams_of_their_own),
        cmocka_unit_test(legacy_work_breaks_captures),
        cmocka_unit_test(a_forked_child_gets_error_3),
        cmocka_unit_test(reset_takes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
