/* Networks: one table of functions for the built-in networks and for plugins of every version of
 * the net ABI. Its functions get the network as first argument: an adapter keeps its state there,
 * so two libraries of one version do not share any. */
#pragma once

#include "nccl.h"
#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_net_plugin;
struct tt_net_landing; /* net/net.h */

/* What init gets of the communicator. */
struct tt_net_start {
    uint64_t comm_id;
    int traffic_class; /* -1: undefined */
    ncclDebugLogger_t log;
    ncclProfilerCallback_t profile;
};

/* One message of a request. */
struct tt_net_part {
    void *head; /* goes before the data; NULL: none */
    size_t head_bytes;
    void *data;
    size_t bytes;                         /* of a receive: room for so many */
    const struct tt_net_landing *landing; /* of a receive with a head: where its data goes instead;
                                             copied. NULL: nowhere */
    int tag;
    void *mhandle;
    void *event; /* of the profiler; NULL: none */
};

#define TT_NET_GROUP 8 /* receives in one request, at most */

/* The newest net ABI, with the plugin as first argument. As there, connect, accept, isend and irecv
 * return success with a NULL output for "call again". Output pointers are NULL before each call. */
struct tt_net_ops {
    int version; /* of the ABI that the plugin speaks */
    /* A message may consist of two pieces, and a receive may name a landing; only the built-in can.
     * For others neither `head` nor `landing` of a part may be set. */
    bool gathers;
    ncclResult_t (*init)(struct tt_net_plugin *self, const struct tt_net_start *start, void **ctx);
    /* After the first init of a library: copy its functions to where version 6 and later have them.
     */
    void (*adapt)(struct tt_net_plugin *self);
    ncclResult_t (*finalize)(struct tt_net_plugin *self, void *ctx);
    ncclResult_t (*devices)(struct tt_net_plugin *self, int *ndev);
    /* How many devices can be merged into one; 0: none. Call it after `adapt`. */
    int (*group_most)(struct tt_net_plugin *self);
    ncclResult_t (*make_virtual)(struct tt_net_plugin *self, ncclNetVDeviceProps_v12_t *members,
                                 int *dev_out);
    ncclResult_t (*properties)(struct tt_net_plugin *self, int dev, ncclNetProperties_v12_t *props);
    /* Hints about the connections to come; does nothing when the network takes none. */
    void (*set_attr)(struct tt_net_plugin *self, void *ctx, ncclNetAttr_v12_t *attr);
    ncclResult_t (*listen)(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                           void **listen_comm);
    ncclResult_t (*connect)(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                            void **send_comm);
    /* Abandon an unfinished connect; its handle becomes invalid. */
    void (*give_up)(struct tt_net_plugin *self, const void *handle);
    ncclResult_t (*accept)(struct tt_net_plugin *self, void *listen_comm, void **recv_comm);
    /* The other direction of a connection, as one of its own: the same call at the other end gives
     * its peer. NULL output: this one has none. comm NULL asks whether connections of the context
     * can have one (ncclSuccess). NULL: connections of this network have one direction. */
    ncclResult_t (*reverse)(struct tt_net_plugin *self, const void *ctx, void *comm,
                            void **reverse_out);
    /* Of a receiver that awaits nothing, now and then: its sender may connect it anew. comm NULL
     * asks whether senders may (ncclSuccess). NULL: none does. */
    ncclResult_t (*tend)(struct tt_net_plugin *self, void *recv_comm);
    /* After an error elsewhere: the network leaves memory of the connection's requests alone; they
     * will not end. NULL: it touches memory in its calls only, or closing the connection does it.
     */
    void (*stop)(struct tt_net_plugin *self, void *comm);
    ncclResult_t (*reg_mr)(struct tt_net_plugin *self, void *comm, void *data, size_t bytes,
                           void **mhandle); /* host memory */
    ncclResult_t (*dereg_mr)(struct tt_net_plugin *self, void *comm, void *mhandle);
    ncclResult_t (*isend)(struct tt_net_plugin *self, void *send_comm,
                          const struct tt_net_part *part, void **request);
    ncclResult_t (*irecv)(struct tt_net_plugin *self, void *recv_comm,
                          const struct tt_net_part *part, void **request);
    /* Several receives, each with another tag, as one request, done when all of them are; at most
     * as many as the device's maxRecvs and TT_NET_GROUP say. NULL: one at a time. */
    ncclResult_t (*irecv_group)(struct tt_net_plugin *self, void *recv_comm,
                                const struct tt_net_part *parts, int count, void **request);
    /* bytes  as many as the request has receives */
    ncclResult_t (*test)(struct tt_net_plugin *self, void *request, int *done, int *bytes);
    /* The data of a request's receives has been consumed; NULL: the network does not need to know.
     */
    void (*consumed)(struct tt_net_plugin *self, void *recv_comm, int count, void *request);
    ncclResult_t (*close_send)(struct tt_net_plugin *self, void *send_comm);
    ncclResult_t (*close_recv)(struct tt_net_plugin *self, void *recv_comm);
    ncclResult_t (*close_listen)(struct tt_net_plugin *self, void *listen_comm);
};

