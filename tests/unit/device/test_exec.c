/* Launches of executable graphs: one after another in the order of the calls, on whatever streams
 * and from whatever threads, also when the graph is changed between them; and a change does not
 * inherit what a launch under way has done. Event nodes are told at the launch. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_graph.h"
#include "device/host/host_stream.h"
#include "device/host/host_vmm.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, TURNS = 200, LOOKS = 50 };

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

struct counter {
    struct tt_item item;
    int count;        /* plain: launches never overlap */
    _Atomic int seen; /* the same, to be read while one runs */
};

static enum tt_step counter_step(struct tt_item *item, enum tt_item_call call)
{
    struct counter *counter = (struct counter *)item;
    if (call == TT_ITEM_STEP) atomic_store(&counter->seen, ++counter->count);
    return TT_STEP_DONE;
}

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream = NULL;
    assert_int_equal(tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream), 0);
    return stream;
}

static struct CUgraph_st *graph_of(struct tt_item *item)
{
    struct CUgraph_st *graph = NULL;
    struct CUgraphNode_st *node = NULL;
    const struct tt_node what = {.kind = TT_NODE_KERNEL, .item = item};
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, &what, &node), 0);
    return graph;
}

static struct CUgraphExec_st *exec_of(struct CUgraph_st *graph)
{
    struct CUgraphExec_st *exec = NULL;
    assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 0);
    return exec;
}

/* The first launch stands behind a gate; the second one could run at once and must not. */
static void check_second_waits(bool update)
{
    struct CUstream_st *first = new_stream();
    struct CUstream_st *second = new_stream();
    struct gate gate = {{.step = gate_step}, 0};
    struct counter counter = {.item = {.step = counter_step}};
    struct CUgraph_st *graph = graph_of(&counter.item);
    struct CUgraphExec_st *exec = exec_of(graph);
    struct CUgraphNode_st *node = NULL;
    enum tt_update reason;
    assert_int_equal(tuttiHostSubmit(first, &gate.item, true), 0);
    assert_int_equal(tuttiHostGraphLaunch(exec, first), 0);
    if (update) assert_int_equal(tuttiHostExecUpdate(exec, graph, &reason, &node), 0);
    assert_int_equal(tuttiHostGraphLaunch(exec, second), 0);
    for (int i = 0; i < LOOKS; i++) {
        assert_int_equal(tuttiHostStreamQuery(second), 600);
        assert_int_equal(atomic_load(&counter.seen), 0);
    }
    atomic_store(&gate.open, 1);
    assert_int_equal(tuttiHostStreamSynchronize(second), 0);
    assert_int_equal(counter.count, 2);
    assert_int_equal(tuttiHostStreamQuery(first), 0);
    tuttiHostGraphExecDestroy(exec);
    tuttiHostGraphDestroy(graph);
    tuttiHostStreamDestroy(first);
    tuttiHostStreamDestroy(second);
}

static void launches_run_in_the_order_of_calls(void **state)
{
    (void)state;
    check_second_waits(false);
}

static void changed_graphs_keep_that_order(void **state)
{
    (void)state;
    check_second_waits(true);
}

/* ---- several threads ---- */

struct launcher {
    struct CUgraphExec_st *exec;
    struct CUstream_st *stream;
};

static void *launch_thread(void *arg)
{
    const struct launcher *launcher = arg;
    for (int turn = 0; turn < TURNS; turn++) {
        assert_int_equal(tuttiHostGraphLaunch(launcher->exec, launcher->stream), 0);
        if (turn % 8 == 0) assert_int_equal(tuttiHostStreamSynchronize(launcher->stream), 0);
    }
    assert_int_equal(tuttiHostStreamSynchronize(launcher->stream), 0);
    return NULL;
}

static void threads_launch_one_executable(void **state)
{
    struct counter counter = {.item = {.step = counter_step}};
    struct CUgraph_st *graph = graph_of(&counter.item);
    struct launcher launchers[STREAMS];
    pthread_t threads[STREAMS];
    struct CUgraphExec_st *exec = exec_of(graph);
    (void)state;
    for (int t = 0; t < STREAMS; t++) {
        launchers[t] = (struct launcher){exec, new_stream()};
        assert_int_equal(pthread_create(&threads[t], NULL, launch_thread, &launchers[t]), 0);
    }
    for (int t = 0; t < STREAMS; t++) {
        pthread_join(threads[t], NULL);
        tuttiHostStreamDestroy(launchers[t].stream);
    }
    assert_int_equal(counter.count, STREAMS * TURNS);
    tuttiHostGraphExecDestroy(exec);
    tuttiHostGraphDestroy(graph);
}

/* ---- edits in flight ---- */

enum { PARTS = 136 }; /* of 2 MiB: more than a copy moves in one step */
static const size_t long_bytes = (size_t)PARTS * TT_BLOCK_GRAIN;

