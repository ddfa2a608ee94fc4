/* Growth: the ranks of a communicator and new ones meet by an id that one of the old ranks made.
 * The parent lives on; nothing is shared with it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "device/device.h"

#include <string.h>

ncclResult_t tt_comm_grow_id(struct tt_comm *comm, ncclUniqueId *id_out)
{
    ncclUniqueId id;
    uint64_t number = comm->child_count + 1;
    ncclResult_t rc = tt_id_create_grow(comm->bootstrap, number, &id);
    if (!rc) rc = tt_id_hand_out(comm->bootstrap, number, &id);
    if (rc) return rc;
    comm->grow_id = id;
    comm->grow_id_made = true;
    *id_out = id;
    return ncclSuccess;
}

/* Another rank's id. The child's abort flag and the parent's errors end the wait. */
static ncclResult_t await_id(struct tt_comm *parent, const struct tt_comm *child,
                             ncclUniqueId *id_out)
{
    int64_t timeout_sec = tt_param_int("TUTTI_INIT_TIMEOUT");
    uint64_t deadline_nsec =
        timeout_sec > 0 ? tt_now_nsec() + (uint64_t)timeout_sec * 1000000000ull : UINT64_MAX;
    uint32_t spins = 0;
    ncclResult_t rc;
    while ((rc = tt_id_take(parent->bootstrap, parent->child_count, id_out)) == ncclInProgress) {
        if (tt_member_aborted(&child->member)) {
            return tt_fail(ncclInternalError, "ncclCommGrow: rank %d: aborted",
                           parent->member.rank);
        }
        if (tt_now_nsec() > deadline_nsec) {
            return tt_fail(ncclTimeout,
                           "ncclCommGrow: rank %d: no rank handed out an id within %lld s; one of "
                           "the %d ranks must call ncclCommGetUniqueId",
                           parent->member.rank, (long long)timeout_sec, parent->member.nranks);
        }
        if (!tuttiHostHelp()) tt_wait_relax(&spins, true);
    }
    return rc;
}

ncclResult_t tt_comm_grow(struct tt_comm *parent, struct tt_comm *child, const ncclUniqueId *id)
{
    ncclUniqueId own = {{0}};
    ncclResult_t rc = ncclSuccess;
    parent->child_count++;
    if (!id && parent->grow_id_made) {
        own = parent->grow_id;
    } else if (!id) {
        rc = await_id(parent, child, &own);
    } else {
        own = *id;
    }
    parent->grow_id_made = false;
    if (rc) return rc;
    if (!tt_id_is_grow(parent->bootstrap, parent->child_count, &own)) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommGrow: rank %d: the id was not made by ncclCommGetUniqueId of this "
                       "communicator for its child %llu",
                       parent->member.rank, (unsigned long long)parent->child_count);
    }
    child->member.comm_id = tt_id_comm(&own, 1);
    const struct tt_comm_request request = {.func = child->func,
                                            .nranks = child->member.nranks,
                                            .rank = child->member.rank,
                                            .device = child->member.device,
                                            .ids = &own,
                                            .nids = 1};
    return tt_comm_init(child, &request);
}
