/* Which instruction set levels an x86-64 processor has; best last: the tiers of
 * base/arch/x86_64.h. */
#include "base/system/cpu.h"
#include "exec/host/reduce.h"

extern const struct tt_reduce_type tt_reduce_native_avx2[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_avx2[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_native_avx512[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_avx512[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_vbmi[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_bf16[ncclNumTypes];

static const struct tt_reduce_level levels[] = {
    {"sse2", tt_reduce_native, tt_reduce_narrow},
    {"avx2", tt_reduce_native_avx2, tt_reduce_narrow_avx2},
    {"avx512", tt_reduce_native_avx512, tt_reduce_narrow_avx512},
    {"avx512vbmi", tt_reduce_native_avx512, tt_reduce_narrow_vbmi},
    {"avx512bf16", tt_reduce_native_avx512, tt_reduce_narrow_bf16},
};

const struct tt_reduce_level *tt_reduce_levels(int *count_out)
{
    *count_out = 1 + tt_cpu_tier();
    return levels;
}