/* One block, mapped again and again: much to read and little memory. */
static char *long_source(void)
{
    const struct tt_block_info info = {.device = 0, .bytes = TT_BLOCK_GRAIN};
    uint64_t block = 0;
    void *ptr = NULL;
    assert_int_equal(tuttiHostBlockCreate(&info, &block), 0);
    assert_int_equal(tuttiHostReserve(long_bytes, 0, NULL, &ptr), 0);
    for (size_t i = 0; i < PARTS; i++) {
        char *part = (char *)ptr + i * TT_BLOCK_GRAIN;
        assert_int_equal(tuttiHostMap(part, TT_BLOCK_GRAIN, 0, block), 0);
        assert_int_equal(tuttiHostMapAccess(part, TT_BLOCK_GRAIN, 0, 3), 0);
    }
    assert_int_equal(tuttiHostBlockRelease(block), 0);
    return ptr;
}

struct halfway {
    _Atomic int inside, go;
};

static void stay(void *arg)
{
    struct halfway *halfway = arg;
    atomic_store(&halfway->inside, 1);
    while (!atomic_load(&halfway->go))
        sched_yield();
}

/* While the copy of the first launch is half done and a host function holds it there, the
 * executable is changed: the second launch copies everything. */
static void an_edit_inherits_no_progress(void **state)
{
    struct CUstream_st *stream = new_stream();
    struct halfway halfway = {0, 0};
    struct CUgraph_st *graph = NULL;
    struct CUgraphNode_st *copies = NULL, *calls = NULL;
    char *from = long_source();
    void *to = NULL;
    (void)state;
    assert_int_equal(tuttiHostMalloc(0, long_bytes, &to), 0);
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    struct tt_node what = {.kind = TT_NODE_COPY,
                           .copy = {.dst = to, .src = from, .width = long_bytes, .height = 1}};
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, &what, &copies), 0);
    what = (struct tt_node){.kind = TT_NODE_HOST, .host = {stay, &halfway}};
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, &what, &calls), 0);
    struct CUgraphExec_st *exec = exec_of(graph);
    assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
    while (!atomic_load(&halfway.inside))
        sched_yield();
    assert_int_equal(tuttiHostExecNodeEnable(exec, copies, true), 0);
    atomic_store(&halfway.go, 1);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    memset(from, 'n', TT_BLOCK_GRAIN);
    assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    for (size_t at = 0; at < long_bytes; at += TT_BLOCK_GRAIN) {
        assert_int_equal(((char *)to)[at], 'n');
    }
    tuttiHostGraphExecDestroy(exec);
    tuttiHostGraphDestroy(graph);
    tuttiHostFree(to);
    tuttiHostStreamDestroy(stream);
}

/* ---- event nodes ---- */

static struct CUgraphNode_st *add(struct CUgraph_st *graph, struct CUgraphNode_st *after,
                                  const struct tt_node *what)
{
    struct CUgraphNode_st *node = NULL;
    assert_int_equal(tuttiHostGraphAdd(graph, &after, after != NULL, what, &node), 0);
    return node;
}

static struct CUevent_st *new_event(unsigned flags)
{
    struct CUevent_st *event = NULL;
    assert_int_equal(tuttiHostEventCreate(flags, &event), 0);
    return event;
}

/* Gate, record, gate: the event is recorded from the launch on, and reached in the middle. */
static void check_record(unsigned flags)
{
    struct gate before = {{.step = gate_step}, 0};
    struct gate behind = {{.step = gate_step}, 0};
    struct counter counter = {.item = {.step = counter_step}};
    struct CUstream_st *stream = new_stream(), *other = new_stream();
    struct CUevent_st *event = new_event(flags);
    struct CUgraph_st *graph = graph_of(&before.item);
    struct CUgraphNode_st *first = NULL;
    size_t one = 1;
    float msec = -1;
    assert_int_equal(tuttiHostGraphRoots(graph, &first, &one), 0);
    struct CUgraphNode_st *record =
        add(graph, first, &(struct tt_node){.kind = TT_NODE_RECORD, .event = event});
    add(graph, record, &(struct tt_node){.kind = TT_NODE_KERNEL, .item = &behind.item});
    struct CUgraphExec_st *exec = exec_of(graph);
    assert_int_equal(tuttiHostEventQuery(event), 0);
    for (int launch = 1; launch <= 2; launch++) {
        atomic_store(&before.open, 0);
        atomic_store(&behind.open, 0);
        assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
        assert_int_equal(tuttiHostEventQuery(event), 600);
        assert_int_equal(tuttiHostStreamWaitEvent(other, event), 0);
        assert_int_equal(tuttiHostSubmit(other, &counter.item, true), 0);
        assert_int_equal(counter.count, launch - 1);
        atomic_store(&before.open, 1);
        assert_int_equal(tuttiHostEventSynchronize(event), 0);
        assert_int_equal(tuttiHostStreamSynchronize(other), 0);
        assert_int_equal(counter.count, launch);
        assert_int_equal(tuttiHostStreamQuery(stream), 600);
        atomic_store(&behind.open, 1);
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    }
    if (!flags) assert_int_equal(tuttiHostEventElapsed(&msec, event, event), 0);
    if (!flags) assert_true(msec == 0);
    tuttiHostGraphExecDestroy(exec);
    tuttiHostGraphDestroy(graph);
    tuttiHostEventDestroy(event);
    tuttiHostStreamDestroy(stream);
    tuttiHostStreamDestroy(other);
}

