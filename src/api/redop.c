/* User operators: a scalar times each input, then the sum. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm)
{
    static const char func[] = "ncclRedOpCreatePreMulSum";
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_usable(own, func);
    if (!rc) rc = tt_check_pointer(op, func, "op");
    if (!rc) rc = tt_check_pointer(scalar, func, "scalar");
    if (!rc) rc = tt_redop_create(own, scalar, datatype, residence, op);
    if (!rc && tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "ncclRedOpCreatePreMulSum(%d,%p,%d,%d,%p)", (int)*op, scalar,
                 (int)datatype, (int)residence, (void *)comm);
    }
    return rc;
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    if ((int)op < 0)
        return tt_fail(ncclInvalidArgument, "ncclRedOpDestroy: op %d is negative", (int)op);
    if (op < ncclNumOps) {
        return tt_fail(ncclInvalidArgument,
                       "ncclRedOpDestroy: %s (op %d) is built in: only operators "
                       "of ncclRedOpCreatePreMulSum are destroyed",
                       tt_op_name((int)op), (int)op);
    }
    ncclResult_t rc = tt_check_alive(own, "ncclRedOpDestroy");
    if (!rc) rc = tt_redop_destroy(own, op);
    if (!rc && tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "ncclRedOpDestroy(%d,%p)", (int)op, (void *)comm);
    }
    return rc;
}

/* ---- the weak aliases ---- */

__typeof__(pncclRedOpCreatePreMulSum) ncclRedOpCreatePreMulSum
    __attribute__((weak, alias("pncclRedOpCreatePreMulSum")));
__typeof__(pncclRedOpDestroy) ncclRedOpDestroy __attribute__((weak, alias("pncclRedOpDestroy")));
