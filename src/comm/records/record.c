/* Records: who a rank is, where its memory lies, what it wants; and the checks and common values
 * that every rank derives from all of them in the same way. */
#include "comm/records/record.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/records/imports.h"
#include "device/device.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_namespace(uint64_t hash, const char *path)
{
    char text[32] = "";
    struct stat stat_buf;
    if (!stat(path, &stat_buf)) {
        snprintf(text, sizeof(text), "/%llu", (unsigned long long)stat_buf.st_ino);
    }
    return tt_hash_bytes(hash, text, strlen(text));
}

/* Ranks with equal identity are one host: same kernel and same network, or as the user says. */
static uint64_t host_identity(void)
{
    const char *given = tt_param_str("NCCL_HOSTID");
    char text[128] = "";
    if (given && *given) return tt_hash_bytes(TT_HASH_START, given, strlen(given));
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) gethostname(text, sizeof(text) - 1);
    return hash_namespace(tt_hash_bytes(TT_HASH_START, text, strlen(text)), "/proc/self/ns/net");
}

static uint32_t own_flags(const ncclConfig_t *config)
{
    uint32_t flags = 0;
    if (config->nvlsHostMode & ncclNvlsHostModeDisableTransport) flags |= TT_RECORD_NVLS_OFF;
    if (config->collnetEnable == 1) flags |= TT_RECORD_COLLNET;
    if (tt_param_bool("NCCL_P2P_DISABLE")) flags |= TT_RECORD_P2P_OFF;
    if (tt_param_bool("NCCL_SHM_DISABLE")) flags |= TT_RECORD_SHM_OFF;
    if (tt_param_is_set("NCCL_BUFFSIZE") && tt_param_int("NCCL_BUFFSIZE") != -2)
        flags |= TT_RECORD_SLICES_SET;
    if (!tt_param_bool("TUTTI_CHECK_MATCH")) flags |= TT_RECORD_NO_MATCH;
    const char *mode = tt_param_str("NCCL_CHECK_MODE");
    if (!mode || strcmp(mode, "DEBUG_GLOBAL") != 0) flags |= TT_RECORD_NO_GLOBAL;
    if (tt_param_bool("TUTTI_DETERMINISTIC")) flags |= TT_RECORD_DETERMINISTIC;
    if (tt_param_bool("NCCL_MULTI_RANK_GPU_ENABLE")) flags |= TT_RECORD_SHARED_DEVICE_OK;
    return flags;
}

ncclResult_t tt_record_fill(const struct tt_comm *comm, struct tt_comm_record *record_out)
{
    struct tt_device_info info;
    const struct tt_range *range = tuttiHostRange();
    memset(&info, 0, sizeof(info));
    int error = tuttiHostDeviceInfo(comm->member.device, &info);
    if (error) {
        return tt_fail(ncclUnhandledCudaError, "rank %d: device %d: error %d", comm->member.rank,
                       comm->member.device, error);
    }
    struct tt_segment_record segment = record_out->segment;
    *record_out = (struct tt_comm_record){
        .version = NCCL_VERSION_CODE,
        .flags = own_flags(&comm->config) | (comm->sharers_head ? 0 : TT_RECORD_ALONE),
        .host_id = host_identity(),
        .pid = (int32_t)getpid(),
        .pids = (uint32_t)hash_namespace(TT_HASH_START, "/proc/self/ns/pid"),
        .device = comm->member.device,
        .nvml_index = info.nvml_index,
        .segment = segment,
        .inbox_offset = range ? (uint64_t)((const char *)comm->inbox - range->base) : 0,
        .slice_bytes = (uint32_t)comm->tune.slice_bytes,
        .nchannels = comm->tune.nchannels,
        .imports = comm->imports ? tt_imports_hash(comm->imports) : 0,
        .nimports = comm->imports ? comm->imports->nfiles : 0,
        .edge_channels = comm->edge_channels,
        .ctas_least = comm->config.minCTAs,
        .cc = info.cc_major * 10 + info.cc_minor,
    };
    tt_cores_mask(tuttiHostCores(), &record_out->mask);
    tt_cores_quota(&record_out->quota);
    memcpy(record_out->bus_id, info.bus_id, sizeof(info.bus_id));
    memcpy(record_out->uuid, info.uuid, sizeof(info.uuid));
    return ncclSuccess;
}

int64_t tt_bus_number(const char *bus_id)
{
    char digits[17];
    int n = 0;
    for (; *bus_id && n < 16; bus_id++) {
        if (*bus_id != ':' && *bus_id != '.') digits[n++] = *bus_id;
    }
    digits[n] = 0;
    return strtoll(digits, NULL, 16);
}

/* ---- checks ---- */

