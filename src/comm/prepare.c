/* Init before the bootstrap: what this rank has and wants, from its variables, config and machine
 * file, goes into its record; the control memory that peers will write to is there. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/init.h"
#include "comm/records/fabric.h"
#include "comm/records/imports.h"
#include "device/device.h"
#include "mem/mem.h"
#include "transport/transport.h"

#define SLICE_BYTES 65536
#define SLICE_LEAST 4096
#define SLICE_MOST (1 << 20)
#define OWN_CHANNELS 2 /* one for each tree of the double tree */
#define MACHINE_INBOX_BYTES ((size_t)1 << 30)

static size_t slice_requested(void)
{
    int64_t buffer_bytes = tt_param_int("NCCL_BUFFSIZE");
    if (!tt_param_is_set("NCCL_BUFFSIZE") || buffer_bytes == -2) return SLICE_BYTES;
    size_t requested =
        buffer_bytes > 0 ? (size_t)buffer_bytes / TT_SLOTS / SLICE_LEAST * SLICE_LEAST : 0;
    size_t slice = tt_min_size(tt_max_size(requested, SLICE_LEAST), SLICE_MOST);
    if (slice != requested) {
        tt_warn_setting("NCCL_BUFFSIZE is %lld bytes, accepted are %d to %d: %zu it is",
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
        tt_warn_setting("%s is %lld, which is no number from 1 to %d: %d it is", set,
                        (long long)value, TT_MAX_CHANNELS, mended);
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

static int channels_requested(const ncclConfig_t *config)
{
    int most = channels_most(config), least = channels_least(config);
    int requested = least > OWN_CHANNELS ? least : OWN_CHANNELS;
    return requested > most ? most : requested;
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

/* A child that shares its parent's resources has no more channels than that (spec topology,
 * section 8.3). */
static void stay_within_parent(struct tt_init *init)
{
    struct tt_comm *comm = init->comm;
    if (!comm->sharers_head) return;
    int most = comm->parent->topo.nchannels;
    if (init->flat_channels > most) init->flat_channels = most;
    if (comm->tune.nchannels > most) comm->tune.nchannels = most;
}

/* Edges of the rings' channels, and of as many more as a program from a file needs, within the
 * user's limits and the control memory. */
static void make_room_for_imports(struct tt_comm *comm)
{
    comm->edge_channels = comm->tune.nchannels;
    bool splits = comm->config.collnetEnable == 1; /* what goes up there from what comes down */
    if (splits && comm->edge_channels < 2 && !comm->sharers_head) comm->edge_channels = 2;
    comm->imports = tt_imports_read(&comm->member);
    if (!comm->imports) return;
    int want = tt_imports_channels(comm->imports), most = channels_most(&comm->config);
    if (comm->sharers_head && comm->parent->edge_channels < most)
        most = comm->parent->edge_channels;
    if (want > most) want = most;
    while (want > comm->edge_channels &&
           tt_transport_inbox_bytes(comm->member.nranks, want, comm->tune.slice_bytes) >
               MACHINE_INBOX_BYTES)
        want--;
    if (want > comm->edge_channels) comm->edge_channels = want;
}

ncclResult_t tt_init_prepare(struct tt_init *init, struct tt_comm_record *record)
{
    struct tt_comm *comm = init->comm;
    uint64_t machine = 0;
    ncclResult_t rc = tt_machine_read(init, &machine);
    if (rc) return rc;
    init->flat_channels = comm->tune.nchannels = channels_requested(&comm->config);
    comm->tune.slice_bytes = slice_requested();
    if (init->machine) make_room(comm);
    stay_within_parent(init);
    make_room_for_imports(comm);
    comm->inbox_bytes =
        tt_transport_inbox_bytes(comm->member.nranks, comm->edge_channels, comm->tune.slice_bytes);
    int error = tuttiHostControlAlloc(comm->inbox_bytes, &comm->inbox);
    if (error) {
        comm->inbox = NULL;
        return tt_fail(ncclSystemError,
                       "rank %d: %zu bytes of control memory for %d ranks and %d channels: error "
                       "%d; fewer channels (NCCL_MAX_CTAS) or a smaller NCCL_BUFFSIZE need less",
                       comm->member.rank, comm->inbox_bytes, comm->member.nranks,
                       comm->edge_channels, error);
    }
    rc = tt_segment_publish(&record->segment);
    if (rc) return rc;
    comm->serves_range = true;
    rc = tt_record_fill(comm, record);
    record->machine = machine;
    record->flags |= tt_fabric_flags();
    tt_fabric_fill(record);
    tt_tune_host_load(&comm->host, &record->tune);
    return rc;
}
