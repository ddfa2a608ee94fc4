/* Init: prepare what the record names (prepare.c), meet, derive what all ranks agree on, connect.
 * A rank that fails after the bootstrap reports it, so that no other rank waits for it. */
#include "comm/init.h"

#include "base/error.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "comm/records/fabric.h"
#include "comm/records/reach.h"
#include "device/device.h"
#include "transport/transport.h"
#include "watch/watch.h"

#include <stdio.h>
#include <string.h>

enum { STRICT_TIMEOUT_SEC = 120 }; /* as of operations, see watch.c */

int64_t tt_init_timeout_sec(void)
{
    bool strict = tt_param_bool("TUTTI_STRICT") && !tt_param_is_set("TUTTI_INIT_TIMEOUT");
    return strict ? STRICT_TIMEOUT_SEC : tt_param_int("TUTTI_INIT_TIMEOUT");
}

/* ---- bootstrap ---- */

static ncclResult_t join(struct tt_init *init, const struct tt_comm_record *record)
{
    struct tt_comm *comm = init->comm;
    unsigned char bytes[TT_RECORD_BYTES] = {0};
    const void *records = NULL;
    struct tt_bootstrap *bootstrap = NULL;
    ncclResult_t rc;
    memcpy(bytes, record, sizeof(*record));
    init->joined = true;
    if (init->parent && init->child.parent_ranks) {
        init->child.member = &comm->member;
        init->child.record = bytes;
        rc = tt_bootstrap_child(init->parent, &init->child, &bootstrap, &records);
        init->child.record = NULL; /* it ends with this function */
    } else {
        struct tt_bootstrap_config config = {.member = &comm->member,
                                             .ids = init->ids,
                                             .nids = init->nids,
                                             .record = bytes,
                                             .parent = init->parent,
                                             .thread = init->thread,
                                             .timeout_sec = tt_init_timeout_sec()};
        rc = tt_bootstrap_join(&config, &bootstrap, &records);
    }
    if (rc) return rc;
    tt_sharers_count(comm->member.nranks);
    comm->bootstrap = bootstrap;
    comm->someone_exited = tt_bootstrap_exit_flag(bootstrap);
    comm->records = records;
    tt_bootstrap_own_memory(bootstrap, comm->inbox, comm->inbox_bytes);
    return ncclSuccess;
}

/* ---- after the bootstrap ---- */

/* No rank may reach another one through memory. */
static bool without_memory(const struct tt_agreement *agreed)
{
    const uint32_t off = TT_RECORD_P2P_OFF | TT_RECORD_SHM_OFF;
    return (agreed->flags & off) == off;
}

static void fill_tune(struct tt_comm *comm, const struct tt_agreement *agreed, bool any_net)
{
    comm->tune = (struct tt_tune_env){
        .nranks = comm->member.nranks,
        .nnodes = agreed->nnodes,
        .ppn = agreed->most_local,
        .least_local = agreed->least_local,
        .nchannels = comm->topo.nchannels,
        .ncores = agreed->cores,
        .all_direct = !any_net && !(agreed->flags & TT_RECORD_P2P_OFF),
        .net_only = without_memory(agreed),
        .gpu = comm->gpu,
        .host = agreed->same_tune ? &comm->host : NULL,
        .oversubscribed = agreed->oversubscribed,
        .deterministic = (agreed->flags & TT_RECORD_DETERMINISTIC) != 0,
        .slice_bytes = agreed->slice_bytes,
        .inline_bytes = TT_SLOT_INLINE_BYTES,
    };
}

static bool needs_net(const struct tt_comm *comm, const struct tt_agreement *agreed)
{
    if (without_memory(agreed)) return comm->member.nranks > 1;
    for (int r = 0; r < comm->member.nranks; r++) {
        if (r != comm->member.rank && comm->peers[r].reach == TT_REACH_NET) return true;
    }
    return false;
}

static ncclResult_t connect_peers(struct tt_comm *comm, const struct tt_agreement *agreed)
{
    const struct tt_transport_config config = {
        .member = &comm->member,
        .peers = comm->peers,
        .bootstrap = comm->bootstrap,
        .net = comm->net,
        .nics = comm->nics,
        .group = comm->network_group,
        .nchannels = comm->edge_channels,
        .slice_bytes = agreed->slice_bytes,
        .allow_direct = !(agreed->flags & TT_RECORD_P2P_OFF),
        .allow_shm = !(agreed->flags & TT_RECORD_SHM_OFF),
        .oversubscribed = agreed->oversubscribed,
    };
    return tt_transport_create(&config, comm->inbox, &comm->transport);
}

static double lap_sec(uint64_t *since_nsec)
{
    uint64_t now = tt_now_nsec();
    double sec = (double)(now - *since_nsec) * 1e-9;
    *since_nsec = now;
    return sec;
}

