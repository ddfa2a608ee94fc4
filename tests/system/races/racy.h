/* What the scenarios of the race checker share: memory, streams, ranks, and the waits that the racy
 * form of a scenario lacks. */
#pragma once

#include "cuda.h"
#include "cuda_runtime.h"
#include "tutti.h"

#include "nccl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, COUNT = BYTES / 4, RANKS = 2 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        int rc_ = (int)(call);                                                                     \
        if (rc_) fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, rc_), exit(2);      \
    } while (0)

struct racy_memory {
    cudaStream_t a, b; /* non-blocking */
    cudaEvent_t event;
    char *x, *y, *z; /* device memory, written */
    char *pinned, *pageable;
};
extern struct racy_memory my;

struct racy_ranks {
    ncclComm_t comm[RANKS];
    cudaStream_t stream[RANKS], other[RANKS];
    float *in[RANKS], *out[RANKS];
};
extern struct racy_ranks ranks;
/* On whatever devices. */
void racy_join(cudaStream_t second, cudaStream_t first);
void racy_start_ranks(void);
void racy_finish_ranks(void);

struct racy_scenario {
    const char *name;
    void (*run)(bool sound);
    const char *says; /* of the racy form */
};
extern const struct racy_scenario racy_basics[];
extern const size_t racy_nbasics;
extern const struct racy_scenario racy_patterns[];
extern const size_t racy_npatterns;
extern const struct racy_scenario racy_order[];
extern const size_t racy_norder;
extern const struct racy_scenario racy_kernels[]; /* whose accesses are not declared */
extern const size_t racy_nkernels;
extern const struct racy_scenario racy_parts[]; /* of pages, and device memory */
extern const size_t racy_nparts;
extern const struct racy_scenario racy_training[]; /* as programs that train have them */
extern const size_t racy_ntraining;
extern const struct racy_scenario racy_parallel[]; /* and models in parts */
extern const size_t racy_nparallel;
int racy_lend(void);
extern const struct racy_scenario racy_sides[];
extern const size_t racy_nsides;
extern const struct racy_scenario racy_fresh[];
extern const size_t racy_nfresh;
extern const struct racy_scenario racy_lives[]; /* of memory and graphs */
extern const size_t racy_nlives;
extern const struct racy_scenario racy_more[];
extern const size_t racy_nmore;
extern const struct racy_scenario racy_inside[]; /* of variables, graphs, registered memory */
extern const size_t racy_ninside;
extern const struct racy_scenario racy_together[]; /* graphs of several ranks */
extern const size_t racy_ntogether;
extern const struct racy_scenario racy_edges[]; /* of what calls touch, and of graphs */
extern const size_t racy_nedges;
extern const struct racy_scenario racy_calls[]; /* plain loads and stores of host functions */
extern const size_t racy_ncalls;
extern const struct racy_scenario racy_host[]; /* plain loads and stores of the program */
extern const size_t racy_nhost;

static inline cudaStream_t make_stream(void)
{
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static inline cudaEvent_t make_event(void)
{
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static inline void fill(char *ptr, cudaStream_t stream)
{
    OK(cudaMemsetAsync(ptr, 2, BYTES, stream));
}

static inline void copy(char *to, const char *from, cudaStream_t stream)
{
    OK(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream));
}

/* What the sound form has and the racy one lacks. */
static inline void order(cudaStream_t first, cudaStream_t second, bool sound)
{
    if (!sound) return;
    OK(cudaEventRecord(my.event, first));
    OK(cudaStreamWaitEvent(second, my.event, 0));
}

static inline void await(cudaStream_t stream, bool sound)
{
    if (sound) OK(cudaStreamSynchronize(stream));
}

static inline char *make_buffer(void)
{
    char *buffer;
    OK(cudaMalloc((void **)&buffer, BYTES));
    OK(cudaMemset(buffer, 0, BYTES));
    OK(cudaDeviceSynchronize());
    return buffer;
}

/* Both streams are of the current device. */
static inline void join(cudaStream_t second, cudaStream_t first)
{
    cudaEvent_t event = make_event();
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaEventDestroy(event));
}

/* An AllReduce of `count` elements by all ranks, in one group. */
static inline void all_reduce(float *const *in, float *const *out, size_t count,
                              const cudaStream_t *streams)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(in[r], out[r], count, ncclFloat, ncclSum, ranks.comm[r], streams[r]));
    }
    OK(ncclGroupEnd());
}
