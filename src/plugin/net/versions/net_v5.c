/* Version 5: as 6 without regMrDmaBuf, so what follows it stands one place earlier. The functions
 * are copied to the places that version 6 has. */
#include "nccl/net_v5.h"

#include "plugin/net/net_abi.h"

static void v5_adapt(struct tt_net_plugin *self)
{
    const ncclNet_v5_t *old = self->object;
    self->old->v6 = (ncclNet_v6_t){
        .name = old->name,
        .init = old->init,
        .devices = old->devices,
        .getProperties = old->getProperties,
        .listen = old->listen,
        .connect = old->connect,
        .accept = old->accept,
        .regMr = old->regMr,
        .deregMr = old->deregMr,
        .isend = old->isend,
        .irecv = old->irecv,
        .iflush = old->iflush,
        .test = old->test,
        .closeSend = old->closeSend,
        .closeRecv = old->closeRecv,
        .closeListen = old->closeListen,
    };
    self->table = &self->old->v6;
}

void tt_net_v5(struct tt_net_ops *ops)
{
    tt_net_v6(ops);
    ops->version = 5;
    ops->adapt = v5_adapt;
}
