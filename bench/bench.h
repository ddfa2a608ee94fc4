/* What the measuring programs share: the list of points, the shared memory, and
 * the loop that times one blocking collective per call. A peer supplies bench_call() and its own
 * start and end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_op {
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_REDUCESCATTER,
    BENCH_BROADCAST,
    BENCH_REDUCE,
    BENCH_ALLTOALL,
    BENCH_PINGPONG,
    BENCH_OP_COUNT_,
};
/* All but float32 are measured for AllReduce alone. The peers know no float16 and no fp8. */
enum bench_type {
    BENCH_FLOAT32,
    BENCH_BFLOAT16,
    BENCH_FLOAT16,
    BENCH_FLOAT8E4M3,
    BENCH_FLOAT8E5M2,
    BENCH_TYPE_COUNT_,
};

struct bench_point {
    enum bench_op op;
    enum bench_type type;
    size_t bytes; /* of the larger user buffer, all blocks together */
};

struct bench_peer {
    const char *name, *version;
    int rank, nranks;
    char *send, *recv; /* what bench_call() gets; owned by the peer */
    bool may_use_scratch;
    /* One blocking collective; 0 done, -1 not supported. */
    int (*call)(const struct bench_peer *peer, const struct bench_point *point);
    /* Host view of the buffers for filling and checking (the same pointers on CPUs). */
};

/* Attach to the shared memory named by BENCH_SHM; rank and nranks must be known. */
bool bench_attach(struct bench_peer *peer);
/* 4 KiB that rank 0 may write before the first bench_barrier(). */
void *bench_blob(void);
/* All ranks wait for each other: spins, yields when there are more ranks than cores. */
void bench_barrier(void);
/* Pin this process to core rank % cores, unless BENCH_PIN=0. */
void bench_pin(int rank);

/* Largest buffer that the points of the environment need. */
size_t bench_max_bytes(void);
/* Measure all points named by BENCH_OPS, BENCH_SIZES, BENCH_TYPES; rank 0 prints a JSON line per
 * point. */
int bench_run(struct bench_peer *peer);

#ifdef __cplusplus
}
#endif
