/* No network in these tests: the network edges find nobody to talk to. */
#include "bootstrap/bootstrap.h"

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes)
{
    (void)bootstrap, (void)peer, (void)tag, (void)message, (void)bytes;
    return ncclInternalError;
}

uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap)
{
    (void)bootstrap;
    return 0;
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out)
{
    (void)bootstrap, (void)peer, (void)tag, (void)message, (void)max_bytes, (void)bytes_out;
    return ncclInProgress;
}
