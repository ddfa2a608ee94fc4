/* Hosts whose played GPUs share NVLink, as NVML would tell of real ones: an NVLink domain is one
 * node for rings and trees. Every rank derives the same from the records.
 * Source: spec topology, section 10. */
#include "comm/fabric.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"

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

/* One of the words of TUTTI_MACHINE_FAULTS. */
static bool is_broken(const char *part)
{
    const char *text = tt_param_str("TUTTI_MACHINE_FAULTS");
    size_t length = strlen(part);
    while (text && *text) {
        size_t word = strcspn(text, ",");
        if (word == length && strncmp(text, part, word) == 0) return true;
        text += word + (text[word] == ',');
    }
    return false;
}

uint32_t tt_fabric_flags(void)
{
    int64_t domain = tt_param_int("NCCL_MNNVL_ENABLE");
    int64_t multicast = tt_param_int("NCCL_NVLS_ENABLE");
    uint32_t flags = 0;
    if (domain == 0) flags |= TT_RECORD_MNNVL_OFF;
    if (domain == 1) flags |= TT_RECORD_MNNVL_ALWAYS;
    if (has_no_p2p()) flags |= TT_RECORD_NO_P2P_LEVEL;
    if (is_broken("fabric")) flags |= TT_RECORD_FABRIC_BROKEN;
    if (multicast == 0) flags |= TT_RECORD_NVLS_OFF;
    if (multicast == 1) flags |= TT_RECORD_NVLS_DEMANDED;
    if (is_broken("multicast")) flags |= TT_RECORD_MULTICAST_BROKEN;
    return flags;
}

void tt_fabric_fill(struct tt_comm_record *record)
{
    int64_t uuid = tt_param_int("NCCL_MNNVL_UUID"), clique = tt_param_int("NCCL_MNNVL_CLIQUE_ID");
    record->fabric_uuid = uuid == -1 ? 0 : (uint64_t)uuid;
    record->fabric_clique = clique < 0 ? 0 : (uint32_t)clique; /* no rack has a serial here */
    if (!record->machine || (record->flags & TT_RECORD_MNNVL_OFF)) return;
    tt_info(TT_LOG_INIT, "MNNVL busId 0x%llx fabric UUID %llx.%llx cliqueId 0x%x state %d",
            (unsigned long long)tt_bus_number(record->bus_id),
            (unsigned long long)record->fabric_uuid, (unsigned long long)record->fabric_uuid,
            record->fabric_clique, record->fabric_uuid ? COMPLETED : 0);
}

/* ---- after the meeting ---- */

static bool same_clique(const struct tt_comm_record *a, const struct tt_comm_record *b)
{
    return a->fabric_uuid && a->fabric_uuid == b->fabric_uuid &&
           a->fabric_clique == b->fabric_clique;
}

/* Host by host: the first one that shares its clique. A host whose ranks disagree is alone. */
static ncclResult_t find_domains(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    ncclResult_t rc = ncclSuccess;
    const struct tt_comm_record **first = tt_calloc((size_t)agreed->nnodes, sizeof(*first));
    bool *mixed = tt_calloc((size_t)agreed->nnodes, sizeof(*mixed));
    if (!first || !mixed) { /* without them this rank would see other nodes than its peers do */
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
        goto out;
    }
    for (int r = 0; r < comm->member.nranks; r++) {
        const struct tt_comm_record *record = tt_record_of(comm, r);
        int host = agreed->ranks[r].node;
        if (!first[host]) first[host] = record;
        mixed[host] |= !same_clique(first[host], record);
    }
    for (int h = 0; h < agreed->nnodes; h++) {
        for (int before = 0; before < h && agreed->domain[h] == h; before++) {
            bool one = !mixed[h] && !mixed[before] && same_clique(first[before], first[h]);
            if (one) agreed->domain[h] = before;
        }
    }
out:
    free(first);
    free(mixed);
    return rc;
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

/* How many ranks share the clique of `rank`, and how many of them come before it. */
static int count_clique(const struct tt_comm *comm, int rank, int *before_out)
{
    const struct tt_comm_record *own = tt_record_of(comm, rank);
    int size = 0;
    for (int r = 0; r < comm->member.nranks; r++) {
        if (r == rank) *before_out = size;
        size += same_clique(own, tt_record_of(comm, r));
    }
    return size;
}

ncclResult_t tt_fabric_agree(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    agreed->domain = tt_calloc((size_t)agreed->nnodes, sizeof(int));
    if (!agreed->domain)
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (int h = 0; h < agreed->nnodes; h++)
        agreed->domain[h] = h;
    if (!is_wanted(comm, agreed)) return ncclSuccess;
    if (agreed->flags & TT_RECORD_NO_P2P_LEVEL) {
        tt_info(TT_LOG_INIT, "MNNVL is off: there is no direct access between GPUs "
                             "(NCCL_P2P_DISABLE or NCCL_P2P_LEVEL)");
        return ncclSuccess;
    }
    int place = 0, size = count_clique(comm, comm->member.rank, &place);
    for (int r = 0; r < comm->member.nranks; r++) {
        int unused;
        if (!(tt_record_of(comm, r)->flags & TT_RECORD_FABRIC_BROKEN)) continue;
        int others = count_clique(comm, r, &unused);
        if (others < 2) continue;
        return tt_fail(ncclSystemError,
                       "rank %d: the NVLink domain of %d ranks does not work: its memory cannot be "
                       "shared; set up the fabric, or NCCL_MNNVL_ENABLE=0 does without",
                       r, others);
    }
    if (size < 2) return ncclSuccess;
    ncclResult_t rc = find_domains(comm, agreed);
    if (rc) return rc;
    agreed->clique_size = size;
    tt_info(TT_LOG_INIT, "MNNVL 1 cliqueId %x cliqueSize %d cliqueRank %d",
            tt_record_of(comm, comm->member.rank)->fabric_clique, size, place);
    return ncclSuccess;
}
