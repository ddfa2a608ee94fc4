/* Inside of executable graphs. Private to the room. */
#pragma once

#include "graph.h"

#include "device/host/heap/spinlock.h"

struct exec_op {
    enum tt_node_kind kind;
    struct tt_host_op op;
    struct tt_host_item_share *share; /* counted */
    size_t *deps;                     /* owned: indices of earlier operations */
    size_t ndeps;
    uint64_t node; /* id of the node it was made from */
    bool disabled;
};

struct exec_run { /* what the launch under way has done of an operation */
    bool done;
    size_t moved; /* bytes of a copy or a fill */
};

/* The launches of an executable graph run one after another in the order of the calls, on whatever
 * streams, also when its body is exchanged between them. */
struct tt_host_launches {
    _Atomic int refs;
    _Atomic uint64_t issued; /* number of the last one whose call has informed its items */
    _Atomic uint64_t ended;
};

struct tt_host_exec {    /* a body; with more than one reference it must not be changed */
    _Atomic int refs;    /* the handle, and queued launches */
    struct exec_op *ops; /* owned */
    size_t nops;
    bool has_calls, has_memory, has_opened; /* opened: memory of other processes */
    struct tt_host_kept *kept;              /* owned */
    struct tt_host_launches *launches; /* counted; NULL in a body that is part of another one */
    /* ---- of the launch under way alone ---- */
    struct exec_run *runs; /* owned; one per operation */
    size_t ndone;
    bool begun;
};

struct CUgraphExec_st {
    uint32_t magic;
    unsigned flags; /* given at instantiation, to be asked for */
    struct tt_host_spinlock lock;
    struct tt_host_exec *body; /* counted; changes under the lock */
};

bool tt_host_exec_holds(const struct CUgraphExec_st *exec);
bool tt_host_op_has_calls(const struct tt_host_op *op);
bool tt_host_op_has_opened(const struct tt_host_op *op);
/* The body's memory nodes belong to an executable, or do not any more. */
void tt_host_exec_note_instance(const struct tt_host_exec *body, bool there);
/* A body of its own, also of graphs in it, with nothing done. NULL when out of memory. */
struct tt_host_exec *tt_host_exec_copy(const struct tt_host_exec *from,
                                       struct tt_host_launches *launches);
