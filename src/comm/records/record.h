/* The record that each rank sends to all others at init, and what all ranks derive from the
 * records. Private to comm/. Host byte order: ranks of one communicator run on one architecture. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "comm/comm.h"
#include "comm/records/cores.h"
#include "mem/mem.h"

enum tt_record_flags {
    TT_RECORD_P2P_OFF = 1, /* NCCL_P2P_DISABLE */
    TT_RECORD_SHM_OFF = 2, /* NCCL_SHM_DISABLE */
    TT_RECORD_DETERMINISTIC = 4,
    TT_RECORD_SHARED_DEVICE_OK = 8, /* NCCL_MULTI_RANK_GPU_ENABLE */
    TT_RECORD_NO_P2P_LEVEL = 16,    /* NCCL_P2P_LEVEL=LOC, or off */
    TT_RECORD_MNNVL_OFF = 32,       /* NCCL_MNNVL_ENABLE=0 */
    TT_RECORD_MNNVL_ALWAYS = 64,    /* NCCL_MNNVL_ENABLE=1 */
    TT_RECORD_FABRIC_BROKEN = 128,  /* TUTTI_MACHINE_FAULTS */
    TT_RECORD_NVLS_OFF = 256,       /* NCCL_NVLS_ENABLE=0, config.nvlsHostMode */
    TT_RECORD_NVLS_DEMANDED = 512,  /* NCCL_NVLS_ENABLE=1 */
    TT_RECORD_MULTICAST_BROKEN = 1024,
    TT_RECORD_ALONE = 2048,      /* it shares no resources with a parent */
    TT_RECORD_COLLNET = 4096,    /* config.collnetEnable, NCCL_COLLNET_ENABLE */
    TT_RECORD_SLICES_SET = 8192, /* NCCL_BUFFSIZE */
    TT_RECORD_NO_MATCH = 16384,  /* TUTTI_CHECK_MATCH=0 */
    TT_RECORD_NO_GLOBAL = 32768, /* no NCCL_CHECK_MODE=DEBUG_GLOBAL */
};

struct tt_comm_record {
    uint32_t version;
    uint32_t flags; /* enum tt_record_flags */
    uint64_t host_id;
    int32_t pid;
    uint32_t pids; /* hash of the namespace that the pid is of */
    int32_t device, nvml_index;
    struct tt_core_limit mask, quota;
    char bus_id[16];
    unsigned char uuid[16];
    struct tt_segment_record segment; /* equal process_id: ranks of one process */
    uint64_t inbox_offset;
    uint64_t tune;    /* hash of the measured figures; 0: none */
    uint64_t machine; /* hash of the machine file; 0: none */
    uint32_t slice_bytes;
    int32_t nchannels;  /* the most this rank has room for, of rings and trees */
    int32_t ctas_least; /* config */
    int32_t cc;         /* compute capability of the device, times ten */
    uint32_t fabric_clique;
    uint64_t fabric_uuid;  /* of the NVLink domain that the device is in; 0: none */
    uint64_t imports;      /* hash of the imported programs; 0: none */
    int32_t nimports;      /* files of them */
    int32_t edge_channels; /* the most this rank has room for, of edges */
};
_Static_assert(sizeof(struct tt_comm_record) <= TT_RECORD_BYTES, "a record must fit its frame");

/* Record of rank r as it came. */
static inline const struct tt_comm_record *tt_record_of(const struct tt_comm *comm, int rank)
{
    const char *all = (const char *)comm->records;
    return (const struct tt_comm_record *)(const void *)(all + (size_t)rank * TT_RECORD_BYTES);
}

/* Fill this rank's record: inbox and range must be there. */
ncclResult_t tt_record_fill(const struct tt_comm *comm, struct tt_comm_record *record_out);

/* "0000:07:00.0" -> 0x7000, as logs have it. */
int64_t tt_bus_number(const char *bus_id);

/* Compare all records: versions, devices used twice.
 * Errors: ncclInvalidUsage naming both ranks. Equal on all ranks. */
ncclResult_t tt_record_check(const struct tt_comm *comm);

struct tt_agreement { /* derived from the records, equal on all ranks but for what is local */
    uint32_t flags;   /* union of all ranks' */
    uint32_t slice_bytes;
    int nchannels, cores;
    int edge_channels;           /* of edges: no less than of rings and trees */
    int nnodes;                  /* hosts */
    int least_local, most_local; /* ranks on the emptiest and the fullest one */
    int local_rank, local_ranks;
    bool oversubscribed;        /* on some host the ranks outnumber the cores that they may use */
    bool local_oversubscribed;  /* on this one */
    bool same_tune;             /* all ranks have the same measured figures */
    bool any_machine;           /* all ranks have read a machine file */
    int ctas_least;             /* the most that some rank wants at least */
    int *domain;                /* owned; by host: the first host of its NVLink domain */
    int clique_size;            /* ranks of the own NVLink domain; 0: none */
    struct tt_topo_rank *ranks; /* owned; free() */
};
void tt_agreement_fini(struct tt_agreement *agreed);
/* How calls are compared: only as all ranks do it. Say so where this rank does more. */
void tt_record_agree_checks(struct tt_comm *comm, const struct tt_agreement *agreed);
/* Derive it from the records; local. Set only on success, tt_agreement_fini() frees. Errors:
 * ncclSystemError (out of memory). */
ncclResult_t tt_record_agree(const struct tt_comm *comm, struct tt_agreement *agreement_out);
