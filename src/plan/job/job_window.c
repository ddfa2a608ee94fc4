/* The job that registers a window: all ranks of the communicator meet in it (mem/window.c). */
#include "base/error.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "mem/mem.h"
#include "plan/group/group.h"
#include "plan/group/job.h"
#include "transport/transport.h"

#include <stdlib.h>

ncclResult_t tt_comm_registry(struct tt_comm *comm, struct tt_registry **registry_out)
{
    ncclResult_t rc = ncclSuccess;
    if (!comm->registry) rc = tt_registry_create(&comm->member, &comm->registry);
    *registry_out = comm->registry;
    return rc;
}

struct window_job {
    struct tt_job base;
    struct tt_window_call call;
};

static void window_job_destroy(struct tt_job *base)
{
    free(tt_container_of(base, struct window_job, base));
}

static ncclResult_t window_run(struct tt_job *base)
{
    struct window_job *job = tt_container_of(base, struct window_job, base);
    struct tt_comm *comm = base->comm;
    struct tt_window_peer *peers = tt_calloc((size_t)comm->member.nranks, sizeof(*peers));
    for (int r = 0; r < comm->member.nranks && peers; r++) {
        const struct tt_peer_reach *peer = &comm->peers[r];
        peers[r].same_process = peer->reach == TT_REACH_PROCESS;
        if (peer->reach == TT_REACH_MAPPED) peers[r].range_base = peer->range_base;
    }
    struct tt_window_request request = {.member = &comm->member,
                                        .bootstrap = comm->bootstrap,
                                        .peers = peers,
                                        .buff = job->call.buff,
                                        .bytes = job->call.bytes,
                                        .flags = job->call.flags};
    struct tt_registry *registry = NULL;
    request.rc = peers ? tt_comm_registry(comm, &registry)
                       : tt_fail(ncclSystemError, "ncclCommWindowRegister: out of memory");
    struct tt_window *window = NULL;
    atomic_store_explicit(&comm->member.meets, "ncclCommWindowRegister", memory_order_relaxed);
    ncclResult_t rc = tt_window_register(registry, &request, &window);
    atomic_store_explicit(&comm->member.meets, NULL, memory_order_relaxed);
    free(peers);
    if (rc) return rc;
    tt_transport_register(comm->transport, window, job->call.buff, job->call.bytes);
    *job->call.win = (ncclWindow_t)window;
    return ncclSuccess;
}

ncclResult_t tt_job_window(struct tt_comm *comm, const struct tt_window_call *call)
{
    struct window_job *job = tt_calloc(1, sizeof(*job));
    if (!job) { /* the others wait for this rank's part */
        ncclResult_t rc = tt_fail(ncclSystemError, "rank %d: ncclCommWindowRegister: out of memory",
                                  comm->member.rank);
        tt_bootstrap_fail_all(comm->bootstrap, rc, tt_last_error());
        return tt_group_error(rc);
    }
    job->base = (struct tt_job){.comm = comm,
                                .run = window_run,
                                .destroy = window_job_destroy,
                                .blocking = comm->config.blocking != 0};
    job->call = *call;
    ncclResult_t rc = tt_group_job(&job->base);
    return rc == ncclInProgress ? ncclSuccess : rc;
}
