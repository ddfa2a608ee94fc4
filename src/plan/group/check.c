/* The arguments of an operation, checked in the order that callers can observe, and its log lines.
 * A call that was made before is not checked again (launch.c). */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/device.h"
#include "plan/bind/operator.h"
#include "plan/launch/launch_cache.h"
#include "plan/plan_state.h"

static bool has_root(enum tt_func func)
{
    return func == TT_FUNC_BROADCAST || func == TT_FUNC_REDUCE || func == TT_FUNC_GATHER ||
           func == TT_FUNC_SCATTER;
}

static bool reduces(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

/* What NCCL refuses where a rank is alone: scaling 8-bit floats, on any device. */
static ncclResult_t check_alone(const struct tt_task *task, const char *name)
{
    bool narrow = task->type == ncclFloat8e4m3 || task->type == ncclFloat8e5m2;
    if (!reduces(task->func) || !narrow || task->count == 0 || task->op < ncclAvg)
        return ncclSuccess;
    return tt_fail(ncclInvalidArgument,
                   "nccl%s: a communicator of one rank does not scale 8-bit floats (ncclAvg, "
                   "PreMulSum); use ncclSum",
                   name);
}

static ncclResult_t check_scalars(const struct tt_task *task, const char *name)
{
    int nranks = task->comm->member.nranks;
    if ((has_root(task->func) || tt_func_is_message(task->func)) &&
        (task->root < 0 || task->root >= nranks)) {
        return tt_fail(ncclInvalidArgument, "nccl%s: %s %d is not in 0..%d", name,
                       tt_func_is_message(task->func) ? "peer" : "root", task->root, nranks - 1);
    }
    if ((int)task->type < 0 || task->type >= ncclNumTypes) {
        return tt_fail(ncclInvalidArgument, "nccl%s: datatype %d is not in 0..%d", name,
                       (int)task->type, ncclNumTypes - 1);
    }
    if ((int)task->op < 0) {
        return tt_fail(ncclInvalidArgument, "nccl%s: op %d is negative", name, (int)task->op);
    }
    if (task->op >= ncclNumOps && !tt_redop_known(task->comm, task->op)) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: op %d is neither built in nor an operator of this communicator "
                       "(ncclRedOpCreatePreMulSum on it): it was destroyed, or is another one's",
                       name, (int)task->op);
    }
    return nranks == 1 ? check_alone(task, name) : ncclSuccess;
}

/* Elements lie at multiples of their size: loads of a GPU fault elsewhere. What only copies takes
 * bytes, wherever they lie. */
static ncclResult_t check_aligned(const struct tt_task *task, const char *name, const char *what,
                                  const void *ptr)
{
    size_t elem = tt_type_bytes(task->type);
    size_t over = (uintptr_t)ptr % elem;
    if (!over || !reduces(task->func)) return ncclSuccess;
    return tt_fail(
        ncclInvalidArgument,
        "nccl%s: %s %p lies %zu bytes behind a multiple of %zu, the bytes of an element: "
        "a GPU would fault; begin it at such a multiple",
        name, what, ptr, over, elem);
}

/* Where recvbuff begins, seen from sendbuff, in place; in words too. */
static ptrdiff_t in_place_shift(const struct tt_task *task, const char **words_out)
{
    ptrdiff_t before = (ptrdiff_t)((size_t)task->comm->member.rank * (size_t)tt_task_bytes(task));
    switch (task->func) {
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: *words_out = "sendbuff is recvbuff + rank * sendcount"; return -before;
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_SCATTER: *words_out = "recvbuff is sendbuff + rank * recvcount"; return before;
    default: *words_out = "sendbuff is recvbuff"; return 0;
    }
}

