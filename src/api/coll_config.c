/* The collectives with options of their own (ncclCollConfig_t of any release): what the caller's
 * release did not know or left undefined is as the communicator has it, and so is what makes no
 * sense as a number of channels. The environment wins over all of them. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/device.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_ROOT = -1 };
static const ncclRedOp_t no_op = ncclSum; /* of what reduces nothing */

/* Only the bytes that the caller's struct has are read. */
static ncclResult_t copy_known(const ncclCollConfig_t *config, const char *name,
                               ncclCollConfig_t *out)
{
    const ncclCollConfig_t undefined = NCCL_COLLCONFIG_INITIALIZER;
    const size_t head = offsetof(ncclCollConfig_t, ext);
    size_t size = config->size;
    *out = undefined;
    if (size < head || config->magic != NCCL_API_MAGIC) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%sConfig: ncclCollConfig_t with size %zu, magic %#x: not started from "
                       "NCCL_COLLCONFIG_INITIALIZER (magic %#x)",
                       name, size, size < head ? 0 : config->magic, NCCL_API_MAGIC);
    }
    memcpy(out, config, tt_min_size(size, sizeof(*out)));
    bool knows_event = config->version >= NCCL_VERSION(2, 32, 0) &&
                       size >= offsetof(ncclCollConfig_t, launchCompletionEvent) + sizeof(void *);
    if (!knows_event) out->launchCompletionEvent = NULL;
    return ncclSuccess;
}

/* A number of channels, 0 when it is not said, makes no sense, or the environment says it. */
static uint8_t channels(int requested, const char *name, const char *field, const char *variable)
{
    if (requested == NCCL_CONFIG_UNDEF_INT || tt_param_is_set(variable)) return 0;
    if (requested >= 1 && requested <= TT_MAX_CHANNELS) return (uint8_t)requested;
    tt_info(TT_LOG_ENV, "nccl%sConfig: %s %d is not in 1..%d and ignored", name, field, requested,
            TT_MAX_CHANNELS);
    return 0;
}

static ncclResult_t read_selection(const ncclCollConfig_t *config, enum tt_func func,
                                   const char *name, struct tt_tune_request *request)
{
    int force = config->forceAlgSelection;
    if (force != 0 && force != 1) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%sConfig: forceAlgSelection is %d, accepted are 0 and 1", name, force);
    }
    ncclResult_t rc = tt_tune_select(config->algSelection, request);
    if (rc || func <= TT_FUNC_ALLREDUCE || !request->selects) {
        request->strict = force != 0;
        return rc;
    }
    bool kept = tt_tune_allows_unnamed(*request) || !force;
    *request = (struct tt_tune_request){0};
    if (kept) return ncclSuccess;
    return tt_fail(ncclInvalidUsage,
                   "nccl%sConfig: algSelection is '%.200s', but %s has no algorithms with names; "
                   "leave it NULL, or set forceAlgSelection to 0",
                   name, config->algSelection, name);
}

static ncclResult_t read_options(const ncclCollConfig_t *given, enum tt_func func, const char *name,
                                 struct tt_call_options *out)
{
    ncclCollConfig_t config;
    struct tt_tune_request request = {0};
    ncclResult_t rc = copy_known(given, name, &config);
    if (!rc) rc = read_selection(&config, func, name, &request);
    if (rc) return rc;
    if (config.launchCompletionEvent && tuttiHostEventPlain(config.launchCompletionEvent)) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%sConfig: launchCompletionEvent %p must be a live event made with "
                       "cudaEventDisableTiming and without cudaEventInterprocess",
                       name, (void *)config.launchCompletionEvent);
    }
    request.least = channels(config.minCTAs, name, "minCTAs", "NCCL_MIN_CTAS");
    request.most = channels(config.maxCTAs, name, "maxCTAs", "NCCL_MAX_CTAS");
    if (request.most && request.least > request.most) request.least = 1;
    *out = (struct tt_call_options){.request = request,
                                    .profiler_tag = config.userProfilerTag,
                                    .launch_event = config.launchCompletionEvent};
    return ncclSuccess;
}

static ncclResult_t call_with(const struct tt_task *task, const char *name,
                              const ncclCollConfig_t *config)
{
    struct tt_task own = *task;
    struct tt_call_options options;
    if (!config) return tt_plan_add(&own, name);
    ncclResult_t rc = tt_comm_check(task->comm, name);
    if (rc) return tt_group_error(rc);
    rc = read_options(config, task->func, name, &options);
    if (rc) return tt_plan_failed(task->comm, rc);
    own.options = &options;
    return tt_plan_add(&own, name);
}

ncclResult_t pncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
                                  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                  cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_ALLREDUCE, datatype, op, NO_ROOT},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "AllReduce", config);
}

ncclResult_t pncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
                               ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_REDUCE, datatype, op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "Reduce", config);
}

ncclResult_t pncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
                                  ncclDataType_t datatype, int root, ncclComm_t comm,
                                  cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_BROADCAST, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "Broadcast", config);
}

ncclResult_t pncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
                                  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t *config)
{
    struct tt_task task = {
        {sendbuff, recvbuff, sendcount, TT_FUNC_ALLGATHER, datatype, no_op, NO_ROOT},
        .comm = (struct tt_comm *)comm,
        .stream = stream};
    return call_with(&task, "AllGather", config);
}

ncclResult_t pncclReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount,
                                      ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {
        {sendbuff, recvbuff, recvcount, TT_FUNC_REDUCESCATTER, datatype, op, NO_ROOT},
        .comm = (struct tt_comm *)comm,
        .stream = stream};
    return call_with(&task, "ReduceScatter", config);
}

ncclResult_t pncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
                                 ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_ALLTOALL, datatype, no_op, NO_ROOT},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "AlltoAll", config);
}

ncclResult_t pncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
                               ncclDataType_t datatype, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_GATHER, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "Gather", config);
}

ncclResult_t pncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
                                ncclDataType_t datatype, int root, ncclComm_t comm,
                                cudaStream_t stream, const ncclCollConfig_t *config)
{
    struct tt_task task = {{sendbuff, recvbuff, count, TT_FUNC_SCATTER, datatype, no_op, root},
                           .comm = (struct tt_comm *)comm,
                           .stream = stream};
    return call_with(&task, "Scatter", config);
}

/* ---- the weak aliases ---- */

__typeof__(pncclAllReduceConfig) ncclAllReduceConfig
    __attribute__((weak, alias("pncclAllReduceConfig")));
__typeof__(pncclReduceConfig) ncclReduceConfig __attribute__((weak, alias("pncclReduceConfig")));
__typeof__(pncclBroadcastConfig) ncclBroadcastConfig
    __attribute__((weak, alias("pncclBroadcastConfig")));
__typeof__(pncclAllGatherConfig) ncclAllGatherConfig
    __attribute__((weak, alias("pncclAllGatherConfig")));
__typeof__(pncclReduceScatterConfig) ncclReduceScatterConfig
    __attribute__((weak, alias("pncclReduceScatterConfig")));
__typeof__(pncclAlltoAllConfig) ncclAlltoAllConfig
    __attribute__((weak, alias("pncclAlltoAllConfig")));
__typeof__(pncclGatherConfig) ncclGatherConfig __attribute__((weak, alias("pncclGatherConfig")));
__typeof__(pncclScatterConfig) ncclScatterConfig __attribute__((weak, alias("pncclScatterConfig")));
