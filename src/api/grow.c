/* Growing: an id from one of the ranks that exist, and the call by which old and new ranks meet.
 * The new communicator is handed out at once; its own state shows how far it is. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"

#include <stdlib.h>
#include <unistd.h>

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
    static const char func[] = "ncclCommGetUniqueId";
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_pointer(comm, func, "comm");
    if (!rc) rc = tt_check_pointer(uniqueId, func, "uniqueId");
    if (!rc) rc = tt_check_usable(own, func);
    return rc ? rc : tt_comm_grow_id(own, uniqueId);
}

/* Makes the communicator of the request and starts the job. */
static ncclResult_t grow_start(struct tt_comm *parent, const struct tt_comm_request *request,
                               ncclComm_t *newcomm)
{
    struct tt_comm *child = NULL;
    ncclResult_t rc = ncclSuccess;
    if (parent) {
        struct tt_comm_request later = *request; /* the id comes later */
        later.ids = NULL;
        rc = tt_child_create(&later, parent, &child);
    } else {
        rc = tt_comm_alloc(request, &child);
        if (!rc) rc = tt_plan_create(child, &child->plan);
    }
    if (rc) {
        tt_comm_dispose(child);
        return rc;
    }
    return tt_job_grow(parent, child, request, newcomm);
}

/* ---- checks ---- */

static ncclResult_t check_existing(struct tt_comm *own, int nranks, const ncclUniqueId *id,
                                   int rank)
{
    static const char func[] = "ncclCommGrow";
    if (nranks <= own->member.nranks) {
        return tt_fail(ncclInvalidArgument, "%s: nRanks %d does not exceed the present %d", func,
                       nranks, own->member.nranks);
    }
    if (rank != -1) {
        return tt_fail(ncclInvalidArgument,
                       "%s: rank %d: a rank that exists keeps its number and passes -1", func,
                       rank);
    }
    if (!id && own->member.nranks == 1 && !own->grow_id_made) {
        return tt_fail(ncclInvalidArgument,
                       "%s: uniqueId is NULL and this only rank has not called "
                       "ncclCommGetUniqueId",
                       func);
    }
    return ncclSuccess; /* its id is checked when the result can be sent to the others */
}

static ncclResult_t check_new(int nranks, const ncclUniqueId *id, int rank)
{
    static const char func[] = "ncclCommGrow";
    if (rank < 0 || rank >= nranks) {
        return tt_fail(ncclInvalidArgument, "%s: rank %d is not in 0..%d", func, rank, nranks - 1);
    }
    ncclResult_t rc = tt_check_pointer(id, func, "uniqueId");
    if (!rc) rc = tt_check_device(func);
    if (!rc) rc = tt_id_check(id);
    if (rc) return rc;
    int existing = tt_id_existing(id);
    if (existing < 1) {
        return tt_fail(ncclInvalidArgument,
                       "%s: uniqueId is of a new communicator, not from ncclCommGetUniqueId", func);
    }
    if (rank >= existing) return ncclSuccess;
    return tt_fail(ncclInvalidArgument,
                   "%s: rank %d is taken: the communicator has ranks 0..%d already", func, rank,
                   existing - 1);
}

/* Tell the ranks that wait with the id that this rank does not come, if the id is valid here. */
static ncclResult_t refused(const struct tt_comm *own, const struct tt_comm_request *request,
                            ncclResult_t rc)
{
    bool valid = request->ids && tt_id_valid(request->ids);
    bool ours = valid && tt_id_existing(request->ids) > 0;
    if (valid && !ours && !own) return tt_grow_refused_id(request, rc);
    if (ours && own) ours = tt_id_is_grow(own->bootstrap, own->child_count + 1, request->ids);
    return ours ? tt_init_refused(request, rc) : rc;
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    static const char func[] = "ncclCommGrow";
    struct tt_comm *own = (struct tt_comm *)comm;
    tt_settings_load();
    struct tt_nvtx_life life = {.kind = TT_NVTX_INIT, .nranks = nRanks, .rank = rank};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommGrow", rank, &life);
    ncclResult_t rc = tt_check_pointer(newcomm, func, "newcomm");
    if (rc) return rc;
    *newcomm = NULL;
    if (nRanks <= 0) {
        return tt_fail(ncclInvalidArgument, "%s: nRanks %d is below 1", func, nRanks);
    }
    if (own) rc = tt_check_usable(own, func); /* before anything of it is read */
    if (rc) return tt_group_error(rc);
    const struct tt_comm_request request = {.func = func,
                                            .nranks = nRanks,
                                            .rank = own ? own->member.rank : rank,
                                            .device = tuttiHostGetDevice(),
                                            .ids = uniqueId,
                                            .nids = 1,
                                            .thread = (int)gettid(),
                                            .config = config};
    rc = own ? check_existing(own, nRanks, uniqueId, rank) : check_new(nRanks, uniqueId, rank);
    if (rc) return tt_group_error(refused(own, &request, rc));
    rc = grow_start(own, &request, newcomm);
    if (range.open) tt_life_begun(&life, rc, newcomm);
    if (*newcomm && tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "ncclCommGrow(%p, %d, 0x%lx, %d, %p)", (void *)comm, nRanks,
                 uniqueId ? (unsigned long)tt_id_comm(uniqueId, 1) : 0ul, rank, (void *)*newcomm);
    }
    return tt_group_error(rc);
}

/* ---- the weak aliases ---- */

__typeof__(pncclCommGetUniqueId) ncclCommGetUniqueId
    __attribute__((weak, alias("pncclCommGetUniqueId")));
__typeof__(pncclCommGrow) ncclCommGrow __attribute__((weak, alias("pncclCommGrow")));
