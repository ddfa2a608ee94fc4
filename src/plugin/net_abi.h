/* Versions of the net ABI, one file each: net_v<N>.c says in what N differs from N + 1 and leaves
 * the rest to it. Private to the room. */
#pragma once

#include "nccl/net_v4.h"
#include "nccl/net_v6.h"
#include "plugin/net.h"

#include <pthread.h>

enum { TT_NET_OLDEST = 2, TT_NET_NEWEST = 12, TT_NET_NAMES = 16, TT_NET_DEVICE_NAME_BYTES = 48 };

struct tt_net_trust;
struct tt_net_pending; /* a call that waits for the other end */

struct tt_net_old {
    ncclNet_v4_t v4; /* functions of versions 2 to 4, where 4 has them */
    ncclNet_v6_t v6; /* of versions 2 to 5, where 6 has them */
    char names[TT_NET_NAMES][TT_NET_DEVICE_NAME_BYTES]; /* of devices; version 2 */
    pthread_mutex_t lock;                               /* of the next two */
    struct tt_net_pending *pending;
    int nblocked; /* threads of the house inside the library */
};

/* Fill the table for plugins of a version. */
void tt_net_v12(struct tt_net_ops *ops);
void tt_net_v11(struct tt_net_ops *ops);
void tt_net_v10(struct tt_net_ops *ops);
void tt_net_v9(struct tt_net_ops *ops);
void tt_net_v8(struct tt_net_ops *ops);
void tt_net_v7(struct tt_net_ops *ops);
void tt_net_v6(struct tt_net_ops *ops);
void tt_net_v5(struct tt_net_ops *ops);
void tt_net_v4(struct tt_net_ops *ops);
void tt_net_v3(struct tt_net_ops *ops);
void tt_net_v2(struct tt_net_ops *ops);

/* Complete the functions of versions 2 to 4 from old->v4. */
void tt_net_adapt_v4(struct tt_net_plugin *self);

/* ---- net_versions.c ---- */

/* Become the network that `object` is, a table of the given version. Error: no memory. */
ncclResult_t tt_net_adopt(struct tt_net_plugin *self, int version, const void *object);
/* Become the built-in network of sockets. */
void tt_net_adopt_socket(struct tt_net_plugin *self);
/* Become the built-in network over verbs. False: it was not built. */
bool tt_net_adopt_verbs(struct tt_net_plugin *self);
/* What the built-in must know of the communicator before its first connection. */
void tt_net_trust_builtin(const struct tt_net_plugin *self, void *ctx,
                          const struct tt_net_trust *trust);
/* Forget it. False while threads of the house are inside the library: it must stay loaded. */
bool tt_net_abandon(struct tt_net_plugin *self);

/* Name of a function that every network of this version must have and this one has not; NULL: it
 * is complete. After init. */
const char *tt_net_missing(const struct tt_net_plugin *self);

/* ---- net_abi.c ---- */

/* A size as older versions say it, or an error that names the function and the version. */
ncclResult_t tt_net_narrow(const struct tt_net_plugin *self, const char *function, size_t bytes,
                           int *narrow_out);

/* What properties of older versions do not have; the rest is zero. */
void tt_net_default_properties(int dev, ncclNetProperties_v12_t *props);

/* ---- net_check.c: TUTTI_PLUGIN_CHECK ---- */

/* Look at every answer of the network from now on. Error: no memory. */
ncclResult_t tt_net_check_begin(struct tt_net_plugin *self);
/* Sum up, and stop; the plugin's table is still there. Nothing without a begin. */
void tt_net_check_end(struct tt_net_plugin *self);

/* ---- net_blocking.c: connections of versions 2 to 4 ---- */

ncclResult_t tt_net_blocking_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                     void **send_comm);
ncclResult_t tt_net_blocking_accept(struct tt_net_plugin *self, void *listen_comm,
                                    void **recv_comm);
void tt_net_blocking_give_up(struct tt_net_plugin *self, const void *handle);
ncclResult_t tt_net_blocking_close_listen(struct tt_net_plugin *self, void *listen_comm);
