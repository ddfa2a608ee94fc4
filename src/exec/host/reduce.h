/* Inner loops of reductions: one table per instruction set, chosen once per process. A loop works
 * on a few kilobytes that fit the first-level cache; reduce.c divides the work. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_REDUCE_OPS 4 /* sum, prod, max, min: ncclRedOp_t's order */

/* dst = a op b; dst may be a or b exactly. Any alignment. */
typedef void (*tt_reduce_pair_fn)(void *dst, const void *a, const void *b, size_t count);

/* dst = the sum of `nsrcs` sources, from left to right, each from element `at` on. dst may be a
 * source there. Any alignment. */
typedef void (*tt_reduce_many_fn)(void *dst, const void *const *srcs, int nsrcs, size_t at,
                                  size_t count);

/* Sums to all destinations, which are stored while others are made: for types whose sums take
 * longer than that. Those of TT_REDUCE_GIVE bytes go to one destination after the other: more of
 * them would wait for the stores, and with fewer, loads wait for stores at the same place of other
 * pages. A destination may be a source at the same element. */
struct tt_reduce_give {
    void *const *dsts;
    const void *const *srcs;
    int ndsts, nsrcs;
    size_t to, from; /* first element of destinations and of sources */
};
typedef void (*tt_reduce_give_fn)(const struct tt_reduce_give *give, size_t count);
enum { TT_REDUCE_GIVE = 256 };

struct tt_reduction;

/* One element of the reduction's type: what PreMulSum and Avg multiply by. */
const void *tt_reduce_scalar(const struct tt_reduction *reduction);

/* One element type. Narrow floats have widen and narrow: they are reduced as fp32. */
struct tt_reduce_type {
    size_t elem_bytes;
    tt_reduce_pair_fn pair[TT_REDUCE_OPS]; /* in the accumulator's type */
    tt_reduce_pair_fn sum_two;             /* narrow floats: whole dst = round(a + b); else NULL */
    tt_reduce_many_fn sum_many;            /* narrow floats: whole sums, rounded once; or NULL */
    tt_reduce_give_fn sum_give;            /* in place of sum_many; or NULL */
    void (*widen)(float *dst, const void *src, size_t count);
    void (*narrow)(void *dst, const float *src, size_t count); /* nearest even; fp8 saturates */
    /* dst = src * scalar, rounded to the type (native types; scalar points to one element) */
    void (*scale)(void *dst, const void *src, const void *scalar, size_t count);
    /* accumulators divided in place: integers truncate toward zero */
    void (*divide)(void *acc, int divisor, size_t count);
};

/* By ncclDataType_t; elem_bytes 0 where the other family has the type. Each instruction set level
 * compiles these two under a name of its own (meson.build). */
extern const struct tt_reduce_type tt_reduce_native[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow[ncclNumTypes];

struct tt_reduce_level {
    const char *name;
    const struct tt_reduce_type *native, *narrow;
};

/* This processor's levels, best last (levels_<cpu>.c); *count_out of them, at least one. */
const struct tt_reduce_level *tt_reduce_levels(int *count_out);

/* Streaming copy: dst is not read into the cache. Not ordered by a release store: tt_stream_fence()
 * must follow before the data is published. */
void tt_stream_copy(void *dst, const void *src, size_t bytes);
/* Stream one tile of results to every destination, and prefetch the next tile of the sources
 * meanwhile, so that memory is read while it is written. */
struct tt_stream_tile {
    const char *from; /* the tile */
    size_t at, bytes; /* where it begins in sources and destinations, its size */
    void *const *dsts;
    const void *const *srcs;
    int ndsts, nsrcs;
};
void tt_stream_tile(const struct tt_stream_tile *tile);
void tt_stream_fence(void);

/* The kernel of a type that is its own accumulator, NULL for the others. */
tt_reduce_pair_fn tt_reduce_native_pair(ncclDataType_t type, ncclRedOp_t op);

/* tt_reduce_run() at one level, for tests. */
struct tt_reduce_job;
void tt_reduce_run_at(const struct tt_reduce_level *level, const struct tt_reduce_job *job);
