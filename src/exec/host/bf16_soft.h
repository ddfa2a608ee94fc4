/* Sums of bfloat16 on any processor. */
#pragma once

#include "exec/host/bf16_number.h"

static inline void tt_bf16_sum(void *dst, const void *a, const void *b, size_t count)
{
    tt_bf16_sum_pairs(dst, a, b, count);
}

static inline void tt_bf16_sum_many(void *dst, const void *const *srcs, int nsrcs, size_t at,
                                    size_t count)
{
    tt_bf16_sum_many_each(dst, srcs, nsrcs, at, count);
}
