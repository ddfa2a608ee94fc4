/* When a copy reads its source, and whom it makes wait: never before what precedes it on its stream
 * is done, whatever memory it is; and only pageable memory, or host memory at both ends, keeps the
 * caller. */
#include "../check.h"
#include "tutti.h"

#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_kernel.h"
#include "device/host/host_stream.h"
#include "device/host/host_vmm.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = TT_BLOCK_GRAIN, LEN = 4096 };

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

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream = NULL;
    assert_int_equal(tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream), 0);
    return stream;
}

/* ---- kinds of memory ---- */

static char variable[BYTES];

static char *in_variable(void)
{
    static void *module;
    if (!module) {
        module = tuttiHostModuleOpen(NULL);
        tuttiHostVariableAdd(module, variable, "variable", sizeof(variable));
    }
    return variable;
}

static char *in_parts(void)
{
    const struct tt_block_info info = {.device = 0, .bytes = BYTES};
    uint64_t block = 0;
    void *ptr = NULL;
    assert_int_equal(tuttiHostBlockCreate(&info, &block), 0);
    assert_int_equal(tuttiHostReserve(BYTES, 0, NULL, &ptr), 0);
    assert_int_equal(tuttiHostMap(ptr, BYTES, 0, block), 0);
    assert_int_equal(tuttiHostMapAccess(ptr, BYTES, 0, 3), 0);
    assert_int_equal(tuttiHostBlockRelease(block), 0);
    return ptr;
}

static char *registered(void)
{
    char *ptr = aligned_alloc(4096, BYTES);
    assert_int_equal(tuttiHostHostRegister(ptr, BYTES, 0), 0);
    return ptr;
}

static void unregister(char *ptr)
{
    assert_int_equal(tuttiHostHostUnregister(ptr), 0);
    free(ptr);
}

static char *pinned(void)
{
    void *ptr = NULL;
    assert_int_equal(tuttiHostMallocHost(BYTES, 0, false, &ptr), 0);
    return ptr;
}

static char *managed(void)
{
    void *ptr = NULL;
    assert_int_equal(tuttiHostMallocHost(BYTES, 1, true, &ptr), 0);
    return ptr;
}

static char *on_device(void)
{
    void *ptr = NULL;
    assert_int_equal(tuttiHostMalloc(0, BYTES, &ptr), 0);
    return ptr;
}

static char *pageable(void)
{
    return malloc(BYTES);
}

static void drop_pageable(char *ptr)
{
    free(ptr);
}

static void leave_it(char *ptr)
{
    (void)ptr;
}

