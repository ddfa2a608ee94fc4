/* Stand-ins for comm, bootstrap and the device's memory: enough for the doors' argument checks. */
#include "fakes.h"

#include "base/error.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "plan/plan.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t tt_comm_state(struct tt_comm *comm)
{
    return (ncclResult_t)comm->state;
}

void tt_transport_register(struct tt_transport *transport, const void *key, void *base,
                           size_t bytes)
{
    (void)transport, (void)key, (void)base, (void)bytes;
}

void tt_transport_forget(struct tt_transport *transport, const void *key)
{
    (void)transport, (void)key;
}

void tt_comm_recall(struct tt_comm *comm, ncclResult_t rc)
{
    (void)comm;
    (void)rc;
}

ncclResult_t tt_comm_async_error(struct tt_comm *comm, bool busy, bool pinned, const char *func,
                                 ncclResult_t *rc_out)
{
    (void)func, (void)pinned;
    *rc_out = busy ? ncclInProgress : tt_comm_state(comm);
    return ncclSuccess;
}

ncclResult_t tt_comm_check_state(struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = tt_comm_state(comm);
    if (rc != ncclInProgress) return rc;
    return tt_fail(ncclInvalidArgument, "%s: in progress", func);
}

ncclResult_t tt_comm_alloc(const struct tt_comm_request *request, struct tt_comm **comm_out)
{
    if (request->config && request->config->magic != NCCL_API_MAGIC) {
        return tt_fail(ncclInvalidArgument, "config magic");
    }
    struct tt_comm *comm = tt_calloc(1, sizeof(*comm));
    comm->magic = TT_COMM_MAGIC;
    comm->member.rank = request->rank;
    comm->member.nranks = request->nranks;
    comm->member.device = request->device;
    comm->config.blocking = request->config ? request->config->blocking != 0 : 1;
    comm->queue_used = &comm->queue;
    *comm_out = comm;
    return ncclSuccess;
}

ncclResult_t tt_comm_init(struct tt_comm *comm, const struct tt_comm_request *request)
{
    (void)request;
    if (fake.init_rc) return fake.init_rc;
    comm->phase = TT_COMM_READY;
    return ncclSuccess;
}

void tt_bootstrap_decline(const struct tt_bootstrap_decline *decline)
{
    (void)decline;
}

uint64_t tt_comm_count_child(struct tt_comm *parent)
{
    return ++parent->child_count;
}

ncclResult_t tt_comm_split(struct tt_comm *parent, const struct tt_comm_color *own,
                           struct tt_comm *child)
{
    (void)parent, (void)own;
    if (child) child->phase = TT_COMM_READY;
    return ncclSuccess;
}

ncclResult_t tt_comm_shrink(struct tt_comm *parent, const int *exclude, int nexclude,
                            struct tt_comm *child, int flags)
{
    (void)parent, (void)exclude, (void)nexclude, (void)flags;
    child->phase = TT_COMM_READY;
    return ncclSuccess;
}

ncclResult_t tt_comm_grow_id(struct tt_comm *comm, ncclUniqueId *id_out)
{
    comm->grow_id_made = true;
    memset(id_out, 7, sizeof(*id_out));
    id_out->internal[1] = (char)comm->member.nranks;
    return ncclSuccess;
}

bool tt_comm_grow_made(struct tt_comm *parent, const ncclUniqueId *given, ncclUniqueId *id_out)
{
    (void)given;
    (void)parent, (void)id_out;
    return false;
}

ncclResult_t tt_comm_grow_take(struct tt_comm *parent, struct tt_comm *child, uint64_t number,
                               const ncclUniqueId *given, const struct tt_comm_request *request,
                               ncclUniqueId *id_out)
{
    (void)parent, (void)child, (void)number, (void)request;
    if (given) *id_out = *given;
    return ncclSuccess;
}

bool tt_id_valid(const ncclUniqueId *id)
{
    return tt_id_check(id) == ncclSuccess;
}

bool tt_id_is_grow(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    (void)parent, (void)number, (void)id;
    return true;
}

int tt_id_existing(const ncclUniqueId *id)
{
    return id->internal[1] == 7 ? 0 : id->internal[1];
}

ncclResult_t tt_comm_finalize(struct tt_comm *comm)
{
    comm->phase = TT_COMM_FINALIZED;
    return ncclSuccess;
}

ncclResult_t tt_comm_revoke(struct tt_comm *comm)
{
    comm->phase = TT_COMM_REVOKED;
    return ncclSuccess;
}

void tt_comm_note_broken(void) {}

void tt_comm_abort(struct tt_comm *comm, ncclResult_t rc)
{
    comm->member.abort = rc;
}

ncclResult_t tt_id_create(ncclUniqueId *id_out)
{
    memset(id_out, 7, sizeof(*id_out));
    return ncclSuccess;
}

ncclResult_t tt_id_check(const ncclUniqueId *id)
{
    return id->internal[0] == 7 ? ncclSuccess : tt_fail(ncclInvalidArgument, "id damaged");
}

uint64_t tt_id_comm(const ncclUniqueId *ids, int nids)
{
    (void)ids;
    return (uint64_t)nids;
}

ncclResult_t tt_bootstrap_allgather(struct tt_bootstrap *bootstrap, const void *mine, size_t bytes,
                                    void *all_out)
{
    (void)bootstrap;
    memcpy(all_out, mine, bytes);
    return ncclSuccess;
}

void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap;
    (void)rc;
    (void)sentence;
}

const struct tt_range *tuttiHostRange(void)
{
    return NULL;
}

int tuttiHostDeviceInfo(int device, struct tt_device_info *info)
{
    info->nvml_index = device;
    return 0;
}

int tt_bootstrap_error_rank(const struct tt_bootstrap *bootstrap)
{
    (void)bootstrap;
    return -1;
}
