/* Collective networks of communicators: begun after the network whose library they come in, under
 * the same lock, and ended before it. */
#include "plugin/net/collnet.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plugin/net/collnet_abi.h"
#include "plugin/plugin.h"
#include "plugin/process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t net_sub = TT_LOG_INIT | TT_LOG_NET;

static const struct tt_plugin_abi collnet_abis[] = {
    {12, "ncclCollNetPlugin_v12"}, {11, "ncclCollNetPlugin_v11"}, {10, "ncclCollNetPlugin_v10"},
    {9, "ncclCollNetPlugin_v9"},   {8, "ncclCollNetPlugin_v8"},   {7, "ncclCollNetPlugin_v7"},
    {6, "ncclCollNetPlugin_v6"},   {5, "ncclCollNetPlugin_v5"},   {4, "ncclCollNetPlugin_v4"},
    {3, "ncclCollNetPlugin_v3"},
};

/* It may change its name in init. */
static const char *name_of(const struct tt_collnet_plugin *plugin)
{
    const char *name = *(const char *const *)plugin->object;
    return name ? name : "without a name";
}

void tt_collnet_find(const struct tt_library *library, struct tt_collnet_plugin *self)
{
    struct tt_plugin_found found;
    if (!tt_library_find(library, collnet_abis, TT_LEN(collnet_abis), &found)) return;
    if (tt_collnet_adopt(self, found.version, found.object)) return;
    tt_info(net_sub, "NET/Plugin: Loaded collnet plugin %s (v%d)", name_of(self), found.version);
}

static const char *reason_of(struct tt_collnet_plugin *plugin, struct tt_collnet *collnet,
                             uint64_t comm_id, ncclResult_t *rc)
{
    struct tt_collnet_device device = {0};
    const ncclCollNet_v8_t *table = plugin->object; /* all versions begin with name and init */
    if (!table->init) return "there is no init";
    *rc = plugin->ops.init(plugin, comm_id, tt_plugin_log, &collnet->ctx);
    if (*rc) return "init";
    if (!plugin->begun) plugin->ops.adapt(plugin);
    plugin->begun = true;
    const char *missing = tt_collnet_missing(plugin);
    if (missing) return missing;
    *rc = plugin->ops.devices(plugin, &collnet->ndevs);
    if (*rc || collnet->ndevs < 1) return "devices";
    *rc = plugin->ops.device(plugin, 0, &device);
    if (*rc || !device.takes_host) return "memory of the host, by getProperties";
    return NULL;
}

ncclResult_t tt_collnet_open(struct tt_net *net, uint64_t comm_id, struct tt_collnet **collnet_out)
{
    struct tt_net_candidate *candidate = net->source;
    struct tt_collnet_plugin *plugin = &candidate->collnet;
    *collnet_out = NULL;
    if (!plugin->object || plugin->failed) return ncclSuccess;
    struct tt_collnet *collnet = tt_calloc(1, sizeof(*collnet));
    if (!collnet) return tt_fail(ncclSystemError, "collnet: out of memory");
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&tt_plugins.nets.lock);
    const char *reason = reason_of(plugin, collnet, comm_id, &rc);
    if (reason && plugin->begun && collnet->ctx) plugin->ops.finalize(plugin, collnet->ctx);
    plugin->failed = reason != NULL;
    pthread_mutex_unlock(&tt_plugins.nets.lock);
    if (reason) {
        tt_info(net_sub, "Failed to initialize COLLNET plugin %s (v%d): %s, result %d (%s)",
                name_of(plugin), plugin->ops.version, reason, (int)rc, tt_result_name(rc));
        free(collnet);
        return ncclSuccess;
    }
    collnet->plugin = plugin;
    snprintf(collnet->name, sizeof(collnet->name), "%s", name_of(plugin));
    tt_info(net_sub, "Initialized COLLNET plugin %s", collnet->name);
    *collnet_out = collnet;
    return ncclSuccess;
}

