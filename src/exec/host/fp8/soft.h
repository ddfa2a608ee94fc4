/* fp8 on any processor. */
#pragma once

#include "exec/host/fp8/number.h"

#include <stdbool.h>

static inline void fp8_widen(float *dst, const uint8_t *src, size_t count, const struct tt_fp8 type)
{
    tt_fp8_widen_each(dst, src, count, type);
}

static inline void fp8_narrow(uint8_t *dst, const float *src, size_t count,
                              const struct tt_fp8 type)
{
    tt_fp8_narrow_each(dst, src, count, type);
}

/* dst may be a or b. */
static inline void fp8_sum(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t count,
                           const struct tt_fp8 type)
{
    tt_fp8_sum_each(dst, a, b, count, type);
}

enum { FP8_GIVES = false }; /* widening source by source is faster here */
static inline void fp8_sum_give(const struct tt_reduce_give *give, size_t count,
                                const struct tt_fp8 type)
{
    uint8_t sums[FP8_BLOCK];
    for (size_t at = 0; at < count; at += FP8_BLOCK) {
        size_t some = count - at < FP8_BLOCK ? count - at : FP8_BLOCK;
        tt_fp8_sum_block(sums, give, give->from + at, some, type);
        tt_fp8_give(give, at, sums, some);
    }
}
