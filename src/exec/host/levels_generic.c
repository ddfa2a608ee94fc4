/* Every other processor has one level: what the compiler makes of plain loops. */
#include "exec/host/reduce.h"

static const struct tt_reduce_level levels[] = {{"plain", tt_reduce_native, tt_reduce_narrow}};

const struct tt_reduce_level *tt_reduce_levels(int *count_out)
{
    *count_out = 1;
    return levels;
}
