/* Capture and graphs: fork and join by events, errors of capture, replays, destruction while
 * running. */
#include "../check.h"

#include "device/host/host_graph.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct adder {
    struct tt_item item;
    int *value, by, releases;
};

static enum tt_step adder_step(struct tt_item *item, enum tt_item_call call)
{
    struct adder *adder = (struct adder *)item;
    if (call == TT_ITEM_RELEASE) {
        adder->releases++;
        return TT_STEP_DONE;
    }
    *adder->value = *adder->value * 10 + adder->by;
    return TT_STEP_DONE;
}

static void captured_items_run_at_launch(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUgraph_st *graph = NULL;
    struct CUgraphExec_st *exec = NULL;
    int value = 0;
    struct adder one = {{.step = adder_step}, &value, 1, 0};
    struct adder two = {{.step = adder_step}, &value, 2, 0};
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 0);
    assert_int_equal(tuttiHostSubmit(stream, &one.item, true), 0);
    assert_int_equal(tuttiHostSubmit(stream, &two.item, true), 0);
    assert_int_equal(value, 0);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 0);
    assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 0);
    assert_int_equal(tuttiHostGraphDestroy(graph), 0);
    for (int i = 0; i < 3; i++) {
        value = 0;
        assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
        assert_int_equal(value, 12);
    }
    assert_int_equal(one.releases, 0);
    assert_int_equal(tuttiHostGraphExecDestroy(exec), 0);
    assert_int_equal(one.releases, 1);
    assert_int_equal(two.releases, 1);
    tuttiHostStreamDestroy(stream);
}

static void fork_and_join(void **state)
{
    struct CUstream_st *main_stream = NULL;
    struct CUstream_st *side = NULL;
    struct CUevent_st *fork_event = NULL;
    struct CUevent_st *join_event = NULL;
    struct CUgraph_st *graph = NULL;
    int value = 0;
    struct adder adders[3] = {{{.step = adder_step}, &value, 1, 0},
                              {{.step = adder_step}, &value, 2, 0},
                              {{.step = adder_step}, &value, 3, 0}};
    size_t count = 0;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &main_stream);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &side);
    tuttiHostEventCreate(TT_EVENT_NO_TIMING, &fork_event);
    tuttiHostEventCreate(TT_EVENT_NO_TIMING, &join_event);
    for (int joined = 0; joined < 2; joined++) {
        assert_int_equal(tuttiHostCaptureBegin(main_stream, 1), 0);
        tuttiHostSubmit(main_stream, &adders[0].item, true);
        assert_int_equal(tuttiHostEventRecord(fork_event, main_stream), 0);
        assert_int_equal(tuttiHostStreamWaitEvent(side, fork_event), 0);
        assert_int_equal(tuttiHostSubmit(side, &adders[1].item, true), 0);
        assert_int_equal(tuttiHostEventRecord(join_event, side), 0);
        assert_int_equal(tuttiHostCaptureEnd(side, &graph), 903);
        if (joined) assert_int_equal(tuttiHostStreamWaitEvent(main_stream, join_event), 0);
        tuttiHostSubmit(main_stream, &adders[2].item, true);
        assert_int_equal(tuttiHostCaptureEnd(main_stream, &graph), joined ? 0 : 904);
    }
    assert_int_equal(tuttiHostGraphNodes(graph, NULL, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(tuttiHostEventQuery(join_event), 907);
    tuttiHostGraphDestroy(graph);
    tuttiHostEventDestroy(fork_event);
    tuttiHostEventDestroy(join_event);
    tuttiHostStreamDestroy(main_stream);
    tuttiHostStreamDestroy(side);
}

static void waiting_in_a_capture_invalidates(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUgraph_st *graph = (struct CUgraph_st *)&stream;
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    assert_int_equal(tuttiHostCaptureBegin(NULL, 0), 900);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 0);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 401);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 900);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 901);
    assert_null(graph);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 0);
    assert_int_equal(tuttiHostCaptureUnsafe(), 900);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 901);
    assert_int_equal(tuttiHostCaptureBegin(stream, 2), 0);
    assert_int_equal(tuttiHostCaptureUnsafe(), 0);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 0);
    tuttiHostGraphDestroy(graph);
    tuttiHostStreamDestroy(stream);
}

