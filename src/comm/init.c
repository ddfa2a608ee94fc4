/* Birth: prepare what the record names, meet, derive what all ranks agree on, connect.
 * A rank that fails after the meeting tells the others, so that nobody waits for it. */
#include "comm/init.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/fabric.h"
#include "comm/reach.h"
#include "device/device.h"
#include "transport/transport.h"
#include "watch/watch.h"

#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES 65536
#define SLICE_LEAST 4096
#define SLICE_MOST (1 << 20)
#define OWN_CHANNELS 2 /* one for each tree of the double tree */
#define MACHINE_INBOX_BYTES ((size_t)1 << 30)

/* ---- before the meeting ---- */

static size_t slice_wish(void)
{
    int64_t buffer_bytes = tt_param_int("NCCL_BUFFSIZE");
    if (!tt_param_is_set("NCCL_BUFFSIZE") || buffer_bytes == -2) return SLICE_BYTES;
    size_t wish =
        buffer_bytes > 0 ? (size_t)buffer_bytes / TT_SLOTS / SLICE_LEAST * SLICE_LEAST : 0;
    size_t slice = tt_min_size(tt_max_size(wish, SLICE_LEAST), SLICE_MOST);
    if (slice != wish) {
        tt_warn("NCCL_BUFFSIZE is %lld bytes, accepted are %d to %d: %zu it is",
                (long long)buffer_bytes, TT_SLOTS * SLICE_LEAST, TT_SLOTS * SLICE_MOST,
                TT_SLOTS * slice);
    }
    return slice;
}

/* A limit on channels in the environment, by its name or the older one. */
static int channels_limit(const char *name, const char *older, int fallback)
{
    const char *set = tt_param_is_set(name) ? name : older;
    int64_t value = tt_param_int(set);
    if (value >= 1 && value <= TT_MAX_CHANNELS) return (int)value;
    int mended = value < 1 ? fallback : TT_MAX_CHANNELS;
    if (tt_param_is_set(set) && value != -2) {
        tt_warn("%s is %lld, which is no number from 1 to %d: %d it is", set, (long long)value,
                TT_MAX_CHANNELS, mended);
    }
    return mended;
}

static int channels_most(const ncclConfig_t *config)
{
    int most = channels_limit("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", TT_MAX_CHANNELS);
    return most < config->maxCTAs ? most : config->maxCTAs;
}

static int channels_least(const ncclConfig_t *config)
{
    int least = channels_limit("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", 1);
    return least > config->minCTAs ? least : config->minCTAs;
}

static int channels_wish(const ncclConfig_t *config)
{
    int most = channels_most(config), least = channels_least(config);
    int wish = least > OWN_CHANNELS ? least : OWN_CHANNELS;
    return wish > most ? most : wish;
}

/* Room for the channels of a machine: as many as there may be (NCCL raises to the least last), and
 * slices that the control memory has room for. What is not used is never touched. */
static void make_room(struct tt_comm *comm)
{
    int most = channels_most(&comm->config), least = channels_least(&comm->config);
    struct tt_tune_env *tune = &comm->tune;
    int n = comm->member.nranks;
    tune->nchannels = most > least ? most : least;
    while (tt_transport_inbox_bytes(n, tune->nchannels, tune->slice_bytes) > MACHINE_INBOX_BYTES &&
           tune->slice_bytes > SLICE_LEAST)
        tune->slice_bytes /= 2;
}

static ncclResult_t prepare(struct tt_birth *birth, struct tt_comm_record *record)
{
    struct tt_comm *comm = birth->comm;
    uint64_t machine = 0;
    ncclResult_t rc = tt_machine_read(birth, &machine);
    if (rc) return rc;
    birth->flat_channels = comm->tune.nchannels = channels_wish(&comm->config);
    comm->tune.slice_bytes = slice_wish();
    if (birth->machine) make_room(comm);
    comm->inbox_bytes =
        tt_transport_inbox_bytes(comm->member.nranks, comm->tune.nchannels, comm->tune.slice_bytes);
    int error = tuttiHostControlAlloc(comm->inbox_bytes, &comm->inbox);
    if (error) {
        comm->inbox = NULL;
        return tt_fail(ncclSystemError,
                       "rank %d: %zu bytes of control memory for %d ranks and %d channels: error "
                       "%d; fewer channels (NCCL_MAX_CTAS) or a smaller NCCL_BUFFSIZE need less",
                       comm->member.rank, comm->inbox_bytes, comm->member.nranks,
                       comm->tune.nchannels, error);
    }
    rc = tt_local_serve(&record->local);
    if (rc) return rc;
    comm->serves_range = true;
    rc = tt_record_fill(comm, record);
    record->machine = machine;
    tt_fabric_fill(record);
    tt_tune_host_load(&comm->host, &record->tune);
    return rc;
}

/* ---- the meeting ---- */

static ncclResult_t meet(struct tt_birth *birth, const struct tt_comm_record *record)
{
    struct tt_comm *comm = birth->comm;
    unsigned char bytes[TT_RECORD_BYTES] = {0};
    const void *records = NULL;
    struct tt_bootstrap *bootstrap = NULL;
    ncclResult_t rc;
    memcpy(bytes, record, sizeof(*record));
    if (birth->parent) {
        birth->child.member = &comm->member;
        birth->child.record = bytes;
        rc = tt_bootstrap_child(birth->parent, &birth->child, &bootstrap, &records);
        birth->child.record = NULL; /* it ends with this function */
    } else {
        struct tt_bootstrap_config config = {.member = &comm->member,
                                             .ids = birth->ids,
                                             .nids = birth->nids,
                                             .record = bytes,
                                             .timeout_sec = tt_param_int("TUTTI_INIT_TIMEOUT")};
        rc = tt_bootstrap_join(&config, &bootstrap, &records);
    }
    if (rc) return rc;
    comm->bootstrap = bootstrap;
    comm->records = records;
    tt_bootstrap_entrust(bootstrap, comm->inbox, comm->inbox_bytes);
    return ncclSuccess;
}