static const struct kind {
    const char *name;
    char *(*make)(void);
    void (*drop)(char *ptr);
    bool host, pageable;
} kinds[] = {{"pageable", pageable, drop_pageable, true, true},
             {"registered", registered, unregister, true, false},
             {"pinned", pinned, leave_it, true, false},
             {"managed", managed, leave_it, false, false},
             {"device", on_device, leave_it, false, false},
             {"parts", in_parts, leave_it, false, false},
             {"variable", in_variable, leave_it, false, false}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- one copy behind work that writes its source ---- */

struct fixture {
    struct CUstream_st *stream;
    struct gate gate;
    char *from, *to;
    _Atomic int copying; /* the call is about to be made */
};

static void write_source(void *arg)
{
    const struct fixture *fixture = arg;
    memset(fixture->from, 'n', LEN);
}

static void *open_later(void *arg)
{
    struct fixture *fixture = arg;
    while (!atomic_load(&fixture->copying))
        sched_yield();
    for (int i = 0; i < 200; i++)
        sched_yield(); /* so that a copy that comes too early has the time to */
    atomic_store(&fixture->gate.open, 1);
    return NULL;
}

static void close_gate(struct fixture *fixture)
{
    fixture->gate = (struct gate){{.step = gate_step}, 0};
    memset(fixture->from, 'o', LEN);
    memset(fixture->to, '-', LEN);
    assert_int_equal(tuttiHostSubmit(fixture->stream, &fixture->gate.item, true), 0);
    assert_int_equal(tuttiHostCall(fixture->stream, write_source, fixture), 0);
}

static int copy(const struct fixture *fixture, bool rows)
{
    const struct tt_copy boxes = {.dst = fixture->to,
                                  .src = fixture->from,
                                  .dst_pitch = LEN / 4,
                                  .src_pitch = LEN / 4,
                                  .width = LEN / 4,
                                  .height = 4};
    return rows ? tuttiHostCopy(fixture->stream, &boxes)
                : tuttiHostCopyBytes(fixture->stream, fixture->to, fixture->from, LEN);
}

/* The caller of such a copy may stay: another thread lets the stream go on. */
static void check_read_late(struct fixture *fixture, bool rows, bool finished)
{
    pthread_t thread;
    close_gate(fixture);
    atomic_store(&fixture->copying, 0);
    assert_int_equal(pthread_create(&thread, NULL, open_later, fixture), 0);
    atomic_store(&fixture->copying, 1);
    assert_int_equal(copy(fixture, rows), 0);
    if (finished) assert_int_equal(fixture->to[LEN - 1], 'n');
    assert_int_equal(tuttiHostStreamSynchronize(fixture->stream), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < LEN; i++) {
        assert_int_equal(fixture->to[i], 'n');
    }
}

/* The caller of such a copy must not stay: it lets the stream go on. */
static void check_returns(struct fixture *fixture, bool rows)
{
    close_gate(fixture);
    assert_int_equal(copy(fixture, rows), 0);
    assert_int_equal(fixture->to[0], '-');
    atomic_store(&fixture->gate.open, 1);
    assert_int_equal(tuttiHostStreamSynchronize(fixture->stream), 0);
    assert_int_equal(fixture->to[LEN - 1], 'n');
}

static void check_kinds(struct fixture *fixture, const struct kind *from, const struct kind *to)
{
    bool finished = from->pageable || to->pageable || (from->host && to->host);
    print_message("case: %s to %s\n", from->name, to->name);
    fixture->from = from->make();
    fixture->to = to->make() + LEN;
    for (int rows = 0; rows < 2; rows++) {
        check_read_late(fixture, rows, finished);
        if (!finished) check_returns(fixture, rows);
    }
    from->drop(fixture->from);
    to->drop(fixture->to - LEN);
}

static void sources_are_read_in_stream_order(void **state)
{
    struct fixture fixture = {.stream = new_stream()};
    (void)state;
    for (int from = 0; from < KINDS; from++) {
        for (int to = 0; to < KINDS; to++) {
            check_kinds(&fixture, &kinds[from], &kinds[to]);
        }
    }
    tuttiHostStreamDestroy(fixture.stream);
}

/* ---- at replay ---- */

static void captured_sources_are_read_at_replay(void **state)
{
    struct CUgraph_st *graph = NULL;
    struct CUgraphExec_st *exec = NULL;
    struct fixture fixture = {.stream = new_stream()};
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        print_message("case: %s\n", kinds[k].name);
        fixture.from = kinds[k].make();
        fixture.to = on_device();
        memset(fixture.from, 'o', LEN);
        assert_int_equal(tuttiHostCaptureBegin(fixture.stream, 2), 0);
        assert_int_equal(tuttiHostCall(fixture.stream, write_source, &fixture), 0);
        assert_int_equal(copy(&fixture, false), 0);
        assert_int_equal(tuttiHostCaptureEnd(fixture.stream, &graph), 0);
        assert_int_equal(fixture.from[0], 'o');
        assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 0);
        fixture.gate = (struct gate){{.step = gate_step}, 0};
        assert_int_equal(tuttiHostSubmit(fixture.stream, &fixture.gate.item, true), 0);
        assert_int_equal(tuttiHostGraphLaunch(exec, fixture.stream), 0); /* stays for no memory */
        atomic_store(&fixture.gate.open, 1);
        assert_int_equal(tuttiHostStreamSynchronize(fixture.stream), 0);
        assert_int_equal(fixture.to[LEN - 1], 'n');
        tuttiHostGraphExecDestroy(exec);
        tuttiHostGraphDestroy(graph);
        kinds[k].drop(fixture.from);
    }
    tuttiHostStreamDestroy(fixture.stream);
}

/* ---- memory of another process ---- */

static struct CUgraphExec_st *exec_of(const struct tt_node *what)
{
    struct CUgraph_st *graph = NULL;
    struct CUgraphNode_st *node = NULL;
    struct CUgraphExec_st *exec = NULL;
    assert_int_equal(tuttiHostGraphCreate(&graph), 0);
    assert_int_equal(tuttiHostGraphAdd(graph, NULL, 0, what, &node), 0);
    assert_int_equal(tuttiHostGraphInstantiate(graph, 0, &exec), 0);
    assert_int_equal(tuttiHostGraphDestroy(graph), 0);
    return exec;
}

struct toucher { /* an item that writes a byte, and says so, as collectives do */
    struct tt_item item;
    char *ptr;
};

static enum tt_step toucher_step(struct tt_item *item, enum tt_item_call call)
{
    const struct toucher *toucher = (const struct toucher *)item;
    if (call == TT_ITEM_TOUCH) tuttiHostTouch(toucher->ptr, 1, true);
    if (call == TT_ITEM_STEP) *toucher->ptr = 1;
    return TT_STEP_DONE;
}

static void kernel_stub(void) {}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block;
    (void)context;
    **(char **)args[0] = 1;
}

