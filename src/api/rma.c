/* One-sided operations, suspend and resume: not offered. Their arguments are checked as
 * those who offer them do, then a sentence says so. */
#include "api/calls.h"
#include "base/error.h"

static ncclResult_t no_rma(ncclComm_t comm, int peer, const char *name)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_comm_check(own, name);
    if (rc) return tt_group_error(rc);
    if (peer < 0 || peer >= own->member.nranks) {
        rc = tt_fail(ncclInvalidArgument, "nccl%s: peer %d is not in 0..%d", name, peer,
                     own->member.nranks - 1);
    } else {
        rc = tt_fail(ncclInvalidArgument,
                     "nccl%s: one-sided operations are not supported on this communicator (rank "
                     "%d); use ncclSend and ncclRecv",
                     name, own->member.rank);
    }
    return tt_plan_failed(own, rc);
}

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                            unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    (void)localbuff, (void)count, (void)datatype, (void)peerWin, (void)peerWinOffset;
    (void)sigIdx, (void)ctx, (void)flags, (void)stream;
    return no_rma(comm, peer, "PutSignal");
}

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                         cudaStream_t stream)
{
    (void)sigIdx, (void)ctx, (void)flags, (void)stream;
    return no_rma(comm, peer, "Signal");
}

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
                             cudaStream_t stream)
{
    (void)nDesc, (void)signalDescs, (void)stream;
    return no_rma(comm, 0, "WaitSignal");
}

/* ---- suspend and resume ---- */

static ncclResult_t no_memory_manager(ncclComm_t comm, const char *name)
{
    ncclResult_t rc = tt_comm_check((struct tt_comm *)comm, name);
    if (rc) return tt_group_error(rc);
    return tt_group_error(tt_fail(ncclInvalidUsage,
                                  "nccl%s: the memory manager is off: transport memory of a host "
                                  "device is sparse and cannot be given back",
                                  name));
}

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_comm_check(own, "CommSuspend");
    if (rc) return tt_group_error(rc);
    if (!(flags & NCCL_SUSPEND_MEM)) return ncclSuccess;
    return no_memory_manager(comm, "CommSuspend");
}

ncclResult_t pncclCommResume(ncclComm_t comm)
{
    return no_memory_manager(comm, "CommResume");
}

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    (void)stat;
    ncclResult_t rc = tt_check_usable((struct tt_comm *)comm, "ncclCommMemStats");
    if (!rc) rc = tt_check_pointer(value, "ncclCommMemStats", "value");
    if (rc) return rc;
    return tt_fail(ncclInvalidUsage, "ncclCommMemStats: the memory manager is off");
}

/* ---- the weak aliases ---- */

__typeof__(pncclPutSignal) ncclPutSignal __attribute__((weak, alias("pncclPutSignal")));
__typeof__(pncclSignal) ncclSignal __attribute__((weak, alias("pncclSignal")));
__typeof__(pncclWaitSignal) ncclWaitSignal __attribute__((weak, alias("pncclWaitSignal")));
__typeof__(pncclCommSuspend) ncclCommSuspend __attribute__((weak, alias("pncclCommSuspend")));
__typeof__(pncclCommResume) ncclCommResume __attribute__((weak, alias("pncclCommResume")));
__typeof__(pncclCommMemStats) ncclCommMemStats __attribute__((weak, alias("pncclCommMemStats")));
