/* Processors for which there is nothing better than what the compiler makes. */
#include "transport/net/mac.h"

tt_mac_sum_fn *const *tt_mac_sums(void)
{
    static tt_mac_sum_fn *const sums[] = {tt_mac_sum, NULL};
    return sums;
}
