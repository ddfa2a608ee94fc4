/* Messages between two ranks. */
#include "api/calls.h"

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{sendbuff, NULL, count, TT_FUNC_SEND, datatype, ncclSum, peer},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Send");
}

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    struct tt_task task = {{NULL, recvbuff, count, TT_FUNC_RECV, datatype, ncclSum, peer},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return tt_plan_add(&task, "Recv");
}

/* ---- the weak aliases ---- */

__typeof__(pncclSend) ncclSend __attribute__((weak, alias("pncclSend")));
__typeof__(pncclRecv) ncclRecv __attribute__((weak, alias("pncclRecv")));