/* ---- after the meeting ---- */

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
        .gpu = comm->gpu,
        .host = agreed->same_tune ? &comm->host : NULL,
        .crowded = agreed->crowded,
        .deterministic = (agreed->flags & TT_RECORD_DETERMINISTIC) != 0,
        .slice_bytes = agreed->slice_bytes,
        .inline_bytes = TT_SLOT_INLINE_BYTES,
    };
}

static bool needs_net(const struct tt_comm *comm, const struct tt_agreement *agreed)
{
    const uint32_t off = TT_RECORD_P2P_OFF | TT_RECORD_SHM_OFF;
    if ((agreed->flags & off) == off) return comm->member.nranks > 1;
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
        .nchannels = comm->topo.nchannels,
        .slice_bytes = agreed->slice_bytes,
        .allow_direct = !(agreed->flags & TT_RECORD_P2P_OFF),
        .allow_shm = !(agreed->flags & TT_RECORD_SHM_OFF),
        .crowded = agreed->crowded,
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
static ncclResult_t settle(struct tt_birth *birth, const struct tt_agreement *agreed)
{
    struct tt_comm *comm = birth->comm;
    struct tt_reach_result reached = {false};
    uint64_t clock = tt_now_nsec();
    ncclResult_t rc = tt_reach_probe(comm, agreed, &reached);
    bool net = !rc && needs_net(comm, agreed);
    birth->allgathers_sec = lap_sec(&clock);
    if (!rc) rc = tt_plugins_net(comm, net); /* its devices are part of the machine */
    if (!rc) rc = tt_machine_plan(birth, agreed);
    if (!rc) tt_machine_dump(birth, agreed);
    birth->topo_sec = lap_sec(&clock);
    if (rc) return rc;
    fill_tune(comm, agreed, reached.any_net);
    rc = tt_tune_check();
    if (!rc) rc = tt_plugins_open(comm);
    if (!rc) rc = connect_peers(comm, agreed);
    if (!rc) rc = tt_plugins_start(comm, net);
    if (!rc) tuttiHostCrowd(agreed->most_local);
    birth->connections_sec = lap_sec(&clock);
    if (rc) return rc;
    tt_report_plan(comm, agreed);
    return tt_bootstrap_barrier(comm->bootstrap); /* all have come this far, or somebody says why */
}

static ncclResult_t start_watch(struct tt_comm *comm)
{
    const struct tt_watch_subject subject = {
        .member = &comm->member,
        .order = comm->order_used,
        .bootstrap = comm->bootstrap,
        .transport = comm->transport,
        .begun = tt_transport_begun,
        .patience = tt_transport_patience,
    };
    const struct tt_bootstrap_hooks hooks = {
        .begun = tt_transport_begun, .transport = comm->transport, .exited = tt_watch_wake};
    tt_bootstrap_hook(comm->bootstrap, &hooks);
    return tt_watch_add(&subject, &comm->watch);
}

static ncclResult_t birth_steps(struct tt_birth *birth)
{
    struct tt_comm *comm = birth->comm;
    struct tt_comm_record record;
    struct tt_agreement agreed = {0};
    uint64_t clock = tt_now_nsec();
    memset(&record, 0, sizeof(record));
    ncclResult_t rc = prepare(birth, &record);
    birth->alloc_sec = lap_sec(&clock);
    if (!rc) rc = meet(birth, &record);
    birth->bootstrap_sec = lap_sec(&clock);
    if (rc) return rc;
    rc = tt_record_check(comm);
    if (!rc) rc = tt_record_agree(comm, &agreed);
    if (!rc) rc = tt_fabric_agree(comm, &agreed);
    if (!rc) rc = settle(birth, &agreed);
    if (!rc) tt_bootstrap_settle(comm->bootstrap);
    if (!rc) rc = start_watch(comm);
    if (rc) tt_bootstrap_fail(comm->bootstrap, rc, tt_last_error());
    tt_agreement_fini(&agreed);
    tt_machine_forget(birth);
    return rc;
}

ncclResult_t tt_birth_run(struct tt_birth *birth)
{
    struct tt_comm *comm = birth->comm;
    uint64_t clock = tt_now_nsec();
    tt_report_version(comm);
    tt_report_start(comm);
    if (tuttiHostSetDevice(comm->member.device)) {
        return tt_fail(ncclUnhandledCudaError, "rank %d: device %d cannot be used",
                       comm->member.rank, comm->member.device);
    }
    struct tt_affinity *affinity = tt_affinity_enter(comm->member.device);
    ncclResult_t rc = birth_steps(birth);
    tt_affinity_leave(affinity);
    birth->total_sec = lap_sec(&clock);
    if (rc) return rc;
    /* pairs with the acquire loads of `phase`: whoever sees READY sees all of the communicator */
    atomic_store_explicit(&comm->phase, TT_COMM_READY, memory_order_release);
    tt_report_complete(birth);
    return ncclSuccess;
}

ncclResult_t tt_comm_init(struct tt_comm *comm, const struct tt_comm_request *request)
{
    struct tt_birth birth = {.comm = comm, .ids = request->ids, .nids = request->nids};
    int before = tuttiHostGetDevice();
    ncclResult_t rc = tt_birth_run(&birth);
    tuttiHostSetDevice(before);
    return rc;
}