/* Everything from the records to READY. */
static ncclResult_t connect_all(struct tt_init *init, struct tt_agreement *agreed)
{
    struct tt_comm *comm = init->comm;
    struct tt_reach_result reached = {false, false};
    uint64_t clock = tt_now_nsec();
    ncclResult_t rc = tt_reach_probe(comm, agreed, &reached);
    bool net = !rc && needs_net(comm, agreed);
    init->allgathers_sec = lap_sec(&clock);
    if (!rc) rc = tt_plugins_net(comm, net); /* its devices are part of the machine */
    if (!rc && !reached.any_memory) tt_networks_slices(comm, agreed);
    if (!rc) rc = tt_machine_plan(init, agreed);
    if (!rc) tt_machine_dump(init, agreed);
    init->topo_sec = lap_sec(&clock);
    if (rc) return rc;
    comm->all_memory = !reached.any_net && !without_memory(agreed);
    fill_tune(comm, agreed, reached.any_net);
    rc = tt_tune_check();
    if (!rc) rc = tt_plugins_open(comm);
    if (!rc) rc = tt_imports_agree(comm, agreed);
    if (!rc && (reached.any_net || without_memory(agreed))) rc = tt_networks_agree(comm, agreed);
    if (!rc) rc = tt_collnets_agree(comm, agreed, tt_init_timeout_sec());
    if (!rc) rc = connect_peers(comm, agreed);
    if (!rc) rc = tt_plugins_start(comm, net);
    if (!rc) rc = tt_param_check(); /* what one rank alone says of a file stops all */
    if (!rc && agreed->local_oversubscribed) tuttiHostOversubscribe();
    init->connections_sec = lap_sec(&clock);
    if (rc) return rc;
    tt_report_plan(comm, agreed);
    return tt_bootstrap_barrier(comm->bootstrap); /* all have come this far, or a rank says why */
}

static ncclResult_t start_watch(struct tt_comm *comm)
{
    const struct tt_watch_subject subject = {
        .member = &comm->member,
        .queue = comm->queue_used,
        .bootstrap = comm->bootstrap,
        .transport = comm->transport,
        .peers = comm->peers,
        .calls = comm->func_seq,
        .grouped = &comm->member.grouped,
        .compares = !comm->no_match,
        .phase = &comm->phase,
        .finalizes = TT_COMM_FINALIZING,
        .graph_refs = &comm->graph_refs,
        .graphs_nsec = &comm->graphs_nsec,
    };
    ncclResult_t rc = tt_watch_add(&subject, &comm->watch);
    if (!rc)
        tt_bootstrap_attach(comm->bootstrap, tt_transport_begun(comm->transport), tt_watch_event());
    return rc;
}

static ncclResult_t init_steps(struct tt_init *init)
{
    struct tt_comm *comm = init->comm;
    struct tt_comm_record record;
    struct tt_agreement agreed = {0};
    uint64_t clock = tt_now_nsec();
    memset(&record, 0, sizeof(record));
    ncclResult_t rc = tt_init_prepare(init, &record);
    init->alloc_sec = lap_sec(&clock);
    if (!rc) rc = join(init, &record);
    init->bootstrap_sec = lap_sec(&clock);
    if (rc) return rc;
    rc = tt_record_check(comm);
    if (!rc) rc = tt_record_agree(comm, &agreed);
    if (!rc) tt_record_agree_checks(comm, &agreed);
    if (agreed.flags & TT_RECORD_ALONE) tt_sharers_part(comm); /* all share, or none does */
    if (!rc) rc = tt_fabric_agree(comm, &agreed);
    if (!rc) rc = connect_all(init, &agreed);
    if (!rc) tt_bootstrap_init_done(comm->bootstrap);
    if (!rc) rc = start_watch(comm);
    if (rc) tt_bootstrap_fail(comm->bootstrap, rc, tt_last_error());
    tt_agreement_fini(&agreed);
    tt_machine_forget(init);
    return rc;
}

/* What the tree itself has reported, it has reported to all. */
static void report_abort(struct tt_comm *comm)
{
    char sentence[80];
    if (tt_bootstrap_error(comm->bootstrap, NULL)) return;
    snprintf(sentence, sizeof(sentence), "rank %d aborted the communicator at the end of its init",
             comm->member.rank);
    tt_bootstrap_fail(comm->bootstrap, tt_member_abort_code(&comm->member), sentence);
}

ncclResult_t tt_init_run(struct tt_init *init)
{
    struct tt_comm *comm = init->comm;
    uint64_t clock = tt_now_nsec();
    tt_report_version(comm);
    tt_report_start(comm);
    if (tuttiHostSetDevice(comm->member.device)) {
        return tt_fail(ncclUnhandledCudaError, "rank %d: device %d cannot be used",
                       comm->member.rank, comm->member.device);
    }
    struct tt_affinity *affinity = tt_affinity_enter(comm->member.device);
    struct tt_watch_init *listed = tt_watch_init_begin(&comm->member);
    ncclResult_t rc = init_steps(init);
    tt_watch_init_end(listed);
    tt_affinity_leave(affinity);
    init->total_sec = lap_sec(&clock);
    if (rc) return rc;
    /* pairs with the loads of `phase`: a thread that sees READY sees all of the communicator. An
     * abort raises its flag before it looks at the phase, here it is the other way round: one of
     * the two threads, in one order of all four, sees what the other did, and tells the ranks. */
    atomic_store(&comm->phase, TT_COMM_READY);
    if (atomic_load(&comm->aborted)) report_abort(comm);
    tt_report_complete(init);
    return ncclSuccess;
}

ncclResult_t tt_comm_init(struct tt_comm *comm, const struct tt_comm_request *request)
{
    struct tt_init init = {.comm = comm,
                           .ids = request->ids,
                           .nids = request->nids,
                           .thread = request->thread,
                           .parent = request->parent ? request->parent->bootstrap : NULL};
    int before = tuttiHostGetDevice();
    ncclResult_t rc = tt_init_run(&init);
    if (rc && !init.joined &&
        request->ids) { /* a rank that has joined has reported it to the others */
        bool aborted = tt_member_aborted(&comm->member);
        const struct tt_bootstrap_decline words = {.ids = request->ids,
                                                   .nids = request->nids,
                                                   .nranks = request->nranks,
                                                   .rank = request->rank,
                                                   .thread = request->thread,
                                                   .for_good = true,
                                                   .rc = rc,
                                                   .sentence = aborted ? "its init was aborted"
                                                                       : tt_last_error()};
        tt_bootstrap_decline(&words);
    }
    tuttiHostSetDevice(before);
    return rc;
}
