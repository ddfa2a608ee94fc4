/* Nanoseconds of the shortest ways through the host device: what a stream, an event, a host
 * function, a copy, a graph node and an allocation cost when nothing is in their way. The least of
 * several rounds is printed, since the machine may be shared. */
#include "device/host/host.h"
#include "device/host/host_graph.h"
#include "device/host/host_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, TURNS = 20000, NODES_MOST = 100 };

struct rig {
    struct CUstream_st *stream;
    struct CUevent_st *timed, *untimed;
    struct CUgraphExec_st *execs[3];
    char *from, *to;
    struct tt_item item;
};

static double now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void nothing(void *arg)
{
    (void)arg;
}

static enum tt_step done_at_once(struct tt_item *item, enum tt_item_call call)
{
    (void)item, (void)call;
    return TT_STEP_DONE;
}

static void do_synchronize(struct rig *rig)
{
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_synchronize_legacy(struct rig *rig)
{
    (void)rig;
    tuttiHostStreamSynchronize(NULL);
}

static void do_query(struct rig *rig)
{
    tuttiHostStreamQuery(rig->stream);
}

static void do_event_query(struct rig *rig)
{
    tuttiHostEventQuery(rig->untimed);
}

static void do_record(struct rig *rig)
{
    tuttiHostEventRecord(rig->untimed, rig->stream);
}

static void do_record_timed(struct rig *rig)
{
    tuttiHostEventRecord(rig->timed, rig->stream);
}

static void do_item(struct rig *rig)
{
    tuttiHostSubmit(rig->stream, &rig->item, true);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_call(struct rig *rig)
{
    tuttiHostCall(rig->stream, nothing, NULL);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_copy(struct rig *rig)
{
    const struct tt_copy copy = {.dst = rig->to, .src = rig->from, .width = 8};
    tuttiHostCopy(rig->stream, &copy);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_graph_1(struct rig *rig)
{
    tuttiHostGraphLaunch(rig->execs[0], rig->stream);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_graph_10(struct rig *rig)
{
    tuttiHostGraphLaunch(rig->execs[1], rig->stream);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_graph_100(struct rig *rig)
{
    tuttiHostGraphLaunch(rig->execs[2], rig->stream);
    tuttiHostStreamSynchronize(rig->stream);
}

static void do_malloc(struct rig *rig)
{
    void *ptr = NULL;
    (void)rig;
    tuttiHostMalloc(0, 1 << 20, &ptr);
    tuttiHostFree(ptr);
}

static void do_pointer(struct rig *rig)
{
    struct tt_pointer pointer;
    tuttiHostPointer(rig->from + 1000, &pointer);
}

static void do_set_device(struct rig *rig)
{
    (void)rig;
    tuttiHostSetDevice(0);
}

static void do_last_error(struct rig *rig)
{
    (void)rig;
    tuttiHostErrorGet();
}

struct row {
    const char *name;
    void (*run)(struct rig *rig);
    int per_turn; /* what one turn is divided by */
};

static const struct row rows[] = {
    {"last error", do_last_error, 1},
    {"set device", do_set_device, 1},
    {"synchronise, idle", do_synchronize, 1},
    {"synchronise, idle, legacy stream", do_synchronize_legacy, 1},
    {"query, idle", do_query, 1},
    {"event query", do_event_query, 1},
    {"event record without timing", do_record, 1},
    {"event record with timing", do_record_timed, 1},
    {"item and synchronise", do_item, 1},
    {"empty host function and synchronise", do_call, 1},
    {"8-byte copy and synchronise", do_copy, 1},
    {"graph of 1 node and synchronise", do_graph_1, 1},
    {"graph of 10 nodes, per node", do_graph_10, 10},
    {"graph of 100 nodes, per node", do_graph_100, 100},
    {"pointer lookup", do_pointer, 1},
    {"allocate and free 1 MiB, warm", do_malloc, 1},
};

static struct CUgraphExec_st *make_exec(struct rig *rig, int nodes)
{
    const struct tt_copy copy = {.dst = rig->to, .src = rig->from, .width = 8};
    struct CUgraph_st *graph = NULL;
    struct CUgraphExec_st *exec = NULL;
    tuttiHostCaptureBegin(rig->stream, 2);
    for (int i = 0; i < nodes; i++) {
        tuttiHostCopy(rig->stream, &copy);
    }
    if (tuttiHostCaptureEnd(rig->stream, &graph) || tuttiHostGraphInstantiate(graph, &exec))
        exit(1);
    tuttiHostGraphDestroy(graph);
    return exec;
}

static double measure(const struct row *row, struct rig *rig)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        int turns = TURNS / row->per_turn;
        double start = now_nsec();
        for (int turn = 0; turn < turns; turn++) {
            row->run(rig);
        }
        double nsec = (now_nsec() - start) / turns / row->per_turn;
        if (nsec < least) least = nsec;
    }
    return least;
}

/* Copies against memcpy of the same bytes, both ways alternating. */
static void compare_copy(struct rig *rig, size_t bytes)
{
    double ours = 1e18;
    double plain = 1e18;
    int turns = bytes < ((size_t)1 << 20) ? 200 : 3;
    const struct tt_copy copy = {.dst = rig->to, .src = rig->from, .width = bytes};
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_nsec();
        for (int turn = 0; turn < turns; turn++) {
            memcpy(rig->to, rig->from, bytes);
            __asm__ volatile("" ::: "memory");
        }
        double between = now_nsec();
        for (int turn = 0; turn < turns; turn++) {
            tuttiHostCopy(rig->stream, &copy);
            tuttiHostStreamSynchronize(rig->stream);
        }
        double end = now_nsec();
        if (between - start < plain) plain = between - start;
        if (end - between < ours) ours = end - between;
    }
    printf("copy of %8zu KiB  %8.2f GB/s  memcpy %8.2f GB/s  ratio %.3f\n", bytes >> 10,
           (double)bytes * turns / ours, (double)bytes * turns / plain, plain / ours);
}

int main(void)
{
    enum { COPY_MOST = 64 << 20 };
    struct rig rig = {.item = {done_at_once}};
    static const int nodes[] = {1, 10, NODES_MOST};
    if (tuttiHostStreamCreate(1, 0, &rig.stream) || tuttiHostEventCreate(0, &rig.timed) ||
        tuttiHostEventCreate(2, &rig.untimed) ||
        tuttiHostMalloc(0, COPY_MOST, (void **)&rig.from) ||
        tuttiHostMalloc(0, COPY_MOST, (void **)&rig.to))
        return 1;
    memset(rig.from, 1, COPY_MOST);
    memset(rig.to, 1, COPY_MOST);
    for (int i = 0; i < 3; i++) {
        rig.execs[i] = make_exec(&rig, nodes[i]);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("%-38s %8.1f ns\n", rows[i].name, measure(&rows[i], &rig));
    }
    for (size_t bytes = 4096; bytes <= COPY_MOST; bytes *= 16) {
        compare_copy(&rig, bytes);
    }
    compare_copy(&rig, COPY_MOST);
    return 0;
}
