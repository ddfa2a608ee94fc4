/* Algorithms in MSCCL's XML for tests, written for any number of ranks and channels. */
#pragma once

#include <stdbool.h>

enum msccl_text {
    MSCCL_RING_ALLREDUCE,  /* a ring per channel */
    MSCCL_PAIRS_ALLREDUCE, /* each rank reduces its part out of scratch and sends it back */
    MSCCL_PAIRS_ALLGATHER,
    MSCCL_PAIRS_REDUCESCATTER, /* out of scratch, with waits between blocks */
    MSCCL_PAIRS_ALLTOALL,
    MSCCL_TEXTS_,
};

struct msccl_shape {
    int nranks, nchannels;
    int nparts; /* chunks that one message moves */
    unsigned long min_bytes, max_bytes;
    bool wrong; /* the last message of the last rank is taken for another chunk */
};

/* Write the file; false when that fails. */
bool msccl_text_write(const char *path, enum msccl_text text, const struct msccl_shape *shape);
