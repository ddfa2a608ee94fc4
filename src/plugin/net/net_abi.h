/* Versions of the net ABI, one file each: versions/net_v<N>.c has what differs between N and N + 1,
 * and calls version N + 1 for the rest. Private to the room. */
#pragma once

#include "base/system/thread_time.h"
#include "nccl/net_v4.h"
#include "nccl/net_v6.h"
#include "plugin/net/net.h"

#include <pthread.h>
#include <sys/types.h>

enum { TT_NET_OLDEST = 2, TT_NET_NEWEST = 12, TT_NET_NAMES = 16, TT_NET_DEVICE_NAME_BYTES = 48 };

struct tt_net_trust;
struct tt_net_pending; /* a call that waits for the other end */

struct tt_net_old {
    ncclNet_v4_t v4; /* functions of versions 2 to 4, where 4 has them */
    ncclNet_v6_t v6; /* of versions 2 to 5, where 6 has them */
    char names[TT_NET_NAMES][TT_NET_DEVICE_NAME_BYTES]; /* of devices; version 2 */
    pthread_mutex_t lock;                               /* of the next two */
    struct tt_net_pending *pending;
    int nblocked; /* our threads inside the library */
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

/* Initialise `self` with `object`, a table of the given version. Errors: ncclSystemError (out of
 * memory). */
ncclResult_t tt_net_adopt(struct tt_net_plugin *self, int version, const void *object);
/* Initialise `self` with the built-in network of sockets. */
void tt_net_adopt_socket(struct tt_net_plugin *self);
/* Initialise `self` with the built-in network over verbs. False: it was not built. */
bool tt_net_adopt_verbs(struct tt_net_plugin *self);
/* Pass the communicator's key to a built-in network, before its first connection. */
void tt_net_trust_builtin(const struct tt_net_plugin *self, void *ctx,
                          const struct tt_net_trust *trust);
/* Forget it. False while our threads are inside the library: it must stay loaded. */
bool tt_net_abandon(struct tt_net_plugin *self);

/* Name of a required function of this version that is missing; NULL: none is. Call it after init.
 */
const char *tt_net_missing(const struct tt_net_plugin *self);

/* ---- net_abi.c ---- */

/* Convert a size to the int of older versions. Errors: ncclInternalError naming function and
 * version when it does not fit. */
ncclResult_t tt_net_narrow(const struct tt_net_plugin *self, const char *function, size_t bytes,
                           int *narrow_out);

/* Set the properties that older versions do not have; the rest is zeroed. */
void tt_net_default_properties(int dev, ncclNetProperties_v12_t *props);

/* ---- net_check.c: TUTTI_PLUGIN_CHECK ---- */

/* Check every call of the network from now on. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_net_check_begin(struct tt_net_plugin *self);
/* Report a call that took so long though it must return at once. Does nothing without a begin. */
void tt_net_check_took(struct tt_net_plugin *self, const char *function,
                       const struct tt_thread_spent *spent);
/* Log a summary and stop; the plugin's table must still exist. Does nothing without a begin. */
void tt_net_check_end(struct tt_net_plugin *self);

/* ---- net_blocking.c: calls of versions 2 to 6 that wait ---- */

ncclResult_t tt_net_blocking_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                     void **send_comm);
ncclResult_t tt_net_blocking_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                    void **listen_comm);
ncclResult_t tt_net_blocking_accept(struct tt_net_plugin *self, void *listen_comm,
                                    void **recv_comm);
void tt_net_blocking_give_up(struct tt_net_plugin *self, const void *handle);
ncclResult_t tt_net_blocking_close_listen(struct tt_net_plugin *self, void *listen_comm);
