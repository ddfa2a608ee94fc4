/* The collective network that the test plugins of versions 3 to 12 have in common: sums over TCP,
 * made by a group's first rank, strict with its host. collnet_outsider.c adds up,
 * collnet_outsider_tables.c has a table for each version. */
#pragma once

#include "nccl.h"
#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>

enum summer_kind { SUMMER_SUM, SUMMER_GATHER, SUMMER_SCATTER };

struct summer_job {
    const void *send;
    void *recv;
    size_t count; /* elements; a gather's are bytes. Of a block where there is one for each rank */
    ncclDataType_t type;
    ncclRedOp_t op;
    void *send_mhandle, *recv_mhandle;
    enum summer_kind kind;
};

struct summer_blocks { /* what iallgather and ireducescatter say of blocks */
    int nparts;
    size_t part_bytes, block_bytes, offset, window_bytes;
};

/* True when COLLNET_FAIL names it, at the rank of COLLNET_FAIL_HOST in its group (no number: at
 * all). */
bool summer_fails(const char *what, int host);

/* Versions up to 10: a second init is an error. */
ncclResult_t summer_begin(ncclDebugLogger_t log, bool again);
ncclResult_t summer_listen(int dev, void *handle, size_t handle_bytes, void **listen_comm);
ncclResult_t summer_connect(void *handles[], int nranks, int rank, void *listen_comm,
                            void **coll_comm);
ncclResult_t summer_support(ncclDataType_t type, ncclRedOp_t op, int *supported);
ncclResult_t summer_reg(void *coll_comm, void *data, size_t bytes, int type, void **mhandle);
ncclResult_t summer_dereg(void *coll_comm, void *mhandle);
ncclResult_t summer_start(void *coll_comm, const struct summer_job *job, void **request);
ncclResult_t summer_start_blocks(void *coll_comm, struct summer_job *job,
                                 const struct summer_blocks *blocks, void **request);
ncclResult_t summer_test(void *request, int *done, int *size);
ncclResult_t summer_close(void *coll_comm);
ncclResult_t summer_close_listen(void *listen_comm);
