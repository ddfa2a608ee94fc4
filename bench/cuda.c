/* What the host CUDA runtime costs, through the symbols that programs call: nanoseconds of its
 * small operations beside what is aimed at, and the speed of its copies beside the best way that
 * this machine has for each size (memcpy, rep movsb, streaming stores). The least of several rounds
 * is printed, since the machine may be shared; the ways to copy take turns, and the best of a round
 * is compared with ours of the same round.
 * usage: cuda [ns|copy] */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { ROUNDS = 25, TURNS = 20000, NODES_MOST = 100, SIZES = 9, COPY_ROUNDS = 51 };
enum { WARM_UPS = 6, CACHED_BYTES = 16 << 20 };

struct rig {
    cudaStream_t stream;
    cudaEvent_t timed, untimed;
    cudaGraphExec_t execs[3];
    char *from, *to;
};

static void must(cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
    exit(1);
}

static double now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- small operations ---- */

static void nothing(void *arg)
{
    (void)arg;
}

static void do_set_device(struct rig *rig)
{
    (void)rig;
    cudaSetDevice(0);
}

static void do_last_error(struct rig *rig)
{
    (void)rig;
    cudaGetLastError();
}

static void do_synchronize(struct rig *rig)
{
    cudaStreamSynchronize(rig->stream);
}

static void do_query(struct rig *rig)
{
    cudaStreamQuery(rig->stream);
}

static void do_event_query(struct rig *rig)
{
    cudaEventQuery(rig->untimed);
}

static void do_record(struct rig *rig)
{
    cudaEventRecord(rig->untimed, rig->stream);
}

static void do_record_timed(struct rig *rig)
{
    cudaEventRecord(rig->timed, rig->stream);
}

static void do_call(struct rig *rig)
{
    cudaLaunchHostFunc(rig->stream, nothing, NULL);
    cudaStreamSynchronize(rig->stream);
}

static void do_copy(struct rig *rig)
{
    cudaMemcpyAsync(rig->to, rig->from, 8, cudaMemcpyDeviceToDevice, rig->stream);
    cudaStreamSynchronize(rig->stream);
}

static void do_graph_1(struct rig *rig)
{
    cudaGraphLaunch(rig->execs[0], rig->stream);
    cudaStreamSynchronize(rig->stream);
}

static void do_graph_10(struct rig *rig)
{
    cudaGraphLaunch(rig->execs[1], rig->stream);
    cudaStreamSynchronize(rig->stream);
}

static void do_graph_100(struct rig *rig)
{
    cudaGraphLaunch(rig->execs[2], rig->stream);
    cudaStreamSynchronize(rig->stream);
}

static void do_pool(struct rig *rig)
{
    void *ptr = NULL;
    cudaMallocAsync(&ptr, 1 << 16, rig->stream);
    cudaFreeAsync(ptr, rig->stream);
}

struct row {
    const char *name;
    void (*run)(struct rig *rig);
    int per_turn; /* what one turn is divided by */
    int aim_nsec; /* 0: none */
};

static const struct row rows[] = {
    {"cudaSetDevice", do_set_device, 1, 0},
    {"cudaGetLastError", do_last_error, 1, 5},
    {"cudaStreamSynchronize, idle", do_synchronize, 1, 8},
    {"cudaStreamQuery, idle", do_query, 1, 20},
    {"cudaEventQuery", do_event_query, 1, 20},
    {"cudaEventRecord without timing", do_record, 1, 20},
    {"cudaEventRecord with timing", do_record_timed, 1, 50},
    {"empty host function and wait", do_call, 1, 50},
    {"8-byte copy and wait", do_copy, 1, 60},
    {"graph of 1 node and wait", do_graph_1, 1, 0},
    {"graph of 10 nodes and wait, per node", do_graph_10, 10, 30},
    {"graph of 100 nodes and wait, per node", do_graph_100, 100, 30},
    {"cudaMallocAsync and cudaFreeAsync", do_pool, 1, 0},
};

static cudaGraphExec_t make_exec(const struct rig *rig, int nodes)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    must(cudaStreamBeginCapture(rig->stream, cudaStreamCaptureModeRelaxed), "capture");
    for (int i = 0; i < nodes; i++) {
        cudaMemcpyAsync(rig->to, rig->from, 8, cudaMemcpyDeviceToDevice, rig->stream);
    }
    must(cudaStreamEndCapture(rig->stream, &graph), "capture");
    must(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    must(cudaGraphDestroy(graph), "destroy");
    return exec;
}

static double least_nsec(const struct row *row, struct rig *rig)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const int turns = TURNS / row->per_turn;
        double start = now_nsec();
        for (int turn = 0; turn < turns; turn++) {
            row->run(rig);
        }
        double nsec = (now_nsec() - start) / turns / row->per_turn;
        if (nsec < least) least = nsec;
    }
    return least;
}

