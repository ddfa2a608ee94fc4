/* Machines that the devices emulate (NCCL_TOPO_FILE): a file is read before the bootstrap and
 * completed after it; when all ranks have one, rings and trees come from the search in them. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/init.h"
#include "plugin/plugin.h"
#include "topo/file/complete.h"
#include "transport/transport.h"
#include "tune/gpu_model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that cannot be opened is a line in the log, as in NCCL; one that makes no sense is an
 * error. */
ncclResult_t tt_machine_read(struct tt_init *init, uint64_t *hash_out)
{
    char path[TT_MACHINE_FILE_BYTES];
    *hash_out = 0;
    if (!tt_param_machine_file(path)) return ncclSuccess;
    struct stat status;
    if (access(path, R_OK) || stat(path, &status) || !S_ISREG(status.st_mode)) {
        tt_info(TT_LOG_INIT | TT_LOG_GRAPH, "machine file %s cannot be opened: going on without it",
                path);
        return ncclSuccess;
    }
    ncclResult_t rc = tt_topo_partial_read(path, &init->machine);
    if (rc) return rc;
    tt_topo_env_check();
    char *text = tt_topo_file_print(init->machine);
    if (!text) return tt_fail(ncclSystemError, "machine file %s: out of memory", path);
    *hash_out = tt_hash_bytes(TT_HASH_START, text, strlen(text));
    free(text);
    return ncclSuccess;
}

static uint64_t plan_hash(const struct tt_topo_plan *plan)
{
    size_t n = (size_t)plan->nranks;
    uint64_t hash = tt_hash_bytes(TT_HASH_START, &plan->nchannels, sizeof(plan->nchannels));
    for (int c = 0; c < plan->nchannels; c++) {
        hash = tt_hash_bytes(hash, tt_topo_ring(plan, c), n * sizeof(int));
        hash = tt_hash_bytes(hash, tt_topo_tree(plan, c), n * sizeof(struct tt_tree_links));
    }
    return hash;
}

/* The search obeys variables, which a rank may have for itself. */
static ncclResult_t compare_plans(struct tt_comm *comm, const struct tt_topo_plan *plan)
{
    int n = comm->member.nranks;
    uint64_t own = plan_hash(plan);
    uint64_t *all = tt_calloc((size_t)n, sizeof(*all));
    if (!all) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    ncclResult_t rc = tt_bootstrap_allgather(comm->bootstrap, &own, sizeof(own), all);
    for (int r = 1; r < n && !rc; r++) {
        if (all[r] != all[0]) {
            rc = tt_fail(
                ncclInvalidUsage,
                "ranks 0 and %d found different rings in the same machine files: their NCCL_ "
                "variables or configs differ",
                r);
        }
    }
    free(all);
    return rc;
}

/* What the GRAPH log says of this rank's host. */
static void report_machine(const struct tt_init *init)
{
    char *text = NULL, *save = NULL;
    int host = init->emulated.ranks[init->comm->member.rank].node;
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_GRAPH)) return;
    if (tt_topo_machine_text(&init->emulated, host, &text)) return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        tt_info(TT_LOG_GRAPH, "%s", line);
    free(text);
}

/* Virtual NICs have the numbers that the plugin gave them in the host's first rank; in another
 * process it may have made them in another order. */
static void own_numbers(const struct tt_init *init, struct tt_topo_nics *nics)
{
    const struct tt_comm *comm = init->comm;
    int host = init->emulated.ranks[comm->member.rank].node;
    const struct tt_topo_file *file = init->emulated.hosts[host].file;
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        tt_machine_own_nic(comm, file, &nics->ring[c]);
        tt_machine_own_nic(comm, file, &nics->tree[c]);
        tt_machine_own_nic(comm, file, &nics->own[c]);
        for (int d = 0; d < TT_NIC_DEVICES; d++)
            tt_machine_own_nic(comm, file, &nics->toward[d][c]);
    }
}