static ncclResult_t check_versions(const struct tt_comm *comm)
{
    const struct tt_comm_record *first = tt_record_of(comm, 0);
    for (int r = 1; r < comm->member.nranks; r++) {
        const struct tt_comm_record *other = tt_record_of(comm, r);
        if (other->version == first->version) continue;
        int pids[2];
        const char *first_host = tt_bootstrap_peer(comm->bootstrap, 0, &pids[0]);
        const char *host = tt_bootstrap_peer(comm->bootstrap, r, &pids[1]);
        return tt_fail(ncclInvalidUsage,
                       "rank 0 on host %s (pid %d) runs version %u, rank %d on host %s (pid %d) "
                       "runs version %u",
                       first_host, pids[0], first->version, r, host, pids[1], other->version);
    }
    return ncclSuccess;
}

struct device { /* a device of a host, for sorting */
    uint64_t host_id;
    char bus_id[16];
    int rank;
};

static int compare_devices(const void *left, const void *right)
{
    const struct device *a = left, *b = right;
    if (a->host_id != b->host_id) return a->host_id < b->host_id ? -1 : 1;
    int bus = memcmp(a->bus_id, b->bus_id, sizeof(a->bus_id));
    return bus ? bus : a->rank - b->rank;
}

static ncclResult_t check_devices(const struct tt_comm *comm)
{
    int n = comm->member.nranks;
    struct device *devices = tt_calloc((size_t)n, sizeof(*devices));
    ncclResult_t rc = ncclSuccess;
    if (!devices) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (int r = 0; r < n; r++) {
        const struct tt_comm_record *record = tt_record_of(comm, r);
        devices[r].host_id = record->host_id;
        devices[r].rank = r;
        memcpy(devices[r].bus_id, record->bus_id, sizeof(record->bus_id));
    }
    qsort(devices, (size_t)n, sizeof(*devices), compare_devices);
    for (int i = 1; i < n && !rc; i++) {
        const struct device *a = &devices[i - 1], *b = &devices[i];
        if (a->host_id != b->host_id) continue;
        if (memcmp(a->bus_id, b->bus_id, sizeof(a->bus_id)) != 0) continue;
        uint32_t both = tt_record_of(comm, a->rank)->flags & tt_record_of(comm, b->rank)->flags;
        if (both & TT_RECORD_SHARED_DEVICE_OK) continue;
        rc = tt_fail(ncclInvalidUsage,
                     "ranks %d and %d both use device %.15s of one host: call "
                     "cudaSetDevice(LOCAL_RANK) first, or set NCCL_MULTI_RANK_GPU_ENABLE=1 to put "
                     "several ranks on one device; this process sees %d device(s) "
                     "(CUDA_VISIBLE_DEVICES, TUTTI_DEVICES)",
                     a->rank, b->rank, a->bus_id, tuttiHostDeviceCount());
    }
    free(devices);
    return rc;
}

ncclResult_t tt_record_check(const struct tt_comm *comm)
{
    ncclResult_t rc = check_versions(comm);
    return rc ? rc : check_devices(comm);
}

/* ---- what all ranks derive in the same way ---- */

struct host { /* hash set of hosts by identity, in order of appearance */
    uint64_t host_id;
    int node, ranks; /* node -1: free slot */
};

static struct host *find_host(struct host *hosts, size_t slots, uint64_t host_id)
{
    assert(slots > 0);
    size_t at = (size_t)(host_id * 0x9e3779b97f4a7c15ull >> 20) % slots;
    while (hosts[at].node >= 0 && hosts[at].host_id != host_id)
        at = (at + 1) % slots;
    return &hosts[at];
}

static void place_ranks(const struct tt_comm *comm, struct host *hosts, size_t slots,
                        struct tt_agreement *agreed)
{
    uint64_t own = tt_record_of(comm, comm->member.rank)->host_id;
    for (int r = 0; r < comm->member.nranks; r++) {
        const struct tt_comm_record *record = tt_record_of(comm, r);
        struct host *host = find_host(hosts, slots, record->host_id);
        if (host->node < 0) {
            *host = (struct host){.host_id = record->host_id, .node = agreed->nnodes++};
        }
        agreed->ranks[r].node = host->node;
        agreed->ranks[r].local_rank = host->ranks++;
        memcpy(agreed->ranks[r].bus_id, record->bus_id, sizeof(record->bus_id));
        if (host->ranks > agreed->most_local) agreed->most_local = host->ranks;
        /* what all ranks can do */
        if (record->nchannels < agreed->nchannels) agreed->nchannels = record->nchannels;
        if (record->edge_channels < agreed->edge_channels)
            agreed->edge_channels = record->edge_channels;
        if (record->slice_bytes < agreed->slice_bytes) agreed->slice_bytes = record->slice_bytes;
        if (!record->machine) agreed->any_machine = false;
        if (record->ctas_least > agreed->ctas_least) agreed->ctas_least = record->ctas_least;
        agreed->flags |= record->flags;
        if (record->tune != tt_record_of(comm, 0)->tune) agreed->same_tune = false;
    }
    agreed->local_rank = agreed->ranks[comm->member.rank].local_rank;
    agreed->local_ranks = find_host(hosts, slots, own)->ranks;
}

