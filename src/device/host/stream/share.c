/* How much a thread does for others before it looks again at what it waits for. */
#include "stream.h"

#include "base/clock.h"

enum { SHARE_NSEC = 200000 };

void host_share_begin(struct host_share *outer_out)
{
    *outer_out = host_thread.share;
    if (!outer_out->until_nsec)
        host_thread.share = (struct host_share){tt_now_nsec() + SHARE_NSEC, HOST_INLINE_BYTES};
}

void host_share_end(const struct host_share *outer)
{
    if (!outer->until_nsec) host_thread.share = *outer;
}

bool host_share_spent(void)
{
    const struct host_share *share = &host_thread.share;
    return share->until_nsec && (share->bytes == 0 || tt_now_nsec() >= share->until_nsec);
}