static void print_rows(struct rig *rig)
{
    static const int nodes[] = {1, 10, NODES_MOST};
    for (int i = 0; i < 3; i++) {
        rig->execs[i] = make_exec(rig, nodes[i]);
    }
    must(cudaEventRecord(rig->untimed, rig->stream), "record");
    printf("%-40s %8s %6s\n", "operation", "ns", "aim");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("%-40s %8.1f ", rows[i].name, least_nsec(&rows[i], rig));
        if (rows[i].aim_nsec) printf("%6d", rows[i].aim_nsec);
        printf("\n");
    }
    for (int i = 0; i < 3; i++) {
        must(cudaGraphExecDestroy(rig->execs[i]), "destroy");
    }
}

/* ---- copies ---- */

static void way_plain(struct rig *rig, size_t bytes)
{
    memcpy(rig->to, rig->from, bytes);
    __asm__ volatile("" ::: "memory");
}

#ifdef __x86_64__
static void way_string(struct rig *rig, size_t bytes)
{
    char *to = rig->to;
    const char *from = rig->from;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}
#endif

#ifdef __AVX2__
static void way_streaming(struct rig *rig, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 128) {
        _mm_prefetch(rig->from + i + 1024, _MM_HINT_NTA);
        _mm_prefetch(rig->from + i + 1024 + 64, _MM_HINT_NTA);
        const __m256i *from = (const __m256i *)(const void *)(rig->from + i);
        __m256i *to = (__m256i *)(void *)(rig->to + i);
        __m256i a = _mm256_load_si256(from);
        __m256i b = _mm256_load_si256(from + 1);
        __m256i c = _mm256_load_si256(from + 2);
        __m256i d = _mm256_load_si256(from + 3);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        _mm256_stream_si256(to + 2, c);
        _mm256_stream_si256(to + 3, d);
    }
    _mm_sfence();
}
#endif

static void way_ours(struct rig *rig, size_t bytes)
{
    cudaMemcpyAsync(rig->to, rig->from, bytes, cudaMemcpyDeviceToDevice, rig->stream);
    cudaStreamSynchronize(rig->stream);
}

struct call {
    const char *name;
    void (*copy)(struct rig *rig, size_t bytes);
};

static const struct call calls[] = {
    {"memcpy", way_plain},
#ifdef __x86_64__
    {"rep movsb", way_string},
#endif
#ifdef __AVX2__
    {"streaming", way_streaming},
#endif
    {"cudaMemcpyAsync", way_ours}, /* last */
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* The first copies are not counted: they pay for where the last way left the bytes. */
static double mean_nsec(const struct call *call, struct rig *rig, size_t bytes, int turns)
{
    for (int turn = 0; turn < (bytes < CACHED_BYTES ? WARM_UPS : 1); turn++) {
        call->copy(rig, bytes);
    }
    double start = now_nsec();
    for (int turn = 0; turn < turns; turn++) {
        call->copy(rig, bytes);
    }
    return (now_nsec() - start) / turns;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The ways take turns round by round, since the machine may change its pace. The least time of each
 * is shown; medians compare ours with the best of the others. */
static void print_copy(struct rig *rig, size_t bytes)
{
    static double nsec[CALLS][COPY_ROUNDS];
    double best = 1e18;
    const int fitting = (int)((16 << 20) / bytes);
    const int turns = fitting < 2 ? 2 : fitting > 500 ? 500 : fitting;
    for (int turn = 0; turn < CALLS * COPY_ROUNDS; turn++) {
        nsec[turn % CALLS][turn / CALLS] = mean_nsec(&calls[turn % CALLS], rig, bytes, turns);
    }
    printf("%8zu", bytes >> 10);
    for (int call = 0; call < CALLS; call++) {
        qsort(nsec[call], COPY_ROUNDS, sizeof(nsec[call][0]), by_value);
        printf(" %15.2f", (double)bytes / nsec[call][0]);
        const double median = nsec[call][COPY_ROUNDS / 2];
        if (call < CALLS - 1 && median < best) best = median;
    }
    const double ours = nsec[CALLS - 1][COPY_ROUNDS / 2];
    printf(" %9.3f %9.0f\n", best / ours, ours - best);
}

static void print_copies(struct rig *rig)
{
    printf("\n%8s", "KiB");
    for (int call = 0; call < CALLS; call++) {
        printf(" %15s", calls[call].name);
    }
    printf(" %9s %9s\n", "of best", "more ns");
    for (size_t bytes = 4096, i = 0; i < SIZES; bytes *= 4, i++) {
        print_copy(rig, bytes);
    }
}

int main(int argc, char **argv)
{
    const size_t most = (size_t)256 << 20;
    struct rig rig = {0};
    const char *only = argc > 1 ? argv[1] : "";
    must(cudaStreamCreateWithFlags(&rig.stream, cudaStreamNonBlocking), "stream");
    must(cudaEventCreate(&rig.timed), "event");
    must(cudaEventCreateWithFlags(&rig.untimed, cudaEventDisableTiming), "event");
    must(cudaMalloc((void **)&rig.from, most), "memory");
    must(cudaMalloc((void **)&rig.to, most), "memory");
    memset(rig.from, 1, most);
    memset(rig.to, 1, most);
    if (strcmp(only, "copy") != 0) print_rows(&rig);
    if (strcmp(only, "ns") != 0) print_copies(&rig);
    return 0;
}
