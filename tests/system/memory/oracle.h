/* What the files of the oracle share: a world of buffers with their models, and what can be done in
 * it. oracle.c plays, oracle_buffers.c makes, oracle_work.c,
 * oracle_kept.c and oracle_driver.c operate. */
#pragma once

#include "cuda.h"
#include "cuda_runtime.h"

#include "nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = 2,
    STREAMS = 6,
    NONBLOCKING = 4, /* the first of them; the others wait for the legacy stream, and it for them */
    WORDS = 40000,
    BYTES = WORDS * 4,
    KEPT = 3,
    MAX_THREADS = 8,
    STORE = MAX_THREADS * DEVICES,
};

enum kind {
    KIND_DEVICE,
    KIND_PAGEABLE,
    KIND_REGISTERED,
    KIND_PINNED,
    KIND_MANAGED,
    KIND_MAPPED,
    KIND_POOL,
    KIND_OPENED, /* of another process */
    KIND_VARIABLE,
    KIND_COUNT_
};
enum { BUFFERS = KIND_COUNT_ * DEVICES };

struct buffer {
    enum kind kind;
    int device;
    uint32_t *at, *model;
    cudaEvent_t last; /* of the operations that touched it */
};

struct span {
    size_t first, count; /* words */
};

struct change { /* what a host function does: adds */
    struct change *next;
    uint32_t *at;
    size_t count;
    uint32_t value;
};

struct recipe { /* what a kept graph does: fill, copy, host function, one after the other */
    struct span fill;
    unsigned char value;
    size_t from, to, count; /* words */
    struct change *change;
};

struct kept { /* an executable graph that is launched and edited many times */
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    cudaGraphNode_t fill, copy, call;
    struct buffer *to, *from;
    struct recipe recipe;
};

struct kept_reduce {
    cudaGraphExec_t exec;
    struct buffer *two[DEVICES];
    struct span span;
};

struct shared_store { /* of another process: memory, and whose turn it is */
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t given, back;
};

struct run {
    size_t nthreads;
    long rounds;
    _Atomic long checks;
    int lender, to_lender, from_lender; /* process that owns the opened memory, pipes */
    pthread_mutex_t asks;               /* one thread at a time */
    struct shared_store shared_store[STORE];
};

struct world {
    struct run *run;
    uint64_t seed, state;
    size_t index;
    long number; /* of the operation */
    const char *doing;
    cudaStream_t streams[STREAMS]; /* stream i is of device i % DEVICES */
    cudaEvent_t done[DEVICES];
    cudaEvent_t given[DEVICES], back[DEVICES]; /* of the memory that is lent */
    struct buffer buffers[BUFFERS];
    ncclComm_t comms[DEVICES];
    struct kept kept[KEPT];
    struct kept_reduce kept_reduce;
    struct change *changes; /* all that were made: they live as long as the world */
};

#define OK(world, call)                                                                            \
    do {                                                                                           \
        int rc_ = (int)(call);                                                                     \
        if (rc_) oracle_fail(world, __LINE__, #call, rc_);                                         \
    } while (0)

_Noreturn void oracle_fail(const struct world *world, int line, const char *what, int rc);
size_t oracle_pick(struct world *world, size_t count);
const char *oracle_kind_name(enum kind kind);

/* The process that lends its memory: started before anything of CUDA. */
void oracle_lender_start(struct run *run);
void oracle_lender_stop(struct run *run);
void oracle_shared_open(struct world *world, struct buffer *buffer);
void oracle_shared_close(struct world *world, struct buffer *buffer);
void oracle_shared_use(struct world *world); /* it does something with its memory itself */
void oracle_variables_register(void);
void oracle_open(struct world *world);
void oracle_close(struct world *world);

struct span oracle_pick_span(struct world *world);
struct buffer *oracle_pick_buffer(struct world *world, bool pageable);
void oracle_begin(struct world *world, size_t stream, struct buffer *const *buffers, size_t count);
void oracle_end(struct world *world, size_t stream, struct buffer *const *buffers, size_t count);
/* By the driver's functions. */
void oracle_driver_fill(struct world *world);
void oracle_driver_fill_rows(struct world *world);
void oracle_driver_rows(struct world *world);
void oracle_driver_peer(struct world *world);
void oracle_driver_batch(struct world *world);
void oracle_driver_words(struct world *world);

struct change *oracle_change(struct world *world, struct buffer *to);
void oracle_change_run(void *arg);
void oracle_model_change(struct buffer *to, const struct change *change);
void oracle_model_reduce(struct buffer *const *two, struct span span);

void oracle_fill(struct world *world);
void oracle_copy(struct world *world);
void oracle_call(struct world *world);
void oracle_reduce(struct world *world);
void oracle_renew(struct world *world);

void oracle_kept_open(struct world *world);
void oracle_kept_close(struct world *world);
void oracle_kept_launch(struct world *world);
void oracle_kept_edit(struct world *world);
void oracle_kept_update(struct world *world);
void oracle_kept_reduce(struct world *world);
