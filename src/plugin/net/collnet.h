/* Collective networks (collnet): one table of functions for plugins of every version of the collnet
 * ABI. The library of a network may export one. A group has one rank of each of several hosts; the
 * network reduces what its ranks send. */
#pragma once

#include "nccl.h"
#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_collnet_plugin;
struct tt_library;
struct tt_net;

struct tt_collnet_device {
    const char *name;
    bool takes_host; /* memory of the host */
    size_t most_bytes;
};

enum tt_collnet_kind {
    TT_COLLNET_SUM,     /* iallreduce */
    TT_COLLNET_GATHER,  /* iallgather */
    TT_COLLNET_SCATTER, /* ireducescatter */
};

struct tt_collnet_sum { /* one call, of registered memory */
    void *send, *recv;
    /* Blocks of `block_bytes` in each: 1 and 1 for iallreduce. In `recv` one for each rank of the
     * group, iallgather; in `send`, ireducescatter. */
    int sent_blocks, received_blocks;
    size_t block_bytes, count; /* elements of a block */
    ncclDataType_t type;
    ncclRedOp_t op;
    void *send_mhandle, *recv_mhandle;
};

/* The newest collnet ABI, with the plugin as first argument. As there, iallreduce returns success
 * with a NULL request for "call again", and `connect` blocks until all of the group have called.
 * Output pointers are NULL before each call. iallgather and ireducescatter are called with whole
 * vectors: one part, one window. */
struct tt_collnet_ops {
    int version; /* of the ABI that the plugin speaks */
    ncclResult_t (*init)(struct tt_collnet_plugin *self, uint64_t comm_id, ncclDebugLogger_t log,
                         void **ctx);
    /* After the first init of a library: copy its functions to where version 8 and later have them.
     */
    void (*adapt)(struct tt_collnet_plugin *self);
    void (*finalize)(struct tt_collnet_plugin *self, void *ctx);
    ncclResult_t (*devices)(struct tt_collnet_plugin *self, int *ndev);
    ncclResult_t (*device)(struct tt_collnet_plugin *self, int dev,
                           struct tt_collnet_device *device);
    ncclResult_t (*listen)(struct tt_collnet_plugin *self, void *ctx, int dev, void *handle,
                           void **listen_comm);
    ncclResult_t (*connect)(struct tt_collnet_plugin *self, void *handles[], int nranks, int rank,
                            void *listen_comm, void **coll_comm);
    ncclResult_t (*reduce_support)(struct tt_collnet_plugin *self, ncclDataType_t type,
                                   ncclRedOp_t op, int *supported);
    ncclResult_t (*reg_mr)(struct tt_collnet_plugin *self, void *coll_comm, void *data,
                           size_t bytes, void **mhandle); /* host memory */
    ncclResult_t (*dereg_mr)(struct tt_collnet_plugin *self, void *coll_comm, void *mhandle);
    ncclResult_t (*reduce)(struct tt_collnet_plugin *self, void *coll_comm,
                           const struct tt_collnet_sum *sum, void **request);
    bool (*offers)(struct tt_collnet_plugin *self, enum tt_collnet_kind kind);
    ncclResult_t (*test)(struct tt_collnet_plugin *self, void *request, int *done);
    ncclResult_t (*close_coll)(struct tt_collnet_plugin *self, void *coll_comm);
    ncclResult_t (*close_listen)(struct tt_collnet_plugin *self, void *listen_comm);
};

struct tt_collnet_old; /* what adapters of versions 3 to 7 keep: collnet_abi.h */

/* Of a plugin's own functions only name and init are read before init has returned. */
struct tt_collnet_plugin {
    struct tt_collnet_ops ops;
    const void *object;         /* as exported: ncclCollNet_v<version>_t; NULL: none */
    const void *table;          /* functions where version 8 and later have them */
    struct tt_collnet_old *old; /* owned; NULL from version 8 on */
    bool begun;                 /* init has succeeded: versions up to 10 get it once while loaded */
    bool failed;                /* init, or devices: not asked again */
    _Atomic int nblocked;       /* our threads that were abandoned in a call of the library */
};

/* One collective network as a communicator uses it. */
struct tt_collnet {
    struct tt_collnet_plugin *plugin; /* borrowed from the process */
    void *ctx;                        /* of this communicator */
    int ndevs;
    char name[64];
};

/* Find the library's table of the newest version, if it exports one. */
void tt_collnet_find(const struct tt_library *library, struct tt_collnet_plugin *self);
/* Forget it. False while our threads are inside the library: it must stay loaded. */
bool tt_collnet_abandon(struct tt_collnet_plugin *self);

/* Open the collective network of the library of `net`. *collnet_out is NULL when there is none, or
 * it does not work (logged). Errors: ncclSystemError (out of memory). */
ncclResult_t tt_collnet_open(struct tt_net *net, uint64_t comm_id, struct tt_collnet **collnet_out);
/* Close it: after all its groups, before the network. Accepts NULL. */
void tt_collnet_close(struct tt_collnet *collnet);

/* `connect` in a thread of its own, as it waits for the whole group. */
struct tt_collnet_call;
/* handles  nranks of NCCL_NET_HANDLE_MAXSIZE bytes, copied
 * listen_comm  the call's from now on: closed when it is over. Errors: ncclSystemError */
ncclResult_t tt_collnet_connect(struct tt_collnet *collnet, const void *handles, int nranks,
                                int rank, void *listen_comm, struct tt_collnet_call **call_out);
/* ncclInProgress until it has returned; then its result, with the group in *coll_comm_out. */
ncclResult_t tt_collnet_connected(struct tt_collnet_call *call, void **coll_comm_out);
/* Free the call. If the plugin has not returned yet, the thread is abandoned, closes the group when
 * it returns, and the library stays loaded. Accepts NULL. */
void tt_collnet_call_end(struct tt_collnet_call *call);