/* What was captured is released at the failed end, though an event still has its place there. */
static void failed_capture_keeps_nothing(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUevent_st *event = NULL;
    struct CUgraph_st *graph = NULL;
    int value = 0;
    struct adder ended = {{.step = adder_step}, &value, 1, 0};
    struct adder orphaned = {{.step = adder_step}, &value, 1, 0};
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    tuttiHostEventCreate(TT_EVENT_NO_TIMING, &event);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 0);
    assert_int_equal(tuttiHostSubmit(stream, &ended.item, true), 0);
    assert_int_equal(tuttiHostEventRecord(event, stream), 0);
    assert_int_equal(tuttiHostCaptureUnsafe(), 900);
    assert_int_equal(tuttiHostCaptureEnd(stream, &graph), 901);
    assert_int_equal(ended.releases, 1);
    assert_int_equal(tuttiHostStreamWaitEvent(stream, event), 907);
    assert_int_equal(tuttiHostCaptureBegin(stream, 0), 0);
    assert_int_equal(tuttiHostSubmit(stream, &orphaned.item, true), 0);
    assert_int_equal(tuttiHostEventRecord(event, stream), 0);
    tuttiHostStreamDestroy(stream);
    assert_int_equal(orphaned.releases, 1);
    assert_int_equal(tuttiHostEventQuery(event), 907);
    tuttiHostEventDestroy(event);
    assert_int_equal(value, 0);
}

static void add_one(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void built_by_hand(void **state)
{
    struct CUstream_st *stream = NULL;
    struct CUgraph_st *graph = NULL;
    struct CUgraph_st *outer = NULL;
    struct CUgraphExec_st *exec = NULL;
    struct CUgraphNode_st *first = NULL;
    struct CUgraphNode_st *second = NULL;
    _Atomic int calls = 0;
    struct tt_node node = {.kind = TT_NODE_HOST, .host = {add_one, &calls}};
    (void)state;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, &node, &first), 0);
    assert_int_equal(tuttiHostGraphAdd(graph, &first, 1, &node, &second), 0);
    assert_int_equal(tuttiHostGraphCreate(&outer), 0);
    struct tt_node child = {.kind = TT_NODE_GRAPH, .graph = graph};
    struct CUgraphNode_st *child_node = NULL;
    assert_int_equal(tuttiHostGraphAdd(outer, NULL, 0, &child, &child_node), 0);
    assert_int_equal(tuttiHostGraphInstantiate(outer, 0, &exec), 0);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
    }
    assert_int_equal(tuttiHostGraphExecDestroy(exec), 0); /* while launches may still be queued */
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(atomic_load(&calls), 10);
    assert_int_equal(tuttiHostGraphAddEdge(graph, second, first), 0);
    assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 1);
    tuttiHostGraphDestroy(graph);
    tuttiHostGraphDestroy(outer);
    tuttiHostStreamDestroy(stream);
}

/* ---- several threads in one capture ---- */

enum { ADDERS = 4, ADDED = 400 };

struct joiner {
    struct CUstream_st *stream;
    struct CUevent_st *joined;
    void *ptr;
};

static void *add_many(void *arg)
{
    const struct joiner *joiner = arg;
    const struct tt_set set = {joiner->ptr, 1, 1, 8, 8, 1};
    for (int i = 0; i < ADDED; i++) {
        assert_int_equal(tuttiHostSet(joiner->stream, &set), 0);
    }
    assert_int_equal(tuttiHostEventRecord(joiner->joined, joiner->stream), 0);
    return NULL;
}