/* With a network plugin the machine's NICs are its devices: edges take those of their channels. */
static ncclResult_t choose_nics(struct tt_init *init)
{
    struct tt_comm *comm = init->comm;
    int n = comm->member.nranks, rank = comm->member.rank;
    if (!tt_net_library(comm->net) || comm->topo.layout->nnodes == 1) return ncclSuccess;
    struct tt_topo_nics *found = tt_calloc(1, sizeof(*found));
    comm->nics = tt_calloc(1, sizeof(*comm->nics));
    ncclResult_t rc = ncclSuccess;
    if (!found || !comm->nics) rc = tt_fail(ncclSystemError, "rank %d: out of memory", rank);
    if (!rc) rc = tt_topo_machine_nics(&init->emulated, rank, found);
    if (!rc) own_numbers(init, found);
    for (int c = 0; c < TT_MAX_CHANNELS && !rc; c++) {
        const int *ring = c < comm->topo.nchannels ? tt_topo_ring(&comm->topo, c) : NULL;
        int at = 0;
        while (ring && ring[at] != rank) {
            at++;
        }
        comm->nics->next[c] = ring ? ring[(at + 1) % n] : -1;
        comm->nics->prev[c] = ring ? ring[(at + n - 1) % n] : -1;
        comm->nics->along[c] = found->ring[c];
        comm->nics->across[c] = found->tree[c];
        comm->nics->from[c] = found->own[c];
        for (int d = 0; d < TT_NIC_DEVICES; d++)
            comm->nics->toward[d][c] = found->toward[d][c];
    }
    free(found);
    return rc;
}

ncclResult_t tt_machine_model(struct tt_comm *comm, const ncclTunerConstants_v6_t *constants)
{
    if (!comm->gpu) return ncclSuccess;
    ncclResult_t rc = tt_gpu_model_make(comm->topo.layout, constants, comm->gpu);
    if (comm->gpu->nchannels > comm->topo.nchannels) comm->gpu->nchannels = comm->topo.nchannels;
    return rc;
}

/* ---- the machines of all hosts ---- */

static int given(int value)
{
    return value == NCCL_CONFIG_UNDEF_INT ? 0 : value;
}

static ncclResult_t emulate(struct tt_init *init, const struct tt_agreement *agreed)
{
    const struct tt_comm *comm = init->comm;
    struct tt_topo_host *hosts = tt_calloc((size_t)agreed->nnodes, sizeof(*hosts));
    if (!hosts) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (int r = comm->member.nranks - 1; r >= 0; r--) {
        int host = agreed->ranks[r].node;
        hosts[host] = (struct tt_topo_host){.hash = tt_record_of(comm, r)->host_id,
                                            .domain = agreed->domain[host]};
    }
    init->emulated = (struct tt_topo_machine){
        .hosts = hosts,
        .nhosts = agreed->nnodes,
        .ranks = agreed->ranks,
        .nranks = comm->member.nranks,
        .no_multicast = (agreed->flags & TT_RECORD_NVLS_OFF) != 0,
        .no_collnet = true, /* no network that is loaded offers it */
        .config = {.ctas_least = agreed->ctas_least,
                   .ctas_most = comm->config.maxCTAs,
                   .nvls_ctas = given(comm->config.nvlsCTAs),
                   .net_peer_channels = given(comm->config.nChannelsPerNetPeer),
                   .p2p_peers = given(comm->config.maxP2pPeers)},
    };
    return tt_machine_share(init, agreed, hosts);
}

void tt_machine_forget(struct tt_init *init)
{
    for (int k = 0; k < init->nothers; k++)
        tt_topo_file_free(init->others[k]);
    free(init->others);
    init->others = NULL;
    init->nothers = 0;
    free((void *)(uintptr_t)init->emulated.hosts);
    tt_topo_file_free(init->machine);
    init->emulated = (struct tt_topo_machine){0};
    init->machine = NULL;
}

/* ---- the plan ---- */

