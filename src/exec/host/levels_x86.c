/* Which instruction set levels an x86-64 processor has; best last. */
#include "base/cpu.h"
#include "exec/host/reduce.h"

extern const struct tt_reduce_type tt_reduce_native_avx2[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_avx2[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_native_avx512[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_avx512[ncclNumTypes];
extern const struct tt_reduce_type tt_reduce_narrow_vbmi[ncclNumTypes];

static const struct tt_reduce_level levels[] = {
    {"sse2", tt_reduce_native, tt_reduce_narrow},
    {"avx2", tt_reduce_native_avx2, tt_reduce_narrow_avx2},
    {"avx512", tt_reduce_native_avx512, tt_reduce_narrow_avx512},
    {"avx512vbmi", tt_reduce_native_avx512, tt_reduce_narrow_vbmi},
};

const struct tt_reduce_level *tt_reduce_levels(int *count_out)
{
    bool avx2 = __builtin_cpu_supports("avx2") && tt_cpu_has_f16c();
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool vbmi = avx512 && __builtin_cpu_supports("avx512vbmi");
    *count_out = 1 + (avx2 ? 1 : 0) + (avx512 ? 1 : 0) + (vbmi ? 1 : 0);
    return levels;
}
