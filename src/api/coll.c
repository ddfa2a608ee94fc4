/* The collectives: fill one task, check, hand it on. */
#include "api/calls.h"

enum { NO_ROOT = -1 };
static const ncclRedOp_t no_op = ncclSum; /* of what reduces nothing */

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_ALLREDUCE, datatype, op, NO_ROOT},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "AllReduce");
}

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_REDUCE, datatype, op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Reduce");
}

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_BROADCAST, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Broadcast");
}

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{buff, buff, count, TT_FUNC_BROADCAST, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Broadcast");
}

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {
        {sendbuff, recvbuff, sendcount, TT_FUNC_ALLGATHER, datatype, no_op, NO_ROOT},
        .comm = (struct tt_comm *)comm,
        .stream = stream};
    return tt_plan_add(&task, "AllGather");
}

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream)
{
    struct tt_task task = {
        {sendbuff, recvbuff, recvcount, TT_FUNC_REDUCESCATTER, datatype, op, NO_ROOT},
        .comm = (struct tt_comm *)comm,
        .stream = stream};
    return tt_plan_add(&task, "ReduceScatter");
}

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_ALLTOALL, datatype, no_op, NO_ROOT},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "AlltoAll");
}

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_GATHER, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Gather");
}

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_SCATTER, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Scatter");
}

/* ---- the weak aliases ---- */

__typeof__(pncclAllReduce) ncclAllReduce __attribute__((weak, alias("pncclAllReduce")));
__typeof__(pncclReduce) ncclReduce __attribute__((weak, alias("pncclReduce")));
__typeof__(pncclBroadcast) ncclBroadcast __attribute__((weak, alias("pncclBroadcast")));
__typeof__(pncclBcast) ncclBcast __attribute__((weak, alias("pncclBcast")));
__typeof__(pncclAllGather) ncclAllGather __attribute__((weak, alias("pncclAllGather")));
__typeof__(pncclReduceScatter) ncclReduceScatter __attribute__((weak, alias("pncclReduceScatter")));
__typeof__(pncclAlltoAll) ncclAlltoAll __attribute__((weak, alias("pncclAlltoAll")));
__typeof__(pncclGather) ncclGather __attribute__((weak, alias("pncclGather")));
__typeof__(pncclScatter) ncclScatter __attribute__((weak, alias("pncclScatter")));
