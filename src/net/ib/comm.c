/* A connection's ports and memory. */
#include "net/ib/comm.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ncclResult_t register_own(struct ib_comm *comm, int i, void *at, size_t bytes,
                                 struct ibv_mr **mr_out)
{
    /* in order: the receiver's table says that an entry is complete by its last word */
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ib_port *port = comm->device->ports[i];
    *mr_out = tt_ib()->verbs.reg_mr(port->pd, at, bytes, access);
    if (*mr_out) return ncclSuccess;
    return tt_fail(ncclSystemError,
                   "NET/IB: %s cannot register %zu bytes of memory: %m; is the limit of locked "
                   "memory (ulimit -l) too low?",
                   port->name, bytes);
}

static ncclResult_t open_port(struct ib_comm *comm, int i)
{
    struct ib_port *port = comm->device->ports[i];
    ncclResult_t rc = tt_ib_port_acquire(port);
    if (rc) return rc;
    comm->nports++;
    comm->fatal[i] = atomic_load_explicit(&port->fatal, memory_order_relaxed);
    rc = register_own(comm, i, comm->table, sizeof(*comm->table), &comm->table_mrs[i]);
    if (!rc) rc = register_own(comm, i, comm->record, sizeof(*comm->record), &comm->record_mrs[i]);
    return rc;
}

/* What the other end gets of a port. */
static ncclResult_t describe(struct ib_comm *comm, int i)
{
    const struct ib_port *port = comm->device->ports[i];
    struct ib_port_words *words = &comm->own.ports[i];
    int index;
    memcpy(words->name, port->name, sizeof(words->name) - 1);
    words->lid = port->attr.lid;
    words->mtu = (uint8_t)port->attr.active_mtu;
    words->ethernet = port->ethernet;
    words->number = port->number;
    comm->own.rkeys[i] = comm->sending ? comm->table_mrs[i]->rkey : comm->record_mrs[i]->rkey;
    if (tt_ib_gid_choose(port, &index, &words->gid) || !port->ethernet) return ncclSuccess;
    return tt_fail(ncclSystemError,
                   "NET/IB: %s:%d has no address (GID) as NCCL_IB_ADDR_FAMILY, "
                   "NCCL_IB_ROCE_VERSION_NUM and NCCL_IB_ADDR_RANGE ask for; NCCL_IB_GID_INDEX "
                   "names one by its number",
                   port->name, port->number);
}

/* Zeroed, in pages of its own: a child that a process forks does not get registered ones. */
static void *pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = tt_round_up(bytes, page);
    void *at = aligned_alloc(page, whole);
    if (at) memset(at, 0, whole);
    return at;
}

ncclResult_t tt_ib_comm_create(struct ib_context *context, int dev, bool sending,
                               struct ib_comm **comm_out)
{
    struct ib_comm *comm = tt_calloc(1, sizeof(*comm));
    if (!comm) return tt_fail(ncclSystemError, "NET/IB: out of memory");
    ncclResult_t rc = ncclSuccess;
    comm->sending = sending;
    comm->context = context;
    comm->device = tt_ib_device(dev);
    comm->number = 1;
    comm->own.version = IB_VERSION;
    comm->own.rank = context->rank;
    comm->own.nports = (uint32_t)comm->device->nports;
    comm->own.failover = tt_param_bool("NCCL_IB_RESILIENCY_PORT_FAILOVER");
    comm->own.qps_per_port = (int32_t)tt_param_int("NCCL_IB_QPS_PER_CONNECTION");
    comm->own.split = tt_param_bool("NCCL_IB_SPLIT_DATA_ON_QPS");
    comm->table = pages(sizeof(*comm->table));
    comm->record = pages(sizeof(*comm->record));
    if (!comm->table || !comm->record) rc = tt_fail(ncclSystemError, "NET/IB: out of memory");
    for (int i = 0; !rc && i < comm->device->nports; i++) {
        rc = open_port(comm, i);
        if (!rc) rc = describe(comm, i);
    }
    comm->own.addr = sending ? (uintptr_t)comm->table : (uintptr_t)comm->record;
    if (rc) {
        tt_ib_comm_destroy(comm);
        return rc;
    }
    *comm_out = comm;
    return ncclSuccess;
}

void tt_ib_comm_destroy(struct ib_comm *comm)
{
    if (!comm) return;
    for (int i = 0; i < comm->nqps; i++)
        if (comm->qps[i].qp) tt_ib()->verbs.destroy_qp(comm->qps[i].qp);
    for (int i = 0; i < comm->nports; i++) {
        if (comm->cqs[i]) tt_ib()->verbs.destroy_cq(comm->cqs[i]);
        if (comm->table_mrs[i]) tt_ib()->verbs.dereg_mr(comm->table_mrs[i]);
        if (comm->record_mrs[i]) tt_ib()->verbs.dereg_mr(comm->record_mrs[i]);
        tt_ib_port_release(comm->device->ports[i]);
    }
    if (comm->to.comm) tt_net_socket.closeSend(comm->to.comm);
    if (comm->from.comm) tt_net_socket.closeRecv(comm->from.comm);
    free(comm->table);
    free(comm->record);
    free(comm);
}

ncclResult_t tt_ib_comm_fail(struct ib_comm *comm, ncclResult_t rc, const char *what)
{
    if (comm->error) return comm->error;
    comm->error = rc;
    return tt_fail(rc, "NET/IB: rank %d %s rank %d over %s (there %s): %s", comm->context->rank,
                   comm->sending ? "to" : "from", comm->peer.rank, comm->device->name,
                   comm->peer.ports[0].name, what);
}

struct ib_request *tt_ib_request_take(struct ib_comm *comm)
{
    for (size_t i = 0; i < TT_LEN(comm->requests); i++) {
        struct ib_request *request = &comm->requests[i];
        if (request->comm) continue;
        *request = (struct ib_request){.comm = comm};
        return request;
    }
    return NULL;
}

int tt_ib_qp_alive(const struct ib_comm *comm, int qp)
{
    for (int i = 0; i < comm->nqps; i++) {
        int at = (qp + i) % comm->nqps;
        if (!comm->qps[at].dead) return at;
    }
    return -1;
}
