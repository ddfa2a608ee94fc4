/* A table that a library exports becomes a network: which adapter it gets, and whether all is there
 * that networks of its version must have. */
#include "base/error.h"
#include "base/mem.h"
#include "net/net.h"
#include "plugin/net/net_abi.h"
#include "plugin/plugin.h"

#include <stdlib.h>

ncclResult_t tt_net_adopt(struct tt_net_plugin *self, int version, const void *object)
{
    static void (*const fill[TT_NET_NEWEST + 1])(struct tt_net_ops *) = {
        [2] = tt_net_v2,   [3] = tt_net_v3,   [4] = tt_net_v4,   [5] = tt_net_v5,
        [6] = tt_net_v6,   [7] = tt_net_v7,   [8] = tt_net_v8,   [9] = tt_net_v9,
        [10] = tt_net_v10, [11] = tt_net_v11, [12] = tt_net_v12,
    };
    if (version < 7) {
        self->old = tt_calloc(1, sizeof(*self->old));
        if (!self->old) return tt_fail(ncclSystemError, "net: out of memory");
        pthread_mutex_init(&self->old->lock, NULL);
    }
    fill[version](&self->ops);
    self->object = self->table = object;
    self->begun = false;
    return ncclSuccess;
}

/* ---- what the built-in does beyond the ABI ---- */

static ncclResult_t socket_post(struct tt_net_plugin *self, void *comm,
                                const struct tt_net_part *part, void **request)
{
    struct tt_net_message message = {.head = part->head,
                                     .head_bytes = part->head_bytes,
                                     .data = part->data,
                                     .bytes = part->bytes,
                                     .event = part->event};
    (void)self;
    if (part->landing) message.landing = *part->landing;
    return tt_net_socket_post(comm, &message, request);
}

static ncclResult_t socket_test(struct tt_net_plugin *self, void *request, int *done, int *bytes)
{
    (void)self;
    return tt_net_socket.test(request, done, bytes);
}

static ncclResult_t socket_reverse(struct tt_net_plugin *self, const void *ctx, void *comm,
                                   void **reverse_out)
{
    (void)self;
    if (!comm) return tt_net_socket_is_two_way(ctx) ? ncclSuccess : ncclInvalidUsage;
    return tt_net_socket_reverse(comm, reverse_out);
}

static ncclResult_t socket_tend(struct tt_net_plugin *self, void *recv_comm)
{
    (void)self;
    if (!recv_comm) return tt_net_socket_has_paths() ? ncclSuccess : ncclInvalidUsage;
    return tt_net_socket_tend(recv_comm);
}

static void socket_stop(struct tt_net_plugin *self, void *comm)
{
    (void)self;
    tt_net_socket_stop(comm);
}

void tt_net_adopt_socket(struct tt_net_plugin *self)
{
    tt_net_v12(&self->ops);
    self->ops.gathers = true;
    self->ops.isend = self->ops.irecv = socket_post;
    self->ops.irecv_group = NULL;
    self->ops.test = socket_test;
    self->ops.reverse = socket_reverse;
    self->ops.tend = socket_tend;
    self->ops.stop = socket_stop;
    self->ops.consumed = NULL; /* its requests end with the test */
    self->object = self->table = &tt_net_socket;
    self->begun = false;
    self->builtin = true;
    self->interfaces = true;
}

bool tt_net_adopt_verbs(struct tt_net_plugin *self)
{
    if (!tt_net_verbs.table) return false;
    tt_net_v12(&self->ops);
    self->object = self->table = tt_net_verbs.table;
    self->begun = false;
    self->builtin = true;
    return true;
}

void tt_net_trust_builtin(const struct tt_net_plugin *self, void *ctx,
                          const struct tt_net_trust *trust)
{
    if (self->object == &tt_net_socket) {
        tt_net_socket_set_trust(ctx, trust);
    } else {
        tt_net_verbs.set_trust(ctx, trust);
    }
}

bool tt_net_abandon(struct tt_net_plugin *self)
{
    struct tt_net_old *old = self->old;
    int nblocked = 0;
    if (old) {
        pthread_mutex_lock(&old->lock);
        nblocked = old->nblocked;
        pthread_mutex_unlock(&old->lock);
    }
    if (nblocked) return false;
    tt_net_check_end(self);
    tt_net_virtual_forget(self);
    if (old) pthread_mutex_destroy(&old->lock);
    free(old);
    self->old = NULL;
    self->object = self->table = NULL;
    return true;
}

/* ---- complete tables ---- */

/* Functions in the order of a table, after the name; what may be missing is blank: flushes are for
 * devices' memory, DMA-BUF has a substitute. What follows closeListen may be missing too. */
static const char *const functions_v6[] = {
    "init",  "devices",   "getProperties", "listen",      "connect", "accept",
    "regMr", NULL,        "deregMr",       "isend",       "irecv",   NULL,
    "test",  "closeSend", "closeRecv",     "closeListen",
};
static const char *const functions_v3[] = {
    "init",   "devices", "getProperties", "listen",    "connect",
    "accept", "regMr",   "deregMr",       "isend",     "irecv",
    NULL,     "test",    "closeSend",     "closeRecv", "closeListen",
};
static const char *const functions_v2[] = {
    "init",   "devices",   "pciPath",   "ptrSupport",  "listen", "connect",
    "accept", "regMr",     "deregMr",   "isend",       "irecv",  NULL,
    "test",   "closeSend", "closeRecv", "closeListen",
};

const char *tt_net_missing(const struct tt_net_plugin *self)
{
    const char *const *names = functions_v6;
    size_t count = TT_LEN(functions_v6);
    if (self->ops.version < 6) names = functions_v3, count = TT_LEN(functions_v3);
    if (self->ops.version < 3) names = functions_v2, count = TT_LEN(functions_v2);
    return tt_table_lacks(self->object, names, count);
}
