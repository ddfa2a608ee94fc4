/* Ranges for tools that inject themselves by NVTX: NCCL's functions appear in a tool's timeline, in
 * the domain "NCCL". The tool's library is named by NVTX_INJECTION64_PATH; without it, or with
 * NCCL_NVTX_DISABLE=1, a range costs a load and a branch, and operations cost nothing. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* True when ranges are wanted; set by tt_nvtx_load(). */
extern _Atomic bool *const tt_nvtx_flag;

/* Load the tool's library, once per process. A failure is logged, and there are no ranges. */
void tt_nvtx_load(void);

static inline bool tt_nvtx_on(void)
{
    return atomic_load_explicit(tt_nvtx_flag, memory_order_acquire);
}

struct tt_nvtx_range { /* declare it with cleanup(tt_nvtx_end): a function has many ends */
    bool open;
};

/* Begin a range of the calling thread, named "nccl" and `name`. `number` is shown beside it: bytes
 * of an operation, a rank, or -1 for none. */
struct tt_nvtx_range tt_nvtx_open(const char *name, int64_t number);
/* End the range, if it was begun. */
void tt_nvtx_end(struct tt_nvtx_range *range);

static inline struct tt_nvtx_range tt_nvtx_begin(const char *name, int64_t number)
{
    return tt_nvtx_on() ? tt_nvtx_open(name, number) : (struct tt_nvtx_range){false};
}
