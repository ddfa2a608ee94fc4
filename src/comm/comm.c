/* Storage, state and end of a communicator. `phase` says where it is in its life, `member.abort`
 * whether it is broken; both may be read by any thread. */
#include "comm/comm.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "comm/records/reach.h"
#include "device/device.h"
#include "mem/mem.h"
#include "transport/transport.h"
#include "watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum tt_comm_phase phase_of(const struct tt_comm *comm)
{
    return (enum tt_comm_phase)atomic_load_explicit(&comm->phase, memory_order_acquire);
}

/* ---- init and end of the storage ---- */

static ncclResult_t own_text(const char *text, char **copy_out)
{
    if (!text) return ncclSuccess;
    *copy_out = strdup(text);
    return *copy_out ? ncclSuccess : tt_fail(ncclSystemError, "communicator: out of memory");
}

ncclResult_t tt_comm_alloc(const struct tt_comm_request *request, struct tt_comm **comm_out)
{
    ncclConfig_t config;
    ncclResult_t rc = tt_config_parse(request->config, request->inherit, &config);
    if (rc) return rc;
    struct tt_comm *comm = tt_sharers_alloc();
    if (!comm) return tt_fail(ncclSystemError, "%s: out of memory", request->func);
    comm->magic = TT_COMM_MAGIC;
    comm->func = request->func;
    comm->process = getpid();
    comm->config = config;
    comm->queue_used = &comm->queue;
    atomic_init(&comm->state, ncclSuccess);
    atomic_init(&comm->phase, TT_COMM_INIT);
    rc = own_text(config.commName, &comm->name);
    if (!rc) rc = own_text(config.netName, &comm->net_name);
    comm->config.commName = comm->name;
    comm->config.netName = comm->net_name;
    if (comm->config.maxP2pPeers == NCCL_CONFIG_UNDEF_INT ||
        comm->config.maxP2pPeers > request->nranks) {
        comm->config.maxP2pPeers = request->nranks;
    }
    comm->member.rank = request->rank;
    comm->member.nranks = request->nranks;
    comm->member.device = request->device;
    comm->member.comm_id = request->ids ? tt_id_comm(request->ids, request->nids) : 0;
    comm->member.name = comm->name ? comm->name : "";
    if (rc) {
        tt_comm_free(comm);
        return rc;
    }
    const struct tt_hold held = {
        .owner = comm,
        .device = comm->member.device,
        .why = "a communicator is on it: call ncclCommDestroy or ncclCommAbort before"};
    tuttiHostHold(&held);
    *comm_out = comm;
    return ncclSuccess;
}

void tt_comm_hide(struct tt_comm *comm)
{
    tt_sharers_hide(comm);
    tt_watch_remove(comm->watch);
    comm->watch = NULL;
}

void tt_comm_free(struct tt_comm *comm)
{
    if (!comm) return;
    bool lived = phase_of(comm) != TT_COMM_INIT;
    bool aborted = atomic_load(&comm->aborted) || tt_member_aborted(&comm->member);
    tt_comm_hide(comm);
    tt_plugins_stop(comm);
    if (comm->bootstrap) tt_bootstrap_attach(comm->bootstrap, NULL, -1);
    tt_transport_destroy(comm->transport);
    tt_plugins_close(comm);
    tt_reach_release(comm);
    if (comm->bootstrap) {
        tt_bootstrap_leave(comm->bootstrap); /* frees the inbox when all have left */
    } else if (comm->inbox) {
        tuttiHostControlFree(comm->inbox, comm->inbox_bytes);
    }
    if (comm->serves_range) tt_segment_unpublish();
    tt_topo_plan_free(&comm->topo);
    tt_imports_destroy(comm->imports);
    free(comm->gpu);
    free(comm->nics);
    if (lived) tt_report_end(comm, aborted ? "Abort COMPLETE" : "Destroy COMPLETE");
    free(comm->name);
    free(comm->net_name);
    tt_shrinks_free(comm);
    tt_sharers_free(comm);
}

/* ---- ends ---- */

ncclResult_t tt_comm_finalize(struct tt_comm *comm)
{
    ncclResult_t rc = tt_comm_state(comm);
    if (rc && rc != ncclInProgress) return rc; /* in progress: this very call, in the background */
    rc = tt_watch_close(comm->watch);
    if (rc) return rc;
    atomic_store_explicit(&comm->phase, TT_COMM_FINALIZED, memory_order_release);
    return ncclSuccess;
}

void tt_comm_abort(struct tt_comm *comm, ncclResult_t rc)
{
    if (phase_of(comm) != TT_COMM_INIT) tt_report_end(comm, "Abort START");
    tt_sharers_abort(comm, rc); /* a thread in init sees the flag and reports it to the others */
}

ncclResult_t tt_comm_revoke(struct tt_comm *comm)
{
    tt_report_end(comm, "Revoke START");
    if (phase_of(comm) == TT_COMM_INIT) { /* ends the init; only destroy and abort are left */
        tt_comm_abort(comm, ncclInvalidUsage);
        return ncclSuccess;
    }
    tt_bootstrap_revoke(comm->bootstrap);
    tt_member_abort(&comm->member, ncclInvalidUsage);
    tt_sharers_drain(comm);
    atomic_store_explicit(&comm->phase, TT_COMM_REVOKED, memory_order_release);
    atomic_store(&comm->state, ncclSuccess);
    tt_member_resume(&comm->member, UINT64_MAX); /* graphs that are launched later, too */
    tt_report_end(comm, "Revoke COMPLETE, result 0");
    return ncclSuccess;
}

