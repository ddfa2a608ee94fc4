/* Init of communicators: ids, and one job per rank that meets the others. *comm is NULL whenever a
 * call fails before there is a communicator. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId)
{
    tt_settings_load();
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("GetUniqueId", -1);
    (void)range;
    ncclResult_t rc = tt_check_pointer(uniqueId, "GetUniqueId", "uniqueId");
    if (!rc) rc = tt_id_create(uniqueId);
    if (!rc && tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "ncclGetUniqueId(0x%lx)", (unsigned long)tt_id_comm(uniqueId, 1));
    }
    return rc;
}

static ncclResult_t check_settings(void)
{
    tt_settings_load();
    return tt_param_check();
}

static void trace_init(const struct tt_comm *comm, const struct tt_comm_request *request)
{
    if (!tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) return;
    tt_trace(TT_LOG_CALL, "ncclCommInitRank(%p, %d, 0x%lx, %d, %d)", (const void *)comm,
             request->nranks, (unsigned long)tt_id_comm(request->ids, request->nids), request->rank,
             request->device);
}

/* Make the communicator, then meet the others: now, in the group, or in the background. */
static ncclResult_t init_start(ncclComm_t *out, const struct tt_comm_request *request,
                               bool runs_now)
{
    struct tt_comm *comm = NULL;
    ncclResult_t rc = tt_comm_alloc(request, &comm);
    if (!rc) rc = tt_plan_create(comm, &comm->plan);
    if (rc) {
        tt_comm_dispose(comm);
        return tt_init_refused(request, rc);
    }
    trace_init(comm, request);
    return tt_job_init(comm, request, runs_now, out);
}

static ncclResult_t check_rank(const char *func, int nranks, int rank)
{
    if (rank >= 0 && rank < nranks) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "%s: rank %d is not in 0..%d", func, rank, nranks - 1);
}

static ncclResult_t check_id(const char *func, const ncclUniqueId *id)
{
    ncclResult_t rc = tt_id_check(id);
    if (rc || tt_id_existing(id) == 0) return rc;
    return tt_fail(ncclInvalidArgument,
                   "%s: the unique id is from ncclCommGetUniqueId: only ncclCommGrow takes it",
                   func);
}

/* The checks of all forms, in the order that callers can observe. */
static ncclResult_t check_request(const ncclComm_t *out, const struct tt_comm_request *request)
{
    if (request->nranks < 1) {
        return tt_fail(ncclInvalidArgument, "%s: nranks %d is below 1", request->func,
                       request->nranks);
    }
    if (request->nids < 1 || request->nids > request->nranks) {
        return tt_fail(ncclInvalidArgument, "%s: nId %d is not in 1..%d (nranks)", request->func,
                       request->nids, request->nranks);
    }
    ncclResult_t rc = tt_check_pointer(request->ids, request->func, "commIds");
    if (!rc) rc = tt_check_pointer(out, request->func, "comm");
    if (!rc) rc = check_rank(request->func, request->nranks, request->rank);
    for (int k = 0; k < request->nids && !rc; k++)
        rc = check_id(request->func, &request->ids[k]);
    return rc;
}

/* Under NCCL_COMM_ID all ids name the same root, which then is the one that there is. Otherwise an
 * id that is listed twice is a mistake: its root would wait for ranks that do not come. */
static ncclResult_t check_distinct(struct tt_comm_request *request)
{
    const bool one_root = tt_param_str("NCCL_COMM_ID") != NULL;
    int nequal = 0;
    for (int k = 1; k < request->nids; k++) {
        int other = 0;
        while (memcmp(&request->ids[k], &request->ids[other], sizeof(*request->ids)) != 0)
            other++;
        if (other == k) continue;
        if (!one_root) {
            return tt_fail(ncclInvalidArgument,
                           "%s: commIds[%d] and commIds[%d] are the same id: each is of a "
                           "ncclGetUniqueId of its own",
                           request->func, other, k);
        }
        nequal++;
    }
    if (nequal && nequal == request->nids - 1) request->nids = 1;
    return ncclSuccess;
}

static ncclResult_t init_call(ncclComm_t *out, struct tt_comm_request *request, bool runs_now)
{
    if (out) *out = NULL;
    request->thread = (int)gettid();
    ncclResult_t rc = check_settings();
    if (!rc) rc = tt_check_device(request->func);
    if (rc) return tt_init_refused(request, rc);
    rc = check_request(out, request);
    if (!rc && request->nids > 1) rc = check_distinct(request);
    if (rc) return tt_group_error(tt_init_refused(request, rc));
    request->device = tuttiHostGetDevice();
    return tt_group_error(init_start(out, request, runs_now));
}

