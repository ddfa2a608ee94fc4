/* A table that a library exports becomes a collective network: which adapter it gets, and whether
 * all is there that those of its version must have. */
#include "base/error.h"
#include "base/mem.h"
#include "plugin/net/collnet_abi.h"
#include "plugin/plugin.h"

#include <stdatomic.h>
#include <stdlib.h>

ncclResult_t tt_collnet_adopt(struct tt_collnet_plugin *self, int version, const void *object)
{
    static void (*const fill[TT_COLLNET_NEWEST + 1])(struct tt_collnet_ops *) = {
        [3] = tt_collnet_v3,   [4] = tt_collnet_v4,   [5] = tt_collnet_v5, [6] = tt_collnet_v6,
        [7] = tt_collnet_v7,   [8] = tt_collnet_v8,   [9] = tt_collnet_v9, [10] = tt_collnet_v10,
        [11] = tt_collnet_v11, [12] = tt_collnet_v12,
    };
    if (version < 8) {
        self->old = tt_calloc(1, sizeof(*self->old));
        if (!self->old) return tt_fail(ncclSystemError, "collnet: out of memory");
    }
    fill[version](&self->ops);
    self->object = self->table = object;
    self->begun = self->failed = false;
    return ncclSuccess;
}

bool tt_collnet_abandon(struct tt_collnet_plugin *self)
{
    if (atomic_load_explicit(&self->nblocked, memory_order_acquire)) return false;
    free(self->old);
    self->old = NULL;
    self->object = self->table = NULL;
    return true;
}

/* Functions in the order of a table, after the name; what may be missing is blank. What follows
 * closeListen may be missing too. */
static const char *const functions_v8[] = {
    "init",  "devices", "getProperties", "listen",      "connect", "reduceSupport",
    "regMr", NULL,      "deregMr",       "iallreduce",  NULL,      NULL,
    NULL,    "test",    "closeColl",     "closeListen",
};
static const char *const functions_v6[] = {
    "init", "devices", "getProperties", "listen", "connect", "reduceSupport", "regMr",
    NULL,   "deregMr", "iallreduce",    NULL,     "test",    "closeColl",     "closeListen",
};
static const char *const functions_v3[] = {
    "init",          "devices",   "getProperties", "listen",     "connect",
    "reduceSupport", "regMr",     "deregMr",       "iallreduce", NULL,
    "test",          "closeColl", "closeListen",
};

const char *tt_collnet_missing(const struct tt_collnet_plugin *self)
{
    const char *const *names = functions_v8;
    size_t count = TT_LEN(functions_v8);
    if (self->ops.version < 8) names = functions_v6, count = TT_LEN(functions_v6);
    if (self->ops.version < 6) names = functions_v3, count = TT_LEN(functions_v3);
    return tt_table_lacks(self->object, names, count);
}
