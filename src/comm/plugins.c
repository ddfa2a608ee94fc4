/* Strangers' and built-in networks, tuners and profilers of one communicator: opened after the
 * meeting, closed before the end. */
#include "base/error.h"
#include "comm/init.h"

ncclResult_t tt_plugins_open(struct tt_comm *comm, bool needs_net)
{
    if (!needs_net) return ncclSuccess;
    return tt_fail(ncclSystemError,
                   "rank %d: some ranks can only be reached over a network, and "
                   "no network is built in",
                   comm->member.rank);
}

void tt_plugins_close(struct tt_comm *comm)
{
    (void)comm;
}