/* What a tool is shown of an init, whose communicator may not be there when the call is over. */
static struct tt_nvtx_life life_of(const struct tt_comm_request *request)
{
    struct tt_nvtx_life life = {
        .kind = TT_NVTX_INIT, .nranks = request->nranks, .rank = request->rank};
    if (!tt_nvtx_on()) return life;
    if (request->ids && request->nids > 0 && request->nids <= request->nranks)
        life.comm = tt_id_comm(request->ids, request->nids);
    life.device = tuttiHostGetDevice();
    return life;
}

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    tt_settings_load();
    struct tt_comm_request request = {
        .func = "ncclCommInitRank", .nranks = nranks, .rank = rank, .ids = &commId, .nids = 1};
    const struct tt_nvtx_life life = life_of(&request);
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommInitRank", rank, &life);
    (void)range;
    /* Outside a group it returns when it is done, whatever NCCL_COMM_BLOCKING says. */
    return init_call(comm, &request, tt_group_depth() == 0);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t *config)
{
    tt_settings_load();
    struct tt_comm_request request = {.func = "ncclCommInitRankConfig",
                                      .nranks = nranks,
                                      .rank = rank,
                                      .ids = &commId,
                                      .nids = 1,
                                      .config = config};
    const struct tt_nvtx_life life = life_of(&request);
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommInitRankConfig", rank, &life);
    (void)range;
    return init_call(comm, &request, false);
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId *commIds, ncclConfig_t *config)
{
    tt_settings_load();
    struct tt_comm_request request = {.func = "ncclCommInitRankScalable",
                                      .nranks = nranks,
                                      .rank = myrank,
                                      .ids = commIds,
                                      .nids = nId,
                                      .config = config};
    const struct tt_nvtx_life life = life_of(&request);
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommInitRankScalable", myrank, &life);
    (void)range;
    return init_call(newcomm, &request, false);
}

/* ---- all devices of one process ---- */

static ncclResult_t check_devices(int ndev, const int *devlist)
{
    int have = tuttiHostDeviceCount();
    bool twice_ok = tt_param_bool("NCCL_MULTI_RANK_GPU_ENABLE");
    if (!devlist && ndev > have) {
        return tt_fail(ncclUnhandledCudaError,
                       "ncclCommInitAll: %d devices wanted, %d are there (TUTTI_DEVICES sets how "
                       "many)",
                       ndev, have);
    }
    for (int k = 0; devlist && k < ndev; k++) {
        if (devlist[k] < 0 || devlist[k] >= have) {
            return tt_fail(ncclInvalidArgument, "ncclCommInitAll: devlist[%d] %d is not in 0..%d",
                           k, devlist[k], have - 1);
        }
        for (int other = 0; other < k && !twice_ok; other++) {
            if (devlist[other] != devlist[k]) continue;
            return tt_fail(ncclInvalidUsage,
                           "ncclCommInitAll: device %d is listed twice (%d and %d); set "
                           "NCCL_MULTI_RANK_GPU_ENABLE=1 to put several ranks on one device",
                           devlist[k], other, k);
        }
    }
    return ncclSuccess;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    static const char func[] = "ncclCommInitAll";
    ncclResult_t rc = check_settings();
    struct tt_nvtx_life life = {.kind = TT_NVTX_INIT_ALL, .nranks = ndev};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommInitAll", ndev, &life);
    if (!rc) rc = tt_check_device(func);
    if (!rc) rc = tt_check_pointer(comm, func, "comm");
    if (rc) return tt_group_error(rc);
    if (ndev < 0) {
        return tt_group_error(tt_fail(ncclInvalidArgument, "%s: ndev %d is negative", func, ndev));
    }
    for (int k = 0; k < ndev; k++)
        comm[k] = NULL;
    rc = check_devices(ndev, devlist);
    ncclUniqueId id;
    if (!rc && ndev > 0) rc = tt_id_create(&id);
    if (rc || ndev == 0) return tt_group_error(rc);
    rc = tt_group_start();
    if (rc) return rc;
    for (int k = 0; k < ndev && !rc; k++) {
        const struct tt_comm_request request = {.func = func,
                                                .nranks = ndev,
                                                .rank = k,
                                                .device = devlist ? devlist[k] : k,
                                                .ids = &id,
                                                .nids = 1};
        rc = tt_group_error(init_start(&comm[k], &request, false));
    }
    ncclResult_t end = tt_group_end();
    if (!rc) rc = end;
    if (range.open) tt_life_begun(&life, rc, comm);
    return rc;
}

/* ---- the weak aliases ---- */

__typeof__(pncclGetUniqueId) ncclGetUniqueId __attribute__((weak, alias("pncclGetUniqueId")));
__typeof__(pncclCommInitRank) ncclCommInitRank __attribute__((weak, alias("pncclCommInitRank")));
__typeof__(pncclCommInitRankConfig) ncclCommInitRankConfig
    __attribute__((weak, alias("pncclCommInitRankConfig")));
__typeof__(pncclCommInitRankScalable) ncclCommInitRankScalable
    __attribute__((weak, alias("pncclCommInitRankScalable")));
__typeof__(pncclCommInitAll) ncclCommInitAll __attribute__((weak, alias("pncclCommInitAll")));
