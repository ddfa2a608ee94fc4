/* The collectives: fill one task, check, hand it on. */
#include "api/calls.h"

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_ALLREDUCE,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .op = op,
                           .root = -1,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "AllReduce");
}

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_REDUCE,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .op = op,
                           .root = root,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Reduce");
}

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_BROADCAST,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Broadcast");
}

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_BROADCAST,
                           .in = buff,
                           .out = buff,
                           .count = count,
                           .type = datatype,
                           .root = root,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Broadcast");
}

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_ALLGATHER,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = sendcount,
                           .type = datatype,
                           .root = -1,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "AllGather");
}

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_REDUCESCATTER,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = recvcount,
                           .type = datatype,
                           .op = op,
                           .root = -1,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "ReduceScatter");
}

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_ALLTOALL,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = -1,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "AlltoAll");
}

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_GATHER,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Gather");
}

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_SCATTER,
                           .in = sendbuff,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = root,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Scatter");
}

/* ---- the weak twins ---- */

__typeof__(pncclAllReduce) ncclAllReduce __attribute__((weak, alias("pncclAllReduce")));
__typeof__(pncclReduce) ncclReduce __attribute__((weak, alias("pncclReduce")));
__typeof__(pncclBroadcast) ncclBroadcast __attribute__((weak, alias("pncclBroadcast")));
__typeof__(pncclBcast) ncclBcast __attribute__((weak, alias("pncclBcast")));
__typeof__(pncclAllGather) ncclAllGather __attribute__((weak, alias("pncclAllGather")));
__typeof__(pncclReduceScatter) ncclReduceScatter __attribute__((weak, alias("pncclReduceScatter")));
__typeof__(pncclAlltoAll) ncclAlltoAll __attribute__((weak, alias("pncclAlltoAll")));
__typeof__(pncclGather) ncclGather __attribute__((weak, alias("pncclGather")));
__typeof__(pncclScatter) ncclScatter __attribute__((weak, alias("pncclScatter")));
