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

bool tt_comm_grow_made(struct tt_comm *parent, ncclUniqueId *id_out)
{
    bool made = parent->grow_id_made;
    parent->grow_id_made = false;
    if (made) *id_out = parent->grow_id;
    return made;
}

/* Another rank's id. The child's abort flag and the parent's errors end the wait. */
static ncclResult_t await_id(const struct tt_comm *parent, const struct tt_comm *child,
                             uint64_t number, ncclUniqueId *id_out)
{
    int64_t timeout_sec = tt_param_int("TUTTI_INIT_TIMEOUT");
    uint64_t deadline_nsec =
        timeout_sec > 0 ? tt_now_nsec() + (uint64_t)timeout_sec * 1000000000ull : UINT64_MAX;
    uint32_t spins = 0;
    ncclResult_t rc;
    while ((rc = tt_id_take(parent->bootstrap, number, id_out)) == ncclInProgress) {
        if (tt_member_aborted(&child->member) || tt_member_aborted(&parent->member)) {
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

ncclResult_t tt_comm_grow_take(const struct tt_comm *parent, struct tt_comm *child, uint64_t number,
                               const ncclUniqueId *id, ncclUniqueId *id_out)
{
    ncclUniqueId taken = {{0}};
    if (!id) {
        ncclResult_t rc = await_id(parent, child, number, &taken);
        if (rc) return rc;
    } else if (tt_id_is_grow(parent->bootstrap, number, id)) {
        taken = *id;
    } else {
        ncclUniqueId none = {{0}};
        tt_id_hand_out(parent->bootstrap, number, &none); /* ends the others' wait for an id */
    }
    if (!tt_id_is_grow(parent->bootstrap, number, &taken)) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommGrow: rank %d: the id that %s was not made by ncclCommGetUniqueId "
                       "of this communicator for its child %llu: make one after the last Split or "
                       "Grow",
                       parent->member.rank, id ? "it was given" : "another rank was given",
                       (unsigned long long)number);
    }
    child->member.comm_id = tt_id_comm(&taken, 1);
    *id_out = taken;
    return ncclSuccess;
}