static void threads_add_to_one_capture(void **state)
{
    struct joiner joiners[ADDERS];
    pthread_t threads[ADDERS];
    struct CUstream_st *origin = NULL;
    struct CUevent_st *begun = NULL;
    struct CUgraph_st *graph = NULL;
    void *ptr = NULL;
    size_t count = 0;
    (void)state;
    assert_int_equal(tuttiHostMalloc(0, 8, &ptr), 0);
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &origin);
    tuttiHostEventCreate(TT_EVENT_NO_TIMING, &begun);
    assert_int_equal(tuttiHostCaptureBegin(origin, 2), 0);
    assert_int_equal(tuttiHostEventRecord(begun, origin), 0);
    for (int t = 0; t < ADDERS; t++) {
        joiners[t].ptr = ptr;
        tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &joiners[t].stream);
        tuttiHostEventCreate(TT_EVENT_NO_TIMING, &joiners[t].joined);
        assert_int_equal(tuttiHostStreamWaitEvent(joiners[t].stream, begun), 0);
    }
    for (int t = 0; t < ADDERS; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, add_many, &joiners[t]), 0);
    }
    for (int t = 0; t < ADDERS; t++) {
        pthread_join(threads[t], NULL);
        assert_int_equal(tuttiHostStreamWaitEvent(origin, joiners[t].joined), 0);
    }
    assert_int_equal(tuttiHostCaptureEnd(origin, &graph), 0);
    assert_int_equal(tuttiHostGraphNodes(graph, NULL, &count), 0);
    assert_int_equal(count, ADDERS * ADDED);
    for (int t = 0; t < ADDERS; t++) {
        tuttiHostStreamDestroy(joiners[t].stream);
        tuttiHostEventDestroy(joiners[t].joined);
    }
    tuttiHostGraphDestroy(graph);
    tuttiHostEventDestroy(begun);
    tuttiHostStreamDestroy(origin);
    tuttiHostFree(ptr);
}

/* ---- destructors ---- */

struct guarded {
    pthread_mutex_t lock;
    pthread_t by;
    _Atomic int ended;
};

static void take_lock(void *arg)
{
    struct guarded *guarded = arg;
    guarded->by = pthread_self();
    pthread_mutex_lock(&guarded->lock); /* the caller holds it while it destroys */
    pthread_mutex_unlock(&guarded->lock);
    atomic_store(&guarded->ended, 1);
}

/* The thread that drops the last reference may hold what the destructor takes, and may wait for
 * devices. */
static void destructors_run_on_threads_of_ours(void **state)
{
    struct guarded guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct CUuserObject_st *object = NULL;
    struct CUgraph_st *graph = NULL;
    (void)state;
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    assert_int_equal(tuttiHostUserCreate(take_lock, &guarded, 1, &object), 0);
    assert_int_equal(tuttiHostGraphRetainUser(graph, object, 1, true), 0);
    pthread_mutex_lock(&guarded.lock);
    assert_int_equal(tuttiHostGraphDestroy(graph), 0);
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
    pthread_mutex_unlock(&guarded.lock);
    while (!atomic_load(&guarded.ended))
        sched_yield();
    assert_false(pthread_equal(guarded.by, pthread_self()));
}

/* The first test of all: the process has no stream and no thread of ours yet. */
static void destructors_need_no_stream(void **state)
{
    struct guarded guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct CUuserObject_st *object = NULL;
    (void)state;
    assert_int_equal(tuttiHostUserCreate(take_lock, &guarded, 1, &object), 0);
    assert_int_equal(tuttiHostUserRelease(object, 1), 0);
    while (!atomic_load(&guarded.ended))
        sched_yield();
    assert_false(pthread_equal(guarded.by, pthread_self()));
}

int main(void)
{
    setenv("TUTTI_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destructors_need_no_stream),
        cmocka_unit_test(captured_items_run_at_launch),
        cmocka_unit_test(fork_and_join),
        cmocka_unit_test(waiting_in_a_capture_invalidates),
        cmocka_unit_test(failed_capture_keeps_nothing),
        cmocka_unit_test(built_by_hand),
        cmocka_unit_test(threads_add_to_one_capture),
        cmocka_unit_test(destructors_run_on_threads_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
