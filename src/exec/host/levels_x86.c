/* Which instruction set levels an x86-64 processor has; best last. */
#include "exec/host/reduce.h"

#include <cpuid.h>

/* Not among the names that every compiler's __builtin_cpu_supports() takes. */
static bool has_f16c(void)
{
    unsigned int a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

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
    bool avx2 = __builtin_cpu_supports("avx2") && has_f16c();
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool vbmi = avx512 && __builtin_cpu_supports("avx512vbmi");
    *count_out = 1 + (avx2 ? 1 : 0) + (avx512 ? 1 : 0) + (vbmi ? 1 : 0);
    return levels;
}
