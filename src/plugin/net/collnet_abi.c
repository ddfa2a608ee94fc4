/* What adapters of several versions of the collnet ABI share. */
#include "plugin/net/collnet_abi.h"

#include "base/error.h"

#include <limits.h>

ncclResult_t tt_collnet_narrow(const struct tt_collnet_plugin *self, const char *function,
                               size_t size, int *narrow_out)
{
    if (size > INT_MAX) {
        return tt_fail(ncclInternalError, "collnet of version %d: %s takes an int, not %zu",
                       self->ops.version, function, size);
    }
    *narrow_out = (int)size;
    return ncclSuccess;
}
