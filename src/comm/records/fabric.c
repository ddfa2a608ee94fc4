/* Hosts whose emulated GPUs share NVLink, as NVML reports it of real ones: an NVLink domain is one
 * node for rings and trees. Every rank derives the same from the records.
 * Source: spec topology, section 10. */
#include "comm/records/fabric.h"

#include "base/dedup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/text/spelling.h"

#include <stdlib.h>
#include <string.h>

enum { COMPLETED = 3 }; /* NVML's state of a fabric that is up */

/* Without direct access between GPUs there is no domain. */
static bool has_no_p2p(void)
{
    const char *level = tt_param_str("NCCL_P2P_LEVEL");
    if (tt_param_bool("NCCL_P2P_DISABLE")) return true;
    if (!level) return false;
    if (strncmp(level, "PATH_", 5) == 0) level += 5;
    return strcmp(level, "LOC") == 0 || strcmp(level, "0") == 0;
}

struct fault {
    const char *word;
    uint32_t flag;
};
static const struct fault faults[] = {{"fabric", TT_RECORD_FABRIC_BROKEN},
                                      {"multicast", TT_RECORD_MULTICAST_BROKEN}};

static uint32_t fault_flag(const char *word, size_t length)
{
    for (size_t k = 0; k < TT_LEN(faults); k++) {
        bool same = strlen(faults[k].word) == length && !strncmp(faults[k].word, word, length);
        if (same) return faults[k].flag;
    }
    return 0;
}

/* A fault that does not happen must not pass for one that was survived. */
static uint32_t fault_flags(void)
{
    const char *at = tt_param_str("TUTTI_MACHINE_FAULTS");
    uint32_t flags = 0;
    for (at = at ? at + strspn(at, ", ") : ""; *at; at += strspn(at, ", ")) {
        size_t length = strcspn(at, ", ");
        uint32_t flag = fault_flag(at, length);
        if (!flag) {
            char meant[64];
            tt_param_suggest("fabric,multicast", at, length, meant, sizeof(meant));
            tt_warn_setting(
                "TUTTI_MACHINE_FAULTS: '%.*s' is no part that can fail and has no effect "
                "(accepted: fabric, multicast)%s",
                (int)length, at, meant);
        }
        flags |= flag;
        at += length;
    }
    return flags;
}

uint32_t tt_fabric_flags(void)
{
    int64_t domain = tt_param_int("NCCL_MNNVL_ENABLE");
    int64_t multicast = tt_param_int("NCCL_NVLS_ENABLE");
    uint32_t flags = 0;
    if (domain == 0) flags |= TT_RECORD_MNNVL_OFF;
    if (domain == 1) flags |= TT_RECORD_MNNVL_ALWAYS;
    if (has_no_p2p()) flags |= TT_RECORD_NO_P2P_LEVEL;
    if (multicast == 0) flags |= TT_RECORD_NVLS_OFF;
    if (multicast == 1) flags |= TT_RECORD_NVLS_DEMANDED;
    return flags | fault_flags();
}

/* The fabric's own number is 0. As NCCL: any number is taken by its last 32 bits, -2 asks for one
 * of the rack, which is left out where none has a serial number. */
static uint32_t clique_id(bool emulates)
{
    int64_t given = tt_param_int("NCCL_MNNVL_CLIQUE_ID");
    if (given == -1) return 0;
    if (given == -2 && emulates) {
        tt_info(TT_LOG_INIT, "NCCL_MNNVL_CLIQUE_ID is -2: an emulated machine has no rack with a "
                             "serial number, the clique stays 0");
    }
    if (given == -2) return 0;
    if (given < INT32_MIN || given > UINT32_MAX) {
        tt_warn_setting("NCCL_MNNVL_CLIQUE_ID is %lld, which has more than 32 bits: %u it is",
                        (long long)given, (uint32_t)given);
    }
    return (uint32_t)given;
}

void tt_fabric_fill(struct tt_comm_record *record)
{
    int64_t uuid = tt_param_int("NCCL_MNNVL_UUID");
    record->fabric_uuid = uuid == -1 ? 0 : (uint64_t)uuid;
    record->fabric_clique = clique_id(record->machine && record->fabric_uuid);
    if (!record->machine || (record->flags & TT_RECORD_MNNVL_OFF)) return;
    tt_info(TT_LOG_INIT, "MNNVL busId 0x%llx fabric UUID %llx.%llx cliqueId 0x%x state %d",
            (unsigned long long)tt_bus_number(record->bus_id),
            (unsigned long long)record->fabric_uuid, (unsigned long long)record->fabric_uuid,
            record->fabric_clique, record->fabric_uuid ? COMPLETED : 0);
}

/* ---- after the bootstrap ---- */

struct cliques {
    int *first; /* owned; by rank: the first of its clique */
    int *size;  /* owned; by that rank: how many share it */
    int *host;  /* owned; by that rank: the first host that is in it with all ranks, else -1 */
};

static void cliques_fini(struct cliques *cliques)
{
    free(cliques->first);
    free(cliques->size);
    free(cliques->host);
}

