/* Inside of executable graphs. Private to the room. */
#pragma once

#include "graph.h"

#include <pthread.h>

struct exec_op {
    enum tt_node_kind kind;
    struct host_op op;
    struct host_item_share *share; /* counted */
    size_t *deps;                  /* owned: indices of earlier operations */
    size_t ndeps;
    uint64_t node; /* id of the node it was made from */
    bool done, disabled;
};

struct host_exec {
    _Atomic int refs;      /* the handle, and queued launches */
    void *_Atomic running; /* token of the launch that is under way; one at a time */
    struct exec_op *ops;   /* owned */
    size_t nops, ndone;
    bool has_calls, has_memory;
    struct host_kept *kept; /* owned */
};

struct CUgraphExec_st {
    uint32_t magic;
    unsigned flags; /* given at instantiation, for whoever asks */
    pthread_mutex_t lock;
    struct host_exec *body; /* counted; changes under the lock */
};

bool host_exec_holds(const struct CUgraphExec_st *exec);
bool host_op_has_calls(const struct host_op *op);
/* A body of nops empty operations, or NULL. */
struct host_exec *host_exec_body(size_t nops);
