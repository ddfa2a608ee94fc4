/* Memory that runs short, once at each allocation that some scenarios make: every call answers,
 * nothing crashes or leaks, and what comes afterwards works. */
#include "../check.h"
#include "../starve.h"
#include "tutti.h"

#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_kernel.h"
#include "device/host/host_pool.h"
#include "device/host/host_stream.h"
#include "device/host/host_vmm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LEN = 4096, MANY = 80, MOST = 4000 };

struct gate {
    struct tt_item item;
    _Atomic int open;
};

static enum tt_step gate_step(struct tt_item *item, enum tt_item_call call)
{
    struct gate *gate = (struct gate *)item;
    if (call != TT_ITEM_STEP) return TT_STEP_DONE;
    return atomic_load(&gate->open) ? TT_STEP_DONE : TT_STEP_WAIT;
}

static int refused; /* calls of the scenario that did not answer 0 */

static bool works(int rc)
{
    if (rc) refused++;
    return rc == 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static struct CUstream_st *new_stream(unsigned flags)
{
    struct CUstream_st *stream = NULL;
    works(tuttiHostStreamCreate(flags, 0, &stream));
    return stream;
}

static struct CUevent_st *new_event(unsigned flags)
{
    struct CUevent_st *event = NULL;
    works(tuttiHostEventCreate(flags, &event));
    return event;
}

static void *new_memory(void)
{
    void *ptr = NULL;
    works(tuttiHostMalloc(0, LEN, &ptr));
    return ptr;
}

static void end_stream(struct CUstream_st *stream)
{
    if (!stream) return;
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(tuttiHostStreamDestroy(stream), 0);
}

static void end_event(struct CUevent_st *event)
{
    if (event) assert_int_equal(tuttiHostEventDestroy(event), 0);
}

/* ---- scenarios ---- */

static void queues(void)
{
    char value[TT_ATTRIBUTE_BYTES] = {0};
    struct gate gate = {.item = {.step = gate_step}};
    struct CUstream_st *stream = new_stream(TT_STREAM_NON_BLOCKING);
    struct CUstream_st *blocking = new_stream(0);
    struct CUevent_st *event = new_event(0);
    struct CUevent_st *shared = new_event(TT_EVENT_INTERPROCESS | TT_EVENT_NO_TIMING);
    void *ptr = new_memory();
    bool held = stream && works(tuttiHostSubmit(stream, &gate.item, true));
    if (stream) works(tuttiHostStreamAttributeSet(stream, 1, value));
    if (stream && blocking) works(tuttiHostStreamAttributesCopy(blocking, stream));
    for (int i = 0; stream && ptr && i < MANY; i++) {
        works(tuttiHostCopyBytes(stream, ptr, (char *)ptr + LEN / 2, LEN / 2));
    }
    if (stream && event) works(tuttiHostEventRecord(event, stream));
    if (stream && shared) works(tuttiHostEventRecord(shared, stream));
    if (blocking && event) works(tuttiHostStreamWaitEvent(blocking, event));
    if (blocking) works(tuttiHostCall(blocking, nothing, NULL));
    if (ptr) works(tuttiHostCopyBytes(NULL, ptr, (char *)ptr + LEN / 2, LEN / 2));
    if (blocking) tuttiHostStreamQuery(NULL);
    if (held) atomic_store(&gate.open, 1);
    end_stream(blocking);
    works(tuttiHostStreamSynchronize(NULL));
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
    end_stream(stream);
    end_event(event);
    end_event(shared);
    tuttiHostFree(ptr);
}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block;
    (void)args;
    (void)context;
}

static void kernel_stub(void) {}

static const void *kernel_handle(void)
{
    return (const void *)(uintptr_t)kernel_stub;
}