static int compare_cliques(const void *things, int a, int b)
{
    const struct tt_comm *comm = things;
    const struct tt_comm_record *one = tt_record_of(comm, a), *two = tt_record_of(comm, b);
    if (one->fabric_uuid != two->fabric_uuid) return one->fabric_uuid < two->fabric_uuid ? -1 : 1;
    if (one->fabric_clique == two->fabric_clique) return 0;
    return one->fabric_clique < two->fabric_clique ? -1 : 1;
}

/* All ranks are in some domain. */
static ncclResult_t find_cliques(const struct tt_comm *comm, struct cliques *cliques)
{
    int n = comm->member.nranks;
    cliques->first = tt_calloc((size_t)n, sizeof(int));
    cliques->size = tt_calloc((size_t)n, sizeof(int));
    cliques->host = tt_calloc((size_t)n, sizeof(int));
    /* without them this rank would see other nodes than its peers do */
    if (!cliques->first || !cliques->size || !cliques->host)
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    ncclResult_t rc = tt_dedup_find(comm, n, compare_cliques, cliques->first);
    for (int r = 0; r < n && !rc; r++) {
        cliques->size[cliques->first[r]]++;
        cliques->host[r] = -1;
    }
    return rc;
}

/* Host by host: the first one that shares its clique. A host whose ranks disagree is alone. */
static ncclResult_t find_domains(const struct tt_comm *comm, const struct cliques *cliques,
                                 struct tt_agreement *agreed)
{
    enum { UNSEEN = -1, MIXED = -2 };
    int *own = tt_calloc((size_t)agreed->nnodes, sizeof(int)); /* by host: its clique */
    if (!own) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (int h = 0; h < agreed->nnodes; h++)
        own[h] = UNSEEN;
    for (int r = 0; r < comm->member.nranks; r++) {
        int *host = &own[agreed->ranks[r].node];
        if (*host == UNSEEN) *host = cliques->first[r];
        if (*host != cliques->first[r]) *host = MIXED;
    }
    for (int h = 0; h < agreed->nnodes; h++) {
        if (own[h] == MIXED) continue;
        int *first = &cliques->host[own[h]];
        if (*first < 0) *first = h;
        agreed->domain[h] = *first;
    }
    free(own);
    return ncclSuccess;
}

static bool is_wanted(const struct tt_comm *comm, const struct tt_agreement *agreed)
{
    if (!agreed->any_machine || (agreed->flags & TT_RECORD_MNNVL_OFF)) return false;
    if (agreed->nnodes == 1 && !(agreed->flags & TT_RECORD_MNNVL_ALWAYS)) return false;
    for (int r = 0; r < comm->member.nranks; r++) {
        if (!tt_record_of(comm, r)->fabric_uuid)
            return false; /* of some the state is not complete */
    }
    return true;
}

static ncclResult_t check_cliques(const struct tt_comm *comm, const struct cliques *cliques)
{
    for (int r = 0; r < comm->member.nranks; r++) {
        int size = cliques->size[cliques->first[r]];
        if (!(tt_record_of(comm, r)->flags & TT_RECORD_FABRIC_BROKEN) || size < 2) continue;
        return tt_fail(ncclSystemError,
                       "rank %d: the NVLink domain of %d ranks does not work: its memory cannot be "
                       "shared; set up the fabric, or NCCL_MNNVL_ENABLE=0 does without",
                       r, size);
    }
    return ncclSuccess;
}

static void report_clique(const struct tt_comm *comm, const struct cliques *cliques, int size)
{
    int rank = comm->member.rank, index = 0;
    for (int r = 0; r < rank; r++)
        index += cliques->first[r] == cliques->first[rank];
    tt_info(TT_LOG_INIT, "MNNVL 1 cliqueId %x cliqueSize %d cliqueRank %d",
            tt_record_of(comm, rank)->fabric_clique, size, index);
}

static ncclResult_t use_cliques(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    struct cliques cliques = {0};
    ncclResult_t rc = find_cliques(comm, &cliques);
    if (!rc) rc = check_cliques(comm, &cliques);
    /* also where this rank is alone in its clique: all must see the same nodes */
    if (!rc) rc = find_domains(comm, &cliques, agreed);
    int size = rc ? 0 : cliques.size[cliques.first[comm->member.rank]];
    if (size > 1) {
        agreed->clique_size = size;
        report_clique(comm, &cliques, size);
    }
    cliques_fini(&cliques);
    return rc;
}

ncclResult_t tt_fabric_agree(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    agreed->domain = tt_calloc((size_t)agreed->nnodes, sizeof(int));
    if (!agreed->domain)
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (int h = 0; h < agreed->nnodes; h++)
        agreed->domain[h] = h;
    if (!is_wanted(comm, agreed)) return ncclSuccess;
    if (!(agreed->flags & TT_RECORD_NO_P2P_LEVEL)) return use_cliques(comm, agreed);
    tt_info(TT_LOG_INIT, "MNNVL is off: there is no direct access between GPUs "
                         "(NCCL_P2P_DISABLE or NCCL_P2P_LEVEL)");
    return ncclSuccess;
}