static void record_nodes_count_from_the_launch_on(void **state)
{
    (void)state;
    check_record(0);
    check_record(TT_EVENT_NO_TIMING);
    check_record(TT_EVENT_NO_TIMING | TT_EVENT_INTERPROCESS);
}

/* Two launches are queued, each behind a record of its own; a third record comes behind them. */
static void wait_nodes_wait_for_the_record_before_the_launch(void **state)
{
    struct gate gates[2] = {{{.step = gate_step}, 0}, {{.step = gate_step}, 0}};
    struct counter counter = {.item = {.step = counter_step}};
    struct CUstream_st *stream = new_stream(), *other = new_stream();
    struct CUevent_st *event = new_event(TT_EVENT_NO_TIMING);
    struct CUgraph_st *graph = NULL;
    (void)state;
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    struct CUgraphNode_st *wait =
        add(graph, NULL, &(struct tt_node){.kind = TT_NODE_WAIT, .event = event});
    add(graph, wait, &(struct tt_node){.kind = TT_NODE_KERNEL, .item = &counter.item});
    struct CUgraphExec_st *exec = exec_of(graph);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tuttiHostSubmit(other, &gates[i].item, true), 0);
        assert_int_equal(tuttiHostEventRecord(event, other), 0);
        assert_int_equal(tuttiHostGraphLaunch(exec, stream), 0);
    }
    assert_int_equal(tuttiHostEventRecord(event, stream), 0); /* behind the launches */
    for (int i = 0; i < 2; i++) {
        for (int look = 0; look < LOOKS; look++) {
            assert_int_equal(tuttiHostStreamQuery(stream), 600);
            assert_true(atomic_load(&counter.seen) <= i);
        }
        atomic_store(&gates[i].open, 1);
    }
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(counter.count, 2);
    assert_int_equal(tuttiHostEventQuery(event), 0);
    tuttiHostGraphExecDestroy(exec);
    tuttiHostGraphDestroy(graph);
    tuttiHostEventDestroy(event);
    tuttiHostStreamDestroy(stream);
    tuttiHostStreamDestroy(other);
}

/* ---- several threads, one executable ---- */

enum { LAUNCHERS = 4, LAUNCHES = 200 };

struct adder { /* no atomic: launches of an executable do not overlap */
    struct tt_item item;
    int sum, inside;
};

static enum tt_step adder_step(struct tt_item *item, enum tt_item_call call)
{
    struct adder *adder = (struct adder *)item;
    if (call != TT_ITEM_STEP) return TT_STEP_DONE;
    if (adder->inside++) adder->sum -= 1000000;
    adder->sum++;
    adder->inside--;
    return TT_STEP_DONE;
}

static void *launch_often(void *exec)
{
    struct CUstream_st *stream = NULL;
    tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream);
    size_t good = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        good += tuttiHostGraphLaunch(exec, stream) == 0;
        if (i % 16 == 0) good += tuttiHostStreamSynchronize(stream) != 0;
    }
    tuttiHostStreamSynchronize(stream);
    tuttiHostStreamDestroy(stream);
    return (void *)good;
}

static void threads_share_an_executable(void **state)
{
    static struct adder adder = {.item = {.step = adder_step}};
    const struct tt_node node = {.kind = TT_NODE_KERNEL, .item = &adder.item};
    struct CUgraph_st *graph = NULL;
    struct CUgraphNode_st *added = NULL;
    struct CUgraphExec_st *exec = NULL;
    pthread_t threads[LAUNCHERS];
    (void)state;
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, &node, &added), 0);
    assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 0);
    for (int i = 0; i < LAUNCHERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, exec), 0);
    }
    for (int i = 0; i < LAUNCHERS; i++) {
        void *good = NULL;
        pthread_join(threads[i], &good);
        assert_int_equal((size_t)good, LAUNCHES);
    }
    assert_int_equal(adder.sum, LAUNCHERS * LAUNCHES);
    assert_int_equal(tuttiHostGraphExecDestroy(exec), 0);
    assert_int_equal(tuttiHostGraphDestroy(graph), 0);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "1", 1);
    setenv("TUTTI_DEVICE_MEMORY", "1G", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_run_in_the_order_of_calls),
        cmocka_unit_test(changed_graphs_keep_that_order),
        cmocka_unit_test(threads_launch_one_executable),
        cmocka_unit_test(an_edit_inherits_no_progress),
        cmocka_unit_test(record_nodes_count_from_the_launch_on),
        cmocka_unit_test(wait_nodes_wait_for_the_record_before_the_launch),
        cmocka_unit_test(threads_share_an_executable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