/* ---- state ---- */

ncclResult_t tt_comm_state(struct tt_comm *comm)
{
    ncclResult_t rc = (ncclResult_t)atomic_load_explicit(&comm->state, memory_order_acquire);
    if (rc) return rc;
    if (phase_of(comm) == TT_COMM_REVOKED) return ncclSuccess;
    return tt_member_abort_code(&comm->member);
}

static ncclResult_t not_ready(const struct tt_comm *comm, const char *func)
{
    switch (phase_of(comm)) {
    case TT_COMM_INIT:
        return tt_fail(ncclInvalidArgument,
                       "%s: rank %d: the communicator is still being made; poll "
                       "ncclCommGetAsyncError until it is done",
                       func, comm->member.rank);
    case TT_COMM_DESTROYED:
        return tt_fail(ncclInvalidArgument, "%s: comm %p was destroyed or aborted before", func,
                       (const void *)comm);
    case TT_COMM_REVOKED:
        return tt_fail(ncclInvalidUsage, "%s: rank %d: the communicator was revoked", func,
                       comm->member.rank);
    default:
        return tt_fail(ncclInvalidUsage, "%s: rank %d: the communicator was finalized", func,
                       comm->member.rank);
    }
}

void tt_comm_show(struct tt_comm *comm, ncclResult_t rc, const char *why)
{
    if (rc && rc != ncclInProgress) tt_member_keep_why(&comm->member, why);
    atomic_store_explicit(&comm->state, rc, memory_order_release);
}

void tt_comm_recall(struct tt_comm *comm, ncclResult_t rc)
{
    char why[TT_WHY_BYTES];
    if (rc == ncclSuccess || rc == ncclInProgress) return;
    tt_member_why(&comm->member, why);
    if (!*why) return;
    const char *last = tt_last_error();
    if (strstr(last, why)) {
        tt_error_keep("%s", last); /* the thread's own from now on */
    } else {
        tt_error_keep("comm 0x%llx rank %d: %s", (unsigned long long)comm->member.comm_id,
                      comm->member.rank, why);
    }
}

ncclResult_t tt_comm_check_state(struct tt_comm *comm, const char *func)
{
    char why[TT_WHY_BYTES];
    ncclResult_t rc = tt_comm_state(comm);
    if (rc == ncclInProgress) {
        return tt_fail(ncclInvalidArgument,
                       "%s: rank %d: an earlier call is still in progress; poll "
                       "ncclCommGetAsyncError until it is done",
                       func, comm->member.rank);
    }
    if (!rc) return ncclSuccess;
    tt_member_why(&comm->member, why);
    return tt_fail(rc, "%s: rank %d: communicator 0x%llx is broken: %s", func, comm->member.rank,
                   (unsigned long long)comm->member.comm_id, *why ? why : tt_result_text(rc));
}

/* A rank exited and never takes part again: the call returns that error, and the communicator is
 * broken from now on, though what runs may end well. */
static ncclResult_t exited(struct tt_comm *comm, const char *func)
{
    char sentence[TT_WHY_BYTES];
    if (!tt_bootstrap_exited(comm->bootstrap, sentence, sizeof(sentence))) return ncclSuccess;
    tt_comm_show(comm, ncclRemoteError, sentence);
    return tt_comm_check_state(comm, func);
}

ncclResult_t tt_comm_ended(const struct tt_comm *comm, const char *func)
{
    return tt_fail(ncclInvalidArgument,
                   "%s: comm %p was destroyed or aborted before, or another thread does it now",
                   func, (const void *)comm);
}

ncclResult_t tt_comm_async_error(struct tt_comm *comm, bool busy, bool pinned, const char *func,
                                 ncclResult_t *rc_out)
{
    if (!pinned && !tt_sharers_keep(comm)) return tt_comm_ended(comm, func);
    *rc_out = busy ? ncclInProgress : tt_comm_state(comm);
    tt_comm_recall(comm, *rc_out);
    if (!pinned) tt_sharers_release();
    return ncclSuccess;
}

/* Slow half of tt_comm_check(): something is not as usual. */
static __attribute__((noinline)) ncclResult_t explain(struct tt_comm *comm, const char *func)
{
    if (!comm) return tt_fail(ncclInvalidArgument, "%s: comm is NULL", func);
    if (comm->magic != TT_COMM_MAGIC) {
        return tt_fail(ncclInvalidArgument,
                       "%s: comm %p was destroyed or aborted before, or never was a communicator",
                       func, (const void *)comm);
    }
    enum tt_comm_phase phase = phase_of(comm);
    ncclResult_t rc = tt_comm_state(comm);
    bool failed_init = rc && phase == TT_COMM_INIT;
    if (phase != TT_COMM_READY && rc != ncclInProgress && !failed_init)
        return not_ready(comm, func);
    return rc ? tt_comm_check_state(comm, func) : exited(comm, func);
}

ncclResult_t tt_comm_check(struct tt_comm *comm, const char *func) /* hot */
{
    return tt_comm_is_usual(comm) ? ncclSuccess : explain(comm, func);
}
