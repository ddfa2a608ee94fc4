/* What x86-64 processors have. */
#include "transport/mac.h"

tt_mac_sum_fn *tt_mac_best_sum(void)
{
    return __builtin_cpu_supports("avx2") ? tt_mac_sum_avx2 : tt_mac_sum;
}
