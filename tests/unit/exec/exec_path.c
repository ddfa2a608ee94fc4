/* What the machine hall alone costs: an 8-byte one-shot operation between two pinned processes,
 * from tt_exec_submit to its end, and the rates of reductions and copies. No device, no plan, no
 * group: what those add is the difference to a whole call. Prints one line per figure. */
#include "base/mem.h"
#include "base/member.h"
#include "device/device.h"
#include "exec/exec.h"
#include "exec/host/reduce.h"
#include "transport/transport.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANGE_BYTES ((size_t)512 << 20)
#define SLICE_BYTES ((size_t)128 << 10)

static double now_nsec(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* ---- a device that runs what it is given at once ---- */

struct CUstream_st { /* a stream that keeps its item: the caller steps it */
    struct tt_item *item;
};

int tuttiHostSubmit(struct CUstream_st *stream, struct tt_item *item, bool allow_inline)
{
    (void)allow_inline;
    stream->item = item;
    return 0;
}

void tuttiHostClaimPark(struct CUstream_st *stream, struct tt_item *item)
{
    (void)stream;
    while (item->step(item, TT_ITEM_STEP) != TT_STEP_DONE)
        continue;
    item->step(item, TT_ITEM_RELEASE);
}

bool tuttiHostOversubscribed(void)
{
    return false;
}

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out)
{
    (void)device;
    return posix_memalign(ptr_out, 4096, bytes) ? 2 : 0;
}

int tuttiHostFree(void *ptr)
{
    free(ptr);
    return 0;
}

bool tuttiHostHelp(void)
{
    return false;
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    return tuttiHostMalloc(0, bytes, ptr_out);
}

void tuttiHostControlFree(void *ptr, size_t bytes)
{
    (void)bytes;
    free(ptr);
}

/* ---- two ranks ---- */

struct pair {
    char *range;
    int rank;
    bool oversubscribed;
    size_t used;
    struct tt_member member;
    struct tt_peer_reach peers[2];
    struct tt_transport *transport;
    struct tt_issue_queue queue;
    struct tt_program *program;
    uint8_t *refs;
    struct tt_edge *send[2], *recv[2];
};

static void join(struct pair *pair, char *range, int rank)
{
    size_t inbox_bytes = tt_round_up(tt_transport_inbox_bytes(2, 1, SLICE_BYTES), 4096);
    *pair = (struct pair){.range = range, .rank = rank, .used = 2 * inbox_bytes};
    pair->member.rank = rank;
    pair->member.nranks = 2;
    pair->member.name = "";
    for (int p = 0; p < 2; p++) {
        pair->peers[p] = (struct tt_peer_reach){.reach = TT_REACH_MAPPED,
                                                .range_base = range,
                                                .range_bytes = RANGE_BYTES,
                                                .inbox_offset = (uint64_t)p * inbox_bytes,
                                                .device = p};
    }
    struct tt_transport_config config = {.member = &pair->member,
                                         .peers = pair->peers,
                                         .nchannels = 1,
                                         .slice_bytes = SLICE_BYTES,
                                         .allow_direct = true,
                                         .allow_shm = true};
    if (tt_transport_create(&config, range + (size_t)rank * inbox_bytes, &pair->transport)) exit(1);
    struct tt_edge_key key = {.peer = !rank};
    if (tt_transport_edge(pair->transport, &key, &pair->recv[!rank])) exit(1);
    key.sending = true;
    if (tt_transport_edge(pair->transport, &key, &pair->send[!rank])) exit(1);
}

