/* Version 3: as 4, but flush waits for its end. Memory of hosts is never flushed. */
#include "nccl/collnet_v3.h"

#include "nccl/collnet_v4.h"
#include "plugin/net/collnet_abi.h"

_Static_assert(sizeof(ncclCollNet_v3_t) == sizeof(ncclCollNet_v4_t) &&
                   offsetof(ncclCollNet_v3_t, flush) == offsetof(ncclCollNet_v4_t, iflush) &&
                   offsetof(ncclCollNet_v3_t, test) == offsetof(ncclCollNet_v4_t, test),
               "as published: all but flush is that of version 4");

void tt_collnet_v3(struct tt_collnet_ops *ops)
{
    tt_collnet_v4(ops);
    ops->version = 3;
}
