/* Version 3: as 4, but flush waits for its end. Memory of hosts is never flushed. */
#include "nccl/net_v3.h"

#include "nccl/net_v4.h"
#include "plugin/net/net_abi.h"

_Static_assert(sizeof(ncclNet_v3_t) == sizeof(ncclNet_v4_t) &&
                   offsetof(ncclNet_v3_t, flush) == offsetof(ncclNet_v4_t, iflush) &&
                   offsetof(ncclNet_v3_t, test) == offsetof(ncclNet_v4_t, test),
               "as published: all but flush is that of version 4");

void tt_net_v3(struct tt_net_ops *ops)
{
    tt_net_v4(ops);
    ops->version = 3;
}