/* Both buffers of a call: one in the place that the call gives it in the other, or apart. */
static ncclResult_t check_apart(const struct tt_task *task, const char *name, size_t in_bytes,
                                size_t out_bytes)
{
    const char *words;
    const uintptr_t in = (uintptr_t)task->in, out = (uintptr_t)task->out;
    const bool meet = in < out + out_bytes && out < in + in_bytes;
    const ptrdiff_t shift = in_place_shift(task, &words), found = (ptrdiff_t)(out - in);
    if (!in_bytes || !out_bytes || !meet || found == shift) return ncclSuccess;
    ncclResult_t rc =
        tt_extent_check(task); /* allocations may be neighbours: too long, not moved */
    if (rc) return rc;
    return tt_fail(ncclInvalidArgument,
                   "nccl%s: sendbuff %p (%zu bytes) and recvbuff %p (%zu bytes), which begins %+td "
                   "bytes from it, overlap on rank %d: in place %s (%+td bytes), otherwise they "
                   "must be apart",
                   name, task->in, in_bytes, (const void *)task->out, out_bytes, found,
                   task->comm->member.rank, words, shift);
}

static ncclResult_t check_pointers(const struct tt_task *task, const char *name, size_t in_bytes,
                                   size_t out_bytes)
{
    const struct tt_comm *comm = task->comm;
    const void *scalar = task->op >= ncclNumOps ? tt_redop_device_scalar(comm, task->op) : NULL;
    ncclResult_t rc = ncclSuccess;
    if (in_bytes) rc = tt_pointer_check(comm, name, "sendbuff", task->in);
    if (!rc && out_bytes) rc = tt_pointer_check(comm, name, "recvbuff", task->out);
    if (!rc && scalar) rc = tt_pointer_check(comm, name, "scalar of the operator", scalar);
    if (!rc && in_bytes) rc = check_aligned(task, name, "sendbuff", task->in);
    if (!rc && out_bytes) rc = check_aligned(task, name, "recvbuff", task->out);
    return rc ? rc : check_apart(task, name, in_bytes, out_bytes);
}

static ncclResult_t check_buffers(const struct tt_task *task, const char *name)
{
    size_t elem = tt_type_bytes(task->type), bytes, all;
    size_t blocks = (size_t)task->comm->member.nranks;
    if (!tt_mul_size(task->count, elem, &bytes) || !tt_mul_size(bytes, blocks, &all) ||
        all > PTRDIFF_MAX) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: count %zu of %zu bytes each on %zu ranks is beyond any memory",
                       name, task->count, elem, blocks);
    }
    if (task->count == 0) return ncclSuccess;
    size_t in_bytes, out_bytes;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    if (in_bytes && !task->in) {
        return tt_fail(ncclInvalidArgument, "nccl%s: sendbuff is NULL, count %zu", name,
                       task->count);
    }
    if (out_bytes && !task->out) {
        return tt_fail(ncclInvalidArgument, "nccl%s: recvbuff is NULL, count %zu", name,
                       task->count);
    }
    if (!task->comm->plan->checks_pointers) return ncclSuccess;
    return check_pointers(task, name, in_bytes, out_bytes);
}

int64_t tt_task_bytes(const struct tt_task *task)
{
    return (int64_t)(task->count * tt_type_bytes(task->type));
}

ncclResult_t tt_task_check(const struct tt_task *task)
{
    const char *name = tt_func_name(task->func);
    if (task->comm->plan->checks_pointers && tuttiHostForbidsCalls()) {
        return tt_fail(ncclUnhandledCudaError,
                       "nccl%s: called in a host function (cudaLaunchHostFunc), where CUDA forbids "
                       "the calls that NCCL makes (TUTTI_STRICT)",
                       name);
    }
    ncclResult_t rc = check_scalars(task, name);
    return rc ? rc : check_buffers(task, name);
}

void tt_task_log(const struct tt_task *task)
{
    const char *name = tt_func_name(task->func);
    const struct tt_comm *comm = task->comm;
    int root = task->root < 0 ? 0 : task->root;
    if (tt_log_on(TT_LOG_INFO, TT_LOG_COLL)) {
        tt_info(TT_LOG_COLL,
                "%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d "
                "comm %p [nranks=%d] stream %p",
                name, (unsigned long)comm->plan->issued, task->in, (void *)task->out, task->count,
                (int)task->type, (int)task->op, root, (const void *)comm, comm->member.nranks,
                (void *)task->stream);
    }
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "nccl%s(%lx,%lx,%zu,%d,%d,%d,%p,%p)", name,
                 (unsigned long)(uintptr_t)task->in, (unsigned long)(uintptr_t)task->out,
                 task->count, (int)task->type, (int)task->op, root, (const void *)comm,
                 (void *)task->stream);
    }
}
