/* How much a thread does for others before it looks again at what it waits for. */
#include "stream.h"

#include "base/system/clock.h"

enum { SHARE_NSEC = 200000 };

void tt_host_share_begin(struct tt_host_share *outer_out)
{
    *outer_out = tt_host_thread.share;
    if (!outer_out->until_nsec) {
        tt_host_thread.share =
            (struct tt_host_share){tt_now_nsec() + SHARE_NSEC, TT_HOST_INLINE_BYTES};
    }
}

void tt_host_share_end(const struct tt_host_share *outer)
{
    if (!outer->until_nsec) tt_host_thread.share = *outer;
}

bool tt_host_share_spent(void)
{
    const struct tt_host_share *share = &tt_host_thread.share;
    return share->until_nsec && (share->bytes == 0 || tt_now_nsec() >= share->until_nsec);
}
