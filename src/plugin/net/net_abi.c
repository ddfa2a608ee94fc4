/* What older versions of the net ABI cannot say. */
#include "plugin/net/net_abi.h"

#include "base/error.h"

#include <string.h>

/* The most that a host may announce for a network that says nothing of it. */
#define UNKNOWN_P2P_BYTES ((size_t)1 << 30)
#define UNKNOWN_COLL_BYTES ((size_t)1 << 29)

void tt_net_default_properties(int dev, ncclNetProperties_v12_t *props)
{
    memset(props, 0, sizeof(*props));
    props->maxRecvs = 1;
    props->netDeviceType = NCCL_NET_DEVICE_HOST;
    props->vProps.ndevs = 1;
    props->vProps.devs[0] = dev;
    props->maxP2pBytes = UNKNOWN_P2P_BYTES;
    props->maxCollBytes = UNKNOWN_COLL_BYTES;
    props->maxMultiRequestSize = 1;
    props->railId = props->planeId = NCCL_NET_ID_UNDEF;
}

ncclResult_t tt_net_narrow(const struct tt_net_plugin *self, const char *function, size_t bytes,
                           int *narrow_out)
{
    if (bytes > MAX_NET_SIZE) {
        const ncclNet_v12_t *table = self->table;
        return tt_fail(ncclInternalError,
                       "NET/%s: %s of %zu bytes: version %d of the interface goes to 1 GiB",
                       table->name, function, bytes, self->ops.version);
    }
    *narrow_out = (int)bytes;
    return ncclSuccess;
}
