/* Messages between two ranks. */
#include "api/calls.h"

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_SEND,
                           .in = sendbuff,
                           .count = count,
                           .type = datatype,
                           .root = peer,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Send");
}

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {.func = TT_FUNC_RECV,
                           .out = recvbuff,
                           .count = count,
                           .type = datatype,
                           .root = peer,
                           .comm = (struct tt_comm *)comm,
                           .stream = stream,
                           .caller = __builtin_return_address(0)};
    return tt_call(&task, "Recv");
}

/* ---- the weak twins ---- */

__typeof__(pncclSend) ncclSend __attribute__((weak, alias("pncclSend")));
__typeof__(pncclRecv) ncclRecv __attribute__((weak, alias("pncclRecv")));