void tt_collnet_close(struct tt_collnet *collnet)
{
    if (!collnet) return;
    pthread_mutex_lock(&tt_plugins.nets.lock);
    collnet->plugin->ops.finalize(collnet->plugin, collnet->ctx);
    pthread_mutex_unlock(&tt_plugins.nets.lock);
    free(collnet);
}

/* ---- connecting ---- */

enum call_state { CALL_RUNS, CALL_DONE, CALL_GIVEN_UP };

struct tt_collnet_call {
    struct tt_collnet_plugin *plugin; /* borrowed: of the process */
    _Atomic int users;                /* the caller and the thread */
    _Atomic int state;                /* enum call_state */
    int nranks, rank;
    void *listen_comm, *coll_comm;
    ncclResult_t rc;
    char *handles;   /* owned */
    void **pointers; /* owned: of each handle */
};

static void call_release(struct tt_collnet_call *call)
{
    if (atomic_fetch_sub_explicit(&call->users, 1, memory_order_acq_rel) > 1) return;
    free(call->handles);
    free(call->pointers);
    free(call);
}

static void *call_main(void *arg)
{
    struct tt_collnet_call *call = arg;
    struct tt_collnet_plugin *plugin = call->plugin;
    pthread_setname_np(pthread_self(), "tutti-collnet");
    call->rc = plugin->ops.connect(plugin, call->pointers, call->nranks, call->rank,
                                   call->listen_comm, &call->coll_comm);
    plugin->ops.close_listen(plugin, call->listen_comm);
    if (!call->rc && !call->coll_comm) call->rc = ncclInternalError;
    if (atomic_exchange(&call->state, CALL_DONE) == CALL_GIVEN_UP && call->coll_comm)
        plugin->ops.close_coll(plugin, call->coll_comm);
    atomic_fetch_sub_explicit(&plugin->nblocked, 1, memory_order_release);
    call_release(call);
    return NULL;
}

static ncclResult_t start_thread(struct tt_collnet_call *call)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the user's threads' */
    errno = pthread_create(&thread, &attr, call_main, call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return errno ? tt_fail(ncclSystemError, "collnet: a thread to connect with: %m") : ncclSuccess;
}

ncclResult_t tt_collnet_connect(struct tt_collnet *collnet, const void *handles, int nranks,
                                int rank, void *listen_comm, struct tt_collnet_call **call_out)
{
    size_t n = (size_t)nranks;
    ncclResult_t rc = ncclSystemError;
    struct tt_collnet_call *call = tt_calloc(1, sizeof(*call));
    if (!call) return tt_fail(rc, "collnet: out of memory");
    call->plugin = collnet->plugin;
    call->nranks = nranks;
    call->rank = rank;
    call->listen_comm = listen_comm;
    call->users = 1;
    call->handles = tt_calloc(n, NCCL_NET_HANDLE_MAXSIZE);
    call->pointers = tt_calloc(n, sizeof(void *));
    if (call->handles && call->pointers) {
        memcpy(call->handles, handles, n * NCCL_NET_HANDLE_MAXSIZE);
        for (size_t k = 0; k < n; k++)
            call->pointers[k] = call->handles + k * NCCL_NET_HANDLE_MAXSIZE;
        call->users = 2;
        atomic_fetch_add(&collnet->plugin->nblocked, 1);
        rc = start_thread(call);
        if (!rc) {
            *call_out = call;
            return rc;
        }
        atomic_fetch_sub(&collnet->plugin->nblocked, 1);
        call->users = 1;
    }
    collnet->plugin->ops.close_listen(collnet->plugin, listen_comm);
    call_release(call);
    return rc;
}

ncclResult_t tt_collnet_connected(struct tt_collnet_call *call, void **coll_comm_out)
{
    if (atomic_load(&call->state) != CALL_DONE) return ncclInProgress;
    if (!call->rc) *coll_comm_out = call->coll_comm;
    return call->rc;
}

void tt_collnet_call_end(struct tt_collnet_call *call)
{
    int runs = CALL_RUNS;
    if (!call) return;
    atomic_compare_exchange_strong(&call->state, &runs, CALL_GIVEN_UP);
    call_release(call);
}