static struct tt_work *bind(struct pair *pair, enum tt_algo algo, enum tt_proto proto, size_t count)
{
    int ring[2] = {0, 1};
    struct tt_shape shape = {.nranks = 2, .ring_rank = ring};
    if (tt_program_make(TT_FUNC_ALLREDUCE, algo, proto, -1, &shape, &pair->program)) exit(1);
    pair->refs = tt_calloc(pair->program->ninsns, 1);
    if (!pair->refs) exit(1);
    tt_program_find_refs(pair->program, pair->rank, pair->refs);
    size_t bytes = count * sizeof(float);
    char *in = pair->range + pair->used + (size_t)pair->rank * (RANGE_BYTES / 2 - pair->used);
    struct tt_frame frame = {.program = pair->program,
                             .refs = pair->refs,
                             .rank = pair->rank,
                             .reduction = {.type = ncclFloat32, .op = ncclSum},
                             .in = in,
                             .out = in + tt_round_up(bytes, 4096),
                             .in_bytes = bytes,
                             .out_bytes = bytes,
                             .elem_bytes = sizeof(float),
                             .fingerprint = 7,
                             .send_edges = pair->send,
                             .recv_edges = pair->recv};
    for (size_t i = 0; i < count; i++)
        ((float *)(void *)in)[i] = (float)(pair->rank + 1);
    tt_geometry_init(&frame.geometry, pair->program, count, (struct tt_extent){0, count},
                     SLICE_BYTES / sizeof(float), 16);
    struct tt_work_spec spec = {.member = &pair->member,
                                .transport = pair->transport,
                                .queue = &pair->queue,
                                .frames = &frame,
                                .nframes = 1,
                                .oversubscribed = pair->oversubscribed,
                                .kept = true};
    struct tt_work *work;
    if (tt_work_create(&spec, &work)) exit(1);
    return work;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over batches, printed by rank 0. */
static void measure(struct pair *pair, struct tt_work *work, const char *what, size_t bytes)
{
    struct CUstream_st idle = {NULL};
    double times[101];
    int batch = bytes <= 4096 ? 500 : bytes <= 65536 ? 100 : bytes <= ((size_t)1 << 20) ? 10 : 1;
    for (size_t k = 0; k < TT_LEN(times); k++) {
        double start = now_nsec();
        for (int i = 0; i < batch; i++) {
            tt_exec_launch(work, &idle, NULL);
        }
        times[k] = (now_nsec() - start) / batch;
    }
    qsort(times, TT_LEN(times), sizeof(double), by_value);
    if (pair->rank == 0) {
        printf("%-8s %10zu bytes  median %12.1f ns  min %12.1f ns  %8.2f GB/s\n", what, bytes,
               times[TT_LEN(times) / 2], times[0], (double)bytes / times[TT_LEN(times) / 2]);
        fflush(stdout);
    }
    tt_work_destroy(work);
}

static void run_small(char *range, int rank)
{
    struct pair pair;
    pin(rank);
    join(&pair, range, rank);
    for (int k = 0; k < 20; k++) {
        measure(&pair, bind(&pair, TT_ALGO_ONESHOT, TT_PROTO_LL, 2), "oneshot", 8);
    }
    tt_transport_destroy(pair.transport);
}

/* Both ranks in one thread: what the instructions alone cost, no line travels. */
static void one_thread(void)
{
    char *range =
        mmap(NULL, RANGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct pair pair[2];
    struct tt_work *work[2];
    struct CUstream_st stream[2];
    double best = 1e18;
    if (range == MAP_FAILED) exit(1);
    for (int r = 0; r < 2; r++) {
        join(&pair[r], range, r);
        pair[r].oversubscribed = true;
        work[r] = bind(&pair[r], TT_ALGO_ONESHOT, TT_PROTO_LL, 2);
    }
    for (int k = 0; k < 2000; k++) { /* short batches: some are undisturbed on a busy machine */
        double start = now_nsec();
        for (int i = 0; i < 200; i++) {
            for (int r = 0; r < 2; r++)
                tt_exec_submit(work[r], &stream[r]);
            stream[0].item->step(stream[0].item, TT_ITEM_STEP);
            for (int r = 1; r >= 0; r--) {
                while (stream[r].item->step(stream[r].item, TT_ITEM_STEP) != TT_STEP_DONE)
                    continue;
                stream[r].item->step(stream[r].item, TT_ITEM_RELEASE);
            }
        }
        double nsec = (now_nsec() - start) / 400;
        best = nsec < best ? nsec : best;
    }
    printf("own cost of an 8-byte one-shot operation: %.1f ns (two ranks in one thread)\n", best);
    for (int r = 0; r < 2; r++) {
        tt_work_destroy(work[r]);
        tt_transport_destroy(pair[r].transport);
    }
    munmap(range, RANGE_BYTES);
}

static void run_rank(char *range, int rank)
{
    static const size_t sizes[] = {8, 32, 64, 1024, 16384, 65536};
    static const size_t large[] = {1024,    16384,   65536,    262144,
                                   1 << 20, 4 << 20, 16 << 20, 64 << 20};
    struct pair pair;
    pin(rank);
    join(&pair, range, rank);
    for (size_t k = 0; k < TT_LEN(sizes); k++) {
        measure(&pair, bind(&pair, TT_ALGO_ONESHOT, TT_PROTO_LL, sizes[k] / 4), "oneshot",
                sizes[k]);
    }
    for (size_t k = 0; k < TT_LEN(large); k++) {
        measure(&pair, bind(&pair, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, large[k] / 4), "direct",
                large[k]);
    }
    for (size_t k = 2; k < TT_LEN(large); k++) {
        measure(&pair, bind(&pair, TT_ALGO_RING, TT_PROTO_SIMPLE, large[k] / 4), "ring", large[k]);
    }
    tt_transport_destroy(pair.transport);
}

static void two_ranks(void (*run)(char *range, int rank))
{
    char *range =
        mmap(NULL, RANGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) exit(1);
    pid_t child = fork();
    run(range, child == 0 ? 1 : 0);
    if (child == 0) exit(0);
    waitpid(child, NULL, 0);
    munmap(range, RANGE_BYTES);
}

/* ---- reductions and copies ---- */

static void rate(const char *what, size_t bytes, double nsec)
{
    printf("%-24s %10zu bytes %8.1f GB/s\n", what, bytes, (double)bytes / nsec);
}

static double best_of(void (*run)(char *dst, const char *src, size_t bytes), char *dst,
                      const char *src, size_t bytes)
{
    double best = 1e18;
    int batch = (int)(((size_t)256 << 10) / bytes) + 1;
    for (int k = 0; k < (bytes > (size_t)1 << 20 ? 15 : 300); k++) {
        double start = now_nsec();
        for (int i = 0; i < batch; i++)
            run(dst, src, bytes);
        double nsec = (now_nsec() - start) / batch;
        best = nsec < best ? nsec : best;
    }
    return best;
}

static void copy_libc(char *dst, const char *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void copy_stream(char *dst, const char *src, size_t bytes)
{
    tt_stream_copy(dst, src, bytes);
    tt_stream_fence();
}

static ncclDataType_t reduce_type;
static bool reduce_streams;

static void reduce_two(char *dst, const char *src, size_t bytes)
{
    struct tt_reduction reduction = {.type = reduce_type, .op = ncclSum};
    const void *srcs[] = {src, src + bytes};
    void *dsts[] = {dst};
    struct tt_reduce_job job = {.reduction = &reduction,
                                .srcs = srcs,
                                .nsrcs = 2,
                                .dsts = dsts,
                                .ndsts = 1,
                                .count = bytes / tt_type_bytes(reduce_type),
                                .stream = reduce_streams};
    tt_reduce_run(&job);
}

static const char *const type_names[] = {"int8",    "uint8",    "int32",   "uint32",
                                         "int64",   "uint64",   "float16", "float32",
                                         "float64", "bfloat16", "e4m3",    "e5m2"};

/* A rank's part of an AllReduce of four that reach each other's memory. */
static void reduce_four(char *dst, const char *src, size_t bytes)
{
    enum { RANKS = 4 };
    const struct tt_reduction reduction = {.type = reduce_type, .op = ncclSum};
    const void *srcs[RANKS];
    void *dsts[RANKS];
    for (int r = 0; r < RANKS; r++) {
        srcs[r] = src + (size_t)r * RANKS * bytes;
        dsts[r] = dst + (size_t)r * RANKS * bytes;
    }
    const struct tt_reduce_job job = {.reduction = &reduction,
                                      .srcs = srcs,
                                      .nsrcs = RANKS,
                                      .dsts = dsts,
                                      .ndsts = RANKS,
                                      .count = bytes / tt_type_bytes(reduce_type)};
    tt_reduce_run(&job);
}

/* Types in turn, as others use the machine: us of the least disturbed run. */
static void fours(void)
{
    enum { PART = 256 << 10, ROUNDS = 40 };
    static const ncclDataType_t types[] = {ncclFloat32, ncclBfloat16, ncclFloat16, ncclFloat8e4m3,
                                           ncclFloat8e5m2};
    double best[2][TT_LEN(types)];
    char *const memory =
        mmap(NULL, (size_t)32 * PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *const in = memory, *const out = memory + (size_t)16 * PART;
    for (size_t i = 0; i < (size_t)32 * PART; i++)
        memory[i] = (char)(i % 67);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < 2 * TT_LEN(types); k++) {
            const size_t t = k / 2, in_place = k % 2;
            reduce_type = types[t];
            reduce_four(in_place ? in : out, in, PART);
            const double start = now_nsec();
            reduce_four(in_place ? in : out, in, PART);
            const double usec = (now_nsec() - start) / 1e3;
            best[in_place][t] = !round || usec < best[in_place][t] ? usec : best[in_place][t];
        }
        if (round % 8 == 7) memset(in, 0x11, (size_t)16 * PART); /* in place sums grow */
    }
    for (size_t t = 0; t < TT_LEN(types); t++) {
        printf("sum of four to four, 256 KiB %-8s %6.1f us, in place %6.1f us\n",
               type_names[types[t]], best[0][t], best[1][t]);
    }
    munmap(memory, (size_t)32 * PART);
}

static void rates(void)
{
    static const size_t sizes[] = {4096,    16384,   65536,    262144,
                                   1 << 20, 4 << 20, 16 << 20, 64 << 20};
    size_t most = (size_t)64 << 20;
    char *src = malloc(2 * most), *dst = malloc(most);
    memset(src, 0, 2 * most);
    memset(dst, 0, most);
    for (size_t k = 0; k < TT_LEN(sizes); k++) {
        rate("copy libc", sizes[k], best_of(copy_libc, dst, src, sizes[k]));
        rate("copy stream", sizes[k], best_of(copy_stream, dst, src, sizes[k]));
    }
    for (int type = 0; type < ncclNumTypes; type++) {
        for (size_t k = 1; k < TT_LEN(sizes); k += 2) {
            reduce_type = (ncclDataType_t)type;
            reduce_streams = false;
            char what[32];
            snprintf(what, sizeof(what), "sum of two %s", type_names[type]);
            rate(what, sizes[k], best_of(reduce_two, dst, src, sizes[k]));
        }
    }
    reduce_type = ncclFloat32;
    reduce_streams = true;
    rate("sum of two f32 streaming", most, best_of(reduce_two, dst, src, most));
    free(src);
    free(dst);
}

int main(int argc, char **argv)
{
    one_thread();
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "small") == 0) two_ranks(run_small);
    if (!*what || strcmp(what, "pair") == 0) two_ranks(run_rank);
    if (!*what || strcmp(what, "fours") == 0) fours();
    if (!*what || strcmp(what, "rates") == 0) rates();
    return 0;
}
