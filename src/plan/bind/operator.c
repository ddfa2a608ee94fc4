/* Operators: NCCL's five, and the user's (a scalar times each input, then the sum). A user
 * operator's number mixes in the communicator's address, so that it is unknown on another one. */
#include "plan/bind/operator.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/plan_state.h"

#include <stdlib.h>
#include <string.h>

/* 1/n as an element of a floating type, rounded to nearest even. */

static uint64_t bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Round fp32 bits to a narrower float with `mant` fraction bits and exponent bias `bias`. Only for
 * 0 < value <= 1, where nothing overflows; denormals are rounded correctly. */
static uint64_t narrow_bits(float value, int mant, int bias)
{
    uint32_t bits = (uint32_t)bits_f32(value);
    int exponent = (int)(bits >> 23) - 127 + bias;
    uint32_t fraction = (bits & 0x7fffff) | 0x800000;
    int drop = 23 - mant;
    if (exponent < 1) {
        drop += 1 - exponent;
        exponent = 0;
    }
    if (drop > 24) return 0;
    uint32_t half = 1u << (drop - 1);
    uint32_t kept = fraction >> drop;
    uint32_t rest = fraction & ((1u << drop) - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    /* the hidden bit of `kept` adds one to the exponent, and so does a carry */
    return exponent > 0 ? ((uint32_t)(exponent - 1) << mant) + kept : kept;
}

static uint64_t reciprocal_bits(ncclDataType_t type, int n)
{
    double inverse = 1.0 / n;
    uint64_t bits = 0;
    switch (type) {
    case ncclFloat16: return narrow_bits((float)inverse, 10, 15);
    case ncclBfloat16: return narrow_bits((float)inverse, 7, 127);
    case ncclFloat8e4m3: return narrow_bits((float)inverse, 3, 7);
    case ncclFloat8e5m2: return narrow_bits((float)inverse, 2, 15);
    case ncclFloat32: return bits_f32((float)inverse);
    case ncclFloat64: memcpy(&bits, &inverse, sizeof(bits)); return bits;
    default: return 0;
    }
}

static bool type_is_float(ncclDataType_t type)
{
    return type >= ncclFloat16;
}

/* ---- user operators ---- */

/* 31 bits with the highest set, so that no handle falls on a built-in operator. */
static uint32_t handle_mask(const struct tt_plan *plan)
{
    uint64_t hash = (uint64_t)(uintptr_t)plan->comm * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 34) | 0x40000000u;
}

static ncclRedOp_t handle_of(const struct tt_plan *plan, int slot)
{
    return (ncclRedOp_t)(((uint32_t)slot + ncclNumOps) ^ handle_mask(plan));
}

static struct tt_redop *redop_find(const struct tt_plan *plan, ncclRedOp_t op)
{
    for (int slot = 0; slot < plan->nredops; slot++) {
        if (plan->redops[slot].live && handle_of(plan, slot) == op) return &plan->redops[slot];
    }
    return NULL;
}

static int redop_slot(struct tt_plan *plan)
{
    for (int slot = 0; slot < plan->nredops; slot++) {
        if (!plan->redops[slot].live) return slot;
    }
    int wanted = plan->nredops ? 2 * plan->nredops : 8;
    struct tt_redop *grown = realloc(plan->redops, (size_t)wanted * sizeof(*grown));
    if (!grown) return -1;
    memset(grown + plan->nredops, 0, (size_t)(wanted - plan->nredops) * sizeof(*grown));
    int slot = plan->nredops;
    plan->redops = grown;
    plan->nredops = wanted;
    return slot;
}