static ncclResult_t make_plan(struct tt_init *init, const struct tt_agreement *agreed)
{
    const char *graphs = tt_param_str("NCCL_GRAPH_FILE");
    bool own = graphs && *graphs; /* channels that a user gave: these or none */
    uint32_t before = tt_log_expect(own ? 0 : TT_LOG_GRAPH);
    struct tt_topo_plan *plan = &init->comm->topo;
    ncclResult_t rc = tt_topo_plan_from_machine(&init->emulated, agreed->nchannels, plan);
    (void)tt_log_expect(before);
    if (rc == ncclSystemError && !own) { /* only this rank meets it, and it is not reported yet */
        rc = tt_fail(rc, "rank %d: out of memory for rings and trees of its machine",
                     init->comm->member.rank);
        return rc;
    }
    if (!rc || own) return rc;
    tt_info(TT_LOG_INIT | TT_LOG_GRAPH,
            "NCCL_TOPO_FILE does not describe the devices of this communicator: rings and trees "
            "over flat hosts");
    return ncclSuccess;
}

/* Multicast that does not come up is done without, unless it was demanded. */
static ncclResult_t start_multicast(struct tt_init *init, const struct tt_agreement *agreed)
{
    struct tt_comm *comm = init->comm;
    bool has = comm->topo.nvls_channels > 0;
    if (agreed->flags & TT_RECORD_NVLS_OFF) return ncclSuccess;
    tt_info(TT_LOG_INIT, "NVLS multicast support is %savailable on dev %d", has ? "" : "not ",
            comm->member.device);
    if (!has || !(agreed->flags & TT_RECORD_MULTICAST_BROKEN)) return ncclSuccess;
    if (agreed->flags & TT_RECORD_NVLS_DEMANDED) {
        return tt_fail(ncclUnhandledCudaError,
                       "rank %d: NVLink multicast (NVLS) does not come up, and NCCL_NVLS_ENABLE=1 "
                       "demands it; 2 goes to other transports",
                       comm->member.rank);
    }
    tt_info(TT_LOG_INIT | TT_LOG_NVLS,
            "NVLink multicast (NVLS) does not come up: going on with other transports");
    init->emulated.no_multicast = true;
    tt_topo_plan_free(&comm->topo);
    return make_plan(init, agreed);
}

/* All that follows from the machines; without a layout they do not describe the devices. */
static ncclResult_t use_machines(struct tt_init *init, const struct tt_agreement *agreed)
{
    struct tt_comm *comm = init->comm;
    ncclResult_t rc = emulate(init, agreed);
    if (!rc) rc = make_plan(init, agreed);
    if (rc || !comm->topo.layout) return rc;
    rc = start_multicast(init, agreed);
    if (rc || !comm->topo.layout) return rc;
    rc = choose_nics(init);
    if (rc) return rc;
    report_machine(init);
    if (comm->member.nranks == 1) return ncclSuccess;
    /* what the machine's links would cost, for the choice of algorithms */
    comm->gpu = tt_calloc(1, sizeof(*comm->gpu));
    if (!comm->gpu) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    rc = tt_machine_model(comm, NULL);
    return rc ? rc : compare_plans(comm, &comm->topo);
}

ncclResult_t tt_machine_plan(struct tt_init *init, const struct tt_agreement *agreed)
{
    struct tt_comm *comm = init->comm;
    if (init->machine && agreed->any_machine) {
        ncclResult_t rc = use_machines(init, agreed);
        if (rc || comm->topo.layout) return rc;
    } else if (init->machine) {
        tt_info(
            TT_LOG_INIT | TT_LOG_GRAPH,
            "some ranks have no machine file (NCCL_TOPO_FILE): rings and trees over flat hosts");
    }
    int own = agreed->nchannels < init->flat_channels ? agreed->nchannels : init->flat_channels;
    return tt_topo_plan_make(agreed->ranks, comm->member.nranks, own, &comm->topo);
}
