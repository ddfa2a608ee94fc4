/* What each rank tells all others at init, and what follows from all records together. Private to
 * comm/. Host byte order: ranks of one communicator run on one architecture. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "comm/comm.h"

enum tt_record_flags {
    TT_RECORD_P2P_OFF = 1, /* NCCL_P2P_DISABLE */
    TT_RECORD_SHM_OFF = 2, /* NCCL_SHM_DISABLE */
    TT_RECORD_DETERMINISTIC = 4,
    TT_RECORD_SHARED_DEVICE_OK = 8, /* NCCL_MULTI_RANK_GPU_ENABLE */
};

struct tt_comm_record {
    uint32_t version;
    uint32_t flags; /* enum tt_record_flags */
    uint64_t host_id;
    int32_t pid;
    int32_t device, nvml_index;
    int32_t cores;
    char bus_id[16];
    unsigned char uuid[16];
    struct tt_local_name local; /* process_id tells ranks of one process */
    uint64_t inbox_offset;
    uint64_t tune;    /* hash of the measured figures; 0: none */
    uint64_t machine; /* hash of the machine file; 0: none */
    uint32_t slice_bytes;
    int32_t nchannels; /* the most this rank has room for */
};
_Static_assert(sizeof(struct tt_comm_record) <= TT_RECORD_BYTES, "a record must fit its frame");

/* Record of rank r as it came. */
const struct tt_comm_record *tt_record_of(const struct tt_comm *comm, int rank);

/* Fill this rank's record: inbox and range must be there. */
ncclResult_t tt_record_fill(const struct tt_comm *comm, struct tt_comm_record *record_out);

/* Compare all records: versions, devices used twice.
 * Errors: ncclInvalidUsage naming both ranks. Equal on all ranks. */
ncclResult_t tt_record_check(const struct tt_comm *comm);

struct tt_agreement { /* what all ranks derive alike */
    uint32_t flags;   /* any rank's */
    uint32_t slice_bytes;
    int nchannels, cores;
    int nnodes;                  /* hosts */
    int least_local, most_local; /* ranks on the emptiest and the fullest one */
    int local_rank, local_ranks;
    bool crowded;
    bool same_tune;             /* all ranks have the same measured figures */
    bool same_machine;          /* all ranks have read the same machine file */
    struct tt_topo_rank *ranks; /* owned; free() */
};
ncclResult_t tt_record_agree(const struct tt_comm *comm, struct tt_agreement *agreement_out);