ncclResult_t tt_redop_create(struct tt_comm *comm, const void *scalar, ncclDataType_t type,
                             ncclScalarResidence_t residence, ncclRedOp_t *op_out)
{
    struct tt_plan *plan = comm->plan;
    size_t bytes = tt_type_bytes(type);
    if (bytes == 0 && residence == ncclScalarHostImmediate) {
        return tt_fail(ncclInternalError, "ncclRedOpCreatePreMulSum: datatype %d is unknown",
                       (int)type);
    }
    if (residence != ncclScalarHostImmediate && plan->checks_pointers) {
        ncclResult_t rc = tt_pointer_check(comm, "RedOpCreatePreMulSum", "scalar", scalar);
        if (rc) return rc;
    }
    int slot = redop_slot(plan);
    if (slot < 0) return tt_fail(ncclSystemError, "ncclRedOpCreatePreMulSum: out of memory");
    struct tt_redop redop = {.live = true, .type = type};
    if (residence == ncclScalarHostImmediate) {
        memcpy(&redop.scalar_bits, scalar, bytes);
    } else {
        redop.on_device = true;
        redop.scalar_ptr = scalar;
    }
    plan->redops[slot] = redop;
    *op_out = handle_of(plan, slot);
    return ncclSuccess;
}

ncclResult_t tt_redop_destroy(struct tt_comm *comm, ncclRedOp_t op)
{
    struct tt_redop *redop = redop_find(comm->plan, op);
    if (!redop) {
        return tt_fail(ncclInvalidArgument,
                       "ncclRedOpDestroy: operator %d is unknown to this communicator (rank %d), "
                       "or was destroyed",
                       (int)op, comm->member.rank);
    }
    redop->live = false;
    return ncclSuccess;
}

bool tt_redop_known(const struct tt_comm *comm, ncclRedOp_t op)
{
    return redop_find(comm->plan, op) != NULL;
}

const void *tt_redop_device_scalar(const struct tt_comm *comm, ncclRedOp_t op)
{
    const struct tt_redop *redop = redop_find(comm->plan, op);
    return redop && redop->on_device ? redop->scalar_ptr : NULL;
}

/* ---- reductions of calls ---- */

static bool reduces(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

static ncclResult_t user_reduction(struct tt_plan *plan, const struct tt_task *task,
                                   struct tt_reduction *reduction)
{
    const struct tt_redop *redop = redop_find(plan, task->op);
    if (!redop) {
        return tt_fail(ncclInvalidArgument, "nccl%s: operator %d is unknown to this communicator",
                       tt_func_name(task->func), (int)task->op);
    }
    if (redop->type != task->type) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: the operator was created for %s (ncclRedOpCreatePreMulSum), the "
                       "call has %s",
                       tt_func_name(task->func), tt_type_name(redop->type),
                       tt_type_name(task->type));
    }
    reduction->op = ncclSum;
    reduction->pre_mul = true;
    reduction->scalar_on_device = redop->on_device;
    reduction->scalar_ptr = redop->scalar_ptr;
    reduction->scalar_bits = redop->scalar_bits;
    return ncclSuccess;
}

ncclResult_t tt_operator_reduction(struct tt_plan *plan, const struct tt_task *task,
                                   struct tt_reduction *reduction_out)
{
    *reduction_out = (struct tt_reduction){.type = task->type, .op = task->op};
    if (!reduces(task->func)) {
        reduction_out->op = ncclSum;
        return ncclSuccess;
    }
    if (task->op >= ncclNumOps) return user_reduction(plan, task, reduction_out);
    if (task->op != ncclAvg) return ncclSuccess;
    int n = plan->comm->member.nranks;
    reduction_out->op = ncclSum;
    if (n == 1) return ncclSuccess;
    if (type_is_float(task->type)) {
        reduction_out->pre_mul = true;
        reduction_out->scalar_bits = reciprocal_bits(task->type, n);
    } else {
        reduction_out->post_div = n;
    }
    return ncclSuccess;
}

void tt_operator_adapt(struct tt_reduction *reduction, const struct tt_task *task, int nranks,
                       enum tt_algo algo)
{
    bool one_move = algo == TT_ALGO_DIRECT || algo == TT_ALGO_ONESHOT || algo == TT_ALGO_NVLS;
    bool small =
        type_is_float(task->type) && task->type != ncclFloat32 && task->type != ncclFloat64;
    if (task->op != ncclAvg || !reduces(task->func) || !one_move || !small) return;
    /* All inputs meet in one fp32 sum: dividing it once is exact to one rounding, and fp32 cannot
     * overflow where the average fits. */
    reduction->pre_mul = false;
    reduction->scalar_bits = 0;
    reduction->post_div = nranks;
}
