/* Ranges for tools that inject themselves by NVTX: NCCL's functions appear in a tool's timeline, in
 * the domain "NCCL". The tool's library is named by NVTX_INJECTION64_PATH; without it, or with
 * NCCL_NVTX_DISABLE=1, a range costs a load and a branch, and operations cost nothing. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when ranges are wanted; set by tt_nvtx_load(). */
extern _Atomic bool *const tt_nvtx_flag;

/* Load the tool's library, once per process. A failure is logged, and there are no ranges. */
void tt_nvtx_load(void);

static inline bool tt_nvtx_on(void)
{
    return atomic_load_explicit(tt_nvtx_flag, memory_order_acquire);
}

struct tt_nvtx_life;

struct tt_nvtx_range { /* declare it with cleanup(tt_nvtx_end): a function has many ends */
    bool open;
    const struct tt_nvtx_life *life; /* borrowed until the end; NULL: none */
};

/* Begin a range of the calling thread, named "nccl" and `name`. `number` is shown beside it: bytes
 * of an operation, a rank, or -1 for none. */
struct tt_nvtx_range tt_nvtx_open(const char *name, int64_t number);

/* What a tool that speaks the payload extension is shown of an operation; others get the bytes. */
enum tt_nvtx_kind {
    TT_NVTX_MOVE,
    TT_NVTX_REDUCE,
    TT_NVTX_ROOTED,
    TT_NVTX_ROOTED_REDUCE,
    TT_NVTX_MESSAGE,
    TT_NVTX_KIND_COUNT_
};
struct tt_nvtx_call { /* as tools read it: see nvtx_payload.c */
    uint64_t comm;
    size_t bytes;
    int32_t root; /* or peer */
    int32_t op;
    enum tt_nvtx_kind kind;
};
/* Begin a range of an operation; call it when tt_nvtx_on(). */
struct tt_nvtx_range tt_nvtx_open_call(const char *name, const struct tt_nvtx_call *call);

/* What such a tool is shown at the end of a range in which a communicator begins or ends. What is
 * not known stays 0. */
enum tt_nvtx_life_kind {
    TT_NVTX_INIT_ALL,
    TT_NVTX_INIT, /* also destroy and abort */
    TT_NVTX_SPLIT,
    TT_NVTX_SHRINK,
    TT_NVTX_FINALIZE,
    TT_NVTX_LIFE_COUNT_
};
struct tt_nvtx_life { /* as tools read it: see nvtx_payload.c */
    uint64_t comm, parent;
    int32_t nranks, rank, device, color, key, nexcluded;
    enum tt_nvtx_life_kind kind;
};
/* End the range, if it was begun. */
void tt_nvtx_end(struct tt_nvtx_range *range);

static inline struct tt_nvtx_range tt_nvtx_begin(const char *name, int64_t number)
{
    return tt_nvtx_on() ? tt_nvtx_open(name, number) : (struct tt_nvtx_range){false, NULL};
}

/* The same, and `life` is read when the range ends. */
static inline struct tt_nvtx_range tt_nvtx_begin_life(const char *name, int64_t number,
                                                      const struct tt_nvtx_life *life)
{
    struct tt_nvtx_range range = tt_nvtx_begin(name, number);
    range.life = life;
    return range;
}