/* Cores per rank, by masks and by quotas. */
static ncclResult_t share_cores(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    size_t n = (size_t)comm->member.nranks, nnodes = (size_t)agreed->nnodes;
    struct tt_core_user *users = tt_calloc(n, sizeof(*users));
    int *cores = tt_calloc(nnodes, sizeof(int)), *ranks = tt_calloc(nnodes, sizeof(int));
    ncclResult_t rc = ncclSuccess;
    if (!users || !cores || !ranks) {
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
        goto out;
    }
    for (size_t k = 0; k < nnodes; k++)
        cores[k] = INT32_MAX;
    for (int quota = 0; quota < 2; quota++) {
        for (size_t r = 0; r < n; r++) {
            const struct tt_comm_record *record = tt_record_of(comm, (int)r);
            users[r].node = agreed->ranks[r].node;
            users[r].limit = quota ? record->quota : record->mask;
        }
        tt_cores_together(users, n, cores, agreed->nnodes);
    }
    agreed->cores = cores[0];
    for (size_t r = 0; r < n; r++)
        ranks[agreed->ranks[r].node]++;
    for (size_t k = 0; k < nnodes; k++) {
        if (cores[k] < agreed->cores) agreed->cores = cores[k];
        if (ranks[k] > cores[k]) agreed->oversubscribed = true;
    }
    int own = agreed->ranks[comm->member.rank].node;
    agreed->local_oversubscribed = ranks[own] > cores[own];
    if (agreed->local_oversubscribed) {
        tt_info(TT_LOG_INIT, "%d ranks of this host share %d core%s: waits give theirs away",
                ranks[own], cores[own], cores[own] == 1 ? "" : "s");
    }
out:
    free(users);
    free(cores);
    free(ranks);
    return rc;
}

/* Some other rank does without what this one has. */
static bool lacks(const struct tt_comm *comm, const struct tt_agreement *agreed, uint32_t flag,
                  const char *what)
{
    const uint32_t own = tt_record_of(comm, comm->member.rank)->flags;
    char name[TT_QUOTED_BYTES];
    int r = 0, pid = 0;
    if (!(agreed->flags & flag) || own & flag) return (agreed->flags & flag) != 0;
    while (!(tt_record_of(comm, r)->flags & flag))
        r++;
    const char *host = tt_bootstrap_peer(comm->bootstrap, r, &pid);
    tt_warn(
        "comm 0x%llx%s rank %d: %s here and not at rank %d on host %s (pid %d): no rank of this "
        "communicator compares calls so; all ranks need the same setting",
        (unsigned long long)comm->member.comm_id,
        tt_member_quoted(&comm->member, name, sizeof(name)), comm->member.rank, what, r, host, pid);
    return true;
}

void tt_record_agree_checks(struct tt_comm *comm, const struct tt_agreement *agreed)
{
    comm->no_match = lacks(comm, agreed, TT_RECORD_NO_MATCH, "TUTTI_CHECK_MATCH is on");
    comm->no_global = lacks(comm, agreed, TT_RECORD_NO_GLOBAL, "NCCL_CHECK_MODE is DEBUG_GLOBAL");
}

void tt_agreement_fini(struct tt_agreement *agreed)
{
    free(agreed->ranks);
    free(agreed->domain);
}

ncclResult_t tt_record_agree(const struct tt_comm *comm, struct tt_agreement *agreement_out)
{
    size_t n = (size_t)comm->member.nranks;
    const struct tt_comm_record *first = tt_record_of(comm, 0);
    const size_t slots = 2 * n + 1;
    struct host *hosts = tt_calloc(slots, sizeof(*hosts));
    struct tt_agreement agreed = {.slice_bytes = first->slice_bytes,
                                  .nchannels = first->nchannels,
                                  .edge_channels = first->edge_channels,
                                  .same_tune = first->tune != 0,
                                  .any_machine = true};
    agreed.ranks = tt_calloc(n, sizeof(*agreed.ranks));
    if (!hosts || !agreed.ranks) {
        free(hosts);
        free(agreed.ranks);
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    }
    for (size_t i = 0; i < slots; i++)
        hosts[i].node = -1;
    place_ranks(comm, hosts, slots, &agreed);
    agreed.least_local = agreed.most_local;
    for (size_t h = 0; h < slots; h++) {
        bool emptier = hosts[h].node >= 0 && hosts[h].ranks < agreed.least_local;
        if (emptier) agreed.least_local = hosts[h].ranks;
    }
    free(hosts);
    ncclResult_t rc = share_cores(comm, &agreed);
    if (rc) {
        free(agreed.ranks);
        return rc;
    }
    *agreement_out = agreed;
    return ncclSuccess;
}
