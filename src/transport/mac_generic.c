/* Processors for which there is nothing better than what the compiler makes. */
#include "transport/mac.h"

tt_mac_sum_fn *tt_mac_best_sum(void)
{
    return tt_mac_sum;
}