struct tt_net_virtual;
struct tt_net_check;
struct tt_net_old; /* what adapters of versions 2 to 5 keep: net_abi.h */

/* A network of the process: a built-in or a loaded library. Of a plugin's own functions only name
 * and init are read before init has returned: it may fill in or replace the others. */
struct tt_net_plugin {
    struct tt_net_ops ops;
    const void *object;              /* as exported: ncclNet_v<version>_t; NULL: none */
    const void *table;               /* functions where version 6 and later have them */
    struct tt_net_old *old;          /* owned; NULL from version 6 on */
    struct tt_net_check *check;      /* owned; NULL: TUTTI_PLUGIN_CHECK is not set */
    struct tt_net_virtual *virtuals; /* owned; newest first: devices that it has made of others */
    bool begun; /* init has succeeded: versions up to 10 get it once while loaded */
    bool builtin;
    bool interfaces; /* its devices are the host's interfaces, no NICs of the machine */
};

/* One network as a communicator uses it. Made by plugin/net/net.c, read by transport/. */
struct tt_net {
    struct tt_net_plugin *plugin; /* borrowed from the process */
    void *ctx;                    /* of this communicator */
    void *source;                 /* the candidate it came from: room plugin's */
    int ndevs;                    /* devices that edges spread over: the first ones */
    int nopen;                    /* edges may use devices below this number; some are virtual */
    char name[64];
};

/* True for possible values of maxP2pBytes and maxCollBytes: 1 byte to 1 TiB. */
static inline bool tt_net_size_fits(size_t bytes)
{
    return bytes > 0 && bytes <= NCCL_MAX_NET_SIZE_BYTES;
}

/* net_virtual.c. Merge devices into one; the first request in the process makes it. *dev_out and
 * *mbps_out are the network's number and speed of it. False: the network cannot merge them. */
bool tt_net_virtual(struct tt_net *net, const ncclNetVDeviceProps_v12_t *members, int *dev_out,
                    int *mbps_out);
/* The same for the devices with the numbers `devs`; `net` is a struct tt_net, as tt_topo_joiner's.
 */
bool tt_net_virtual_of(void *net, const int *devs, int count, int *dev_out, int *mbps_out);
/* How many of the first `ndevs` devices are not virtual; under the lock of all networks. */
int tt_net_virtual_below(const struct tt_net_plugin *self, int ndevs);
void tt_net_virtual_forget(struct tt_net_plugin *self);

/* A violation of the ABI's contract, found by TUTTI_PLUGIN_CHECK. */
struct tt_net_breach {
    const char *function, *what; /* literals */
};
/* The first `most` breaches of this network so far; returns their number, 0 without the check. */
int tt_net_breaches(const struct tt_net_plugin *self, struct tt_net_breach *breaches, int most);

/* The device of an edge: the same number at both ends, because devices of one number are wired to
 * each other where not all are; channels and the peers of a rank take turns. */
static inline int tt_net_device(const struct tt_net *net, int rank, int peer, int channel)
{
    return (channel + rank + peer + net->ndevs - 1) % net->ndevs; /* of ranks 0 and 1 the first */
}