static void kernels(void)
{
    static const size_t bytes[] = {sizeof(int)};
    int number = 1;
    void *args[] = {&number};
    const struct tuttiKernel kernel = {.size = sizeof(kernel),
                                       .function = kernel_handle(),
                                       .name = "kernel",
                                       .run = run_kernel,
                                       .nargs = 1,
                                       .arg_bytes = bytes};
    const struct tt_launch launch = {.function = kernel_handle(),
                                     .grid = {1, 1, 1},
                                     .block = {1, 1, 1},
                                     .shared_bytes = 64,
                                     .args = args};
    void *module = tuttiHostModuleOpen(NULL);
    if (!module) refused++;
    if (module) tuttiHostKernelAdd(module, kernel_handle(), "kernel");
    if (module) tuttiHostVariableAdd(module, &refused, "variable", sizeof(refused));
    if (module && works(tuttiRegisterKernel(&kernel))) works(tuttiHostLaunch(NULL, &launch));
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
    if (module) tuttiHostModuleClose(module);
}

/* One with memory nodes has no copies. */
static void use_graph(struct CUgraph_st *graph, bool has_memory)
{
    struct CUgraph_st *clone = NULL;
    struct CUgraphExec_st *exec = NULL;
    struct CUgraphNode_st *where = NULL;
    enum tt_update reason;
    struct CUstream_st *stream = new_stream(TT_STREAM_NON_BLOCKING);
    if (!has_memory) works(tuttiHostGraphClone(&clone, graph));
    works(tuttiHostGraphInstantiate(graph, 0, &exec));
    if (exec && stream) {
        works(tuttiHostGraphLaunch(exec, stream));
        works(tuttiHostGraphLaunch(exec, stream));
        works(tuttiHostExecUpdate(exec, graph, &reason, &where));
        works(tuttiHostGraphLaunch(exec, stream));
    }
    end_stream(stream);
    if (exec) assert_int_equal(tuttiHostGraphExecDestroy(exec), 0);
    if (clone) assert_int_equal(tuttiHostGraphDestroy(clone), 0);
}

static void captures(void)
{
    struct gate gate = {.item = {.step = gate_step}, .open = 1};
    struct CUstream_st *stream = new_stream(TT_STREAM_NON_BLOCKING);
    struct CUstream_st *side = new_stream(TT_STREAM_NON_BLOCKING);
    struct CUevent_st *fork = new_event(TT_EVENT_NO_TIMING), *outside = new_event(0);
    struct CUevent_st *join = new_event(TT_EVENT_NO_TIMING);
    struct CUgraphNode_st *const *tips = NULL;
    struct CUgraph_st *graph = NULL;
    size_t ntips = 0;
    void *ptr = new_memory(), *own = NULL;
    if (stream && side && fork && outside && join && ptr &&
        works(tuttiHostCaptureBegin(stream, 2))) {
        works(tuttiHostSubmit(stream, &gate.item, true));
        works(tuttiHostEventRecord(fork, stream));
        works(tuttiHostStreamWaitEvent(side, fork));
        works(tuttiHostCall(side, nothing, NULL));
        works(tuttiHostEventRecordExternal(outside, stream));
        works(tuttiHostStreamWaitExternal(side, outside));
        works(tuttiHostMallocAsync(NULL, LEN, stream, &own));
        if (own) works(tuttiHostFreeAsync(own, stream));
        works(tuttiHostCopyBytes(stream, ptr, (char *)ptr + LEN / 2, LEN / 2));
        works(tuttiHostEventRecord(join, side));
        works(tuttiHostStreamWaitEvent(stream, join));
        works(tuttiHostStreamJoin(stream, side));
        works(tuttiHostCaptureTips(stream, &tips, &ntips));
        works(tuttiHostCaptureSetTips(stream, tips, ntips, true));
        works(tuttiHostCaptureEnd(stream, &graph));
    }
    if (graph) use_graph(graph, own != NULL);
    if (graph) assert_int_equal(tuttiHostGraphDestroy(graph), 0);
    end_stream(side);
    end_stream(stream);
    end_event(fork);
    end_event(outside);
    end_event(join);
    tuttiHostFree(ptr);
}

