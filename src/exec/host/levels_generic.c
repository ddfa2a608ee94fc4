/* Every other processor has one level: what the compiler makes of plain loops. */
#include "exec/host/fold.h"

static const struct tt_fold_level levels[] = {{"plain", tt_fold_native, tt_fold_narrow}};

const struct tt_fold_level *tt_fold_levels(int *count_out)
{
    *count_out = 1;
    return levels;
}