static struct tt_item *kernel_on(char *ptr)
{
    static const size_t bytes[] = {sizeof(ptr)};
    const void *function = (const void *)(uintptr_t)kernel_stub;
    void *args[] = {&ptr};
    struct tt_item *item = NULL;
    const struct tuttiKernel kernel = {.size = sizeof(kernel),
                                       .function = function,
                                       .run = run_kernel,
                                       .nargs = 1,
                                       .arg_bytes = bytes};
    const struct tt_launch launch = {
        .function = function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args};
    assert_int_equal(tuttiRegisterKernel(&kernel), 0);
    assert_int_equal(tuttiHostKernelItem(&launch, &item), 0);
    return item;
}

/* Graphs on memory that was closed refuse to start. */
static void check_closed(struct CUstream_st *stream, char *opened, char *own)
{
    static struct toucher toucher = {.item = {.step = toucher_step, .reports_touches = true}};
    toucher.ptr = opened;
    const struct tt_node nodes[] = {
        {.kind = TT_NODE_COPY, .copy = {.dst = own, .src = opened, .width = LEN, .height = 1}},
        {.kind = TT_NODE_COPY, .copy = {.dst = opened, .src = own, .width = LEN, .height = 1}},
        {.kind = TT_NODE_SET, .set = {opened, 1, 1, LEN, LEN, 1}},
        {.kind = TT_NODE_KERNEL, .item = kernel_on(opened)},
        {.kind = TT_NODE_KERNEL, .item = &toucher.item}};
    struct CUgraphExec_st *execs[5];
    for (int i = 0; i < 5; i++) {
        execs[i] = exec_of(&nodes[i]);
        assert_int_equal(tuttiHostGraphLaunch(execs[i], stream), 0);
    }
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    assert_int_equal(tuttiHostIpcClose(opened), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tuttiHostGraphLaunch(execs[i], stream), 1);
        assert_int_equal(tuttiHostGraphExecDestroy(execs[i]), 0);
    }
}

/* The child's memory is device memory: copies into it and out of it wait for their turn and keep
 * no caller. */
static void opened_memory_is_device_memory(void **state)
{
    unsigned char token[TT_IPC_BYTES];
    struct fixture fixture = {0};
    int tokens[2], end[2], status = 0;
    void *ptr = NULL;
    (void)state;
    assert_int_equal(pipe(tokens), 0);
    assert_int_equal(pipe(end), 0);
    pid_t child = fork(); /* before this process uses its devices */
    if (child == 0) {
        bool good = tuttiHostMalloc(0, BYTES, &ptr) == 0 && tuttiHostIpcGet(ptr, token) == 0 &&
                    write(tokens[1], token, sizeof(token)) == (ssize_t)sizeof(token);
        close(end[1]);
        _exit(good && read(end[0], token, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(read(tokens[0], token, sizeof(token)), (ssize_t)sizeof(token));
    assert_int_equal(tuttiHostIpcOpen(token, &ptr), 0);
    fixture.stream = new_stream();
    char *own = on_device();
    for (int into = 0; into < 2; into++) {
        fixture.from = into ? own : ptr;
        fixture.to = into ? ptr : own;
        check_read_late(&fixture, false, false);
        check_returns(&fixture, false);
    }
    check_closed(fixture.stream, ptr, own);
    tuttiHostStreamDestroy(fixture.stream);
    close(end[0]);
    close(end[1]);
    close(tokens[0]);
    close(tokens[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- host functions ---- */

struct asker {
    struct fixture fixture;
    struct CUstream_st *other;
    int rc;
};

static void ask_for_copy(void *arg)
{
    struct asker *asker = arg;
    asker->rc = copy(&asker->fixture, false);
}

/* A host function that waits for a stream might wait for itself. */
static void host_functions_wait_for_no_copy(void **state)
{
    struct asker asker = {.fixture = {.stream = new_stream()}, .other = new_stream()};
    (void)state;
    asker.fixture.from = pageable();
    asker.fixture.to = on_device();
    close_gate(&asker.fixture);
    assert_int_equal(tuttiHostCall(asker.other, ask_for_copy, &asker), 0);
    assert_int_equal(tuttiHostStreamSynchronize(asker.other), 0);
    assert_int_equal(asker.rc, 800);
    atomic_store(&asker.fixture.gate.open, 1);
    assert_int_equal(tuttiHostStreamSynchronize(asker.fixture.stream), 0);
    assert_int_equal(asker.fixture.to[0], '-');
    tuttiHostStreamDestroy(asker.fixture.stream);
    tuttiHostStreamDestroy(asker.other);
    free(asker.fixture.from);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "1", 1);
    setenv("TUTTI_DEVICE_MEMORY", "1G", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_memory_is_device_memory),
        cmocka_unit_test(sources_are_read_in_stream_order),
        cmocka_unit_test(captured_sources_are_read_at_replay),
        cmocka_unit_test(host_functions_wait_for_no_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