static void add_nodes(struct CUgraph_st *graph, struct CUevent_st *event, char *ptr,
                      bool has_memory)
{
    struct CUgraph_st *child = NULL;
    struct CUgraphNode_st *last = NULL, *node = NULL, *before = NULL;
    struct tt_node nodes[] = {
        {.kind = TT_NODE_EMPTY},
        {.kind = TT_NODE_COPY,
         .copy = {.dst = ptr, .src = ptr + LEN / 2, .width = LEN / 2, .height = 1}},
        {.kind = TT_NODE_SET,
         .set = {.ptr = ptr, .value = 1, .elem_bytes = 1, .width = LEN, .height = 1}},
        {.kind = TT_NODE_HOST, .host = {nothing, NULL}},
        {.kind = TT_NODE_RECORD, .event = event},
        {.kind = TT_NODE_WAIT, .event = event},
        {.kind = TT_NODE_ALLOC, .bytes = LEN},
        {.kind = TT_NODE_GRAPH},
    };
    if (works(tuttiHostGraphCreate(&child)))
        works(tuttiHostGraphAdd(child, NULL, 0, &nodes[1], &node));
    nodes[7].graph = child;
    for (int i = 0; child && i < 8; i++) {
        struct CUgraphNode_st *deps[] = {last, before};
        size_t ndeps = (last != NULL) + (before != NULL);
        if (i == 6 && !has_memory) continue;
        if (!works(tuttiHostGraphAdd(graph, deps, ndeps, &nodes[i], &node))) continue;
        before = last;
        last = node;
        if (i > 0 && i < 4) works(tuttiHostNodeSet(node, &nodes[i]));
        if (i == 6) {
            struct tt_node alloc;
            assert_int_equal(tuttiHostNodeGet(node, &alloc), 0);
            const struct tt_node freeing = {.kind = TT_NODE_FREE, .ptr = alloc.ptr};
            works(tuttiHostGraphAdd(graph, &last, 1, &freeing, &node));
        }
    }
    if (child) assert_int_equal(tuttiHostGraphDestroy(child), 0);
}

static void make_and_use(bool has_memory)
{
    struct CUgraph_st *graph = NULL;
    struct CUuserObject_st *object = NULL;
    struct CUevent_st *event = new_event(0);
    void *ptr = new_memory();
    if (event && ptr && works(tuttiHostGraphCreate(&graph))) {
        add_nodes(graph, event, ptr, has_memory);
        if (works(tuttiHostUserCreate(nothing, NULL, 1, &object)) &&
            !works(tuttiHostGraphRetainUser(graph, object, 1, true)))
            assert_int_equal(tuttiHostUserRelease(object, 1), 0);
        use_graph(graph, has_memory);
        assert_int_equal(tuttiHostGraphDestroy(graph), 0);
    }
    end_event(event);
    tuttiHostFree(ptr);
}

static void graphs(void)
{
    make_and_use(false);
}

static void graphs_with_memory(void)
{
    make_and_use(true);
}

static void pools(void)
{
    struct gate gate = {.item = {.step = gate_step}};
    struct CUmemPoolHandle_st *pool = NULL;
    struct CUstream_st *stream = new_stream(TT_STREAM_NON_BLOCKING);
    void *first = NULL, *second = NULL, *plain = new_memory();
    works(tuttiHostPoolCreate(0, TT_POOL_SHARE_FD, (size_t)2 * LEN, &pool));
    if (stream && pool) {
        bool held = works(tuttiHostSubmit(stream, &gate.item, true));
        works(tuttiHostMallocAsync(pool, (size_t)2 * LEN, stream, &first));
        if (first && works(tuttiHostFreeAsync(first, stream))) first = NULL;
        works(tuttiHostMallocAsync(pool, (size_t)2 * LEN, stream, &second)); /* the same again */
        if (plain && works(tuttiHostFreeAsync(plain, stream))) plain = NULL;
        if (held) atomic_store(&gate.open, 1);
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
        if (first) assert_int_equal(tuttiHostFreeUsed(first), 0);
        if (second) assert_int_equal(tuttiHostFreeUsed(second), 0);
    }
    if (pool) assert_int_equal(tuttiHostPoolDestroy(pool), 0);
    end_stream(stream);
    tuttiHostFree(plain);
}

static void memory(void)
{
    static char bytes[LEN];
    const struct tt_block_info info = {.bytes = TT_BLOCK_GRAIN};
    const struct tt_hint hint = {.kind = TT_HINT_READ_MOSTLY, .on = true};
    struct gate gate = {.item = {.step = gate_step}};
    struct CUstream_st *stream = new_stream(TT_STREAM_NON_BLOCKING);
    uint64_t block = 0;
    void *pinned = NULL, *managed = NULL, *room = NULL, *device = new_memory();
    bool held = stream && works(tuttiHostSubmit(stream, &gate.item, true));
    works(tuttiHostMallocHost(LEN, 0, false, &pinned));
    works(tuttiHostMallocHost(LEN, 0, true, &managed));
    if (managed) works(tuttiHostHint(managed, LEN, &hint));
    if (works(tuttiHostHostRegister(bytes, LEN, 0)))
        assert_int_equal(tuttiHostHostUnregister(bytes), 0);
    works(tuttiHostBlockCreate(&info, &block));
    works(tuttiHostReserve(TT_BLOCK_GRAIN, 0, NULL, &room));
    if (block && room && works(tuttiHostMap(room, TT_BLOCK_GRAIN, 0, block))) {
        works(tuttiHostMapAccess(room, TT_BLOCK_GRAIN, 0, 3));
        if (!works(tuttiHostUnmap(room, TT_BLOCK_GRAIN)))
            assert_int_equal(tuttiHostUnmap(room, TT_BLOCK_GRAIN), 0);
    }
    if (pinned) assert_int_equal(tuttiHostFreeHost(pinned), 0);
    if (managed) assert_int_equal(tuttiHostFreeUsed(managed), 0);
    if (device) assert_int_equal(tuttiHostFreeUsed(device), 0);
    if (held) atomic_store(&gate.open, 1);
    if (room) assert_int_equal(tuttiHostUnreserve(room, TT_BLOCK_GRAIN), 0);
    if (block) assert_int_equal(tuttiHostBlockRelease(block), 0);
    end_stream(stream);
}

/* What a program does next, with memory enough. */
static void afterwards(void)
{
    struct CUstream_st *stream = NULL;
    int *ptr = NULL, number = 7, back = 0;
    assert_int_equal(tuttiHostStreamCreate(0, 0, &stream), 0);
    assert_int_equal(tuttiHostMalloc(0, sizeof(int), (void **)&ptr), 0);
    assert_int_equal(tuttiHostCopyBytes(stream, ptr, &number, sizeof(int)), 0);
    assert_int_equal(tuttiHostCopyBytesNow(NULL, &back, ptr, sizeof(int)), 0);
    assert_int_equal(back, number);
    assert_int_equal(tuttiHostFree(ptr), 0);
    assert_int_equal(tuttiHostStreamDestroy(stream), 0);
    assert_int_equal(tuttiHostDeviceSynchronize(0), 0);
}

static void each_allocation_may_fail(void **state)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenarios[] = {
        {"queues", queues},
        {"kernels", kernels},
        {"captures", captures},
        {"graphs", graphs},
        {"graphs with memory", graphs_with_memory},
        {"pools", pools},
        {"memory", memory},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        bool failed = true;
        long n = 0;
        while (failed && n < MOST) {
            refused = 0;
            starve_at(++n);
            scenarios[i].play();
            failed = starve_end();
            afterwards();
        }
        print_message("%s: %ld allocations\n", scenarios[i].name, n - 1);
        assert_false(failed);
        assert_int_equal(refused, 0);
    }
}

int main(void)
{
    setenv("TUTTI_DEVICES", "2", 1);
    setenv("TUTTI_DEVICE_MEMORY", "64M", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
