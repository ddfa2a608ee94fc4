/* What a device answers that checks nothing, has no views, and gives every stream to its caller:
 * the part of a fake device that no test cares about. */
#include "device/device.h"

bool tuttiHostChecks(void)
{
    return false;
}

void tuttiHostTouchNever(const void *base)
{
    (void)base;
}

bool tuttiHostHasViews(void)
{
    return false;
}

void *tuttiHostView(const void *ptr)
{
    return (void *)(uintptr_t)ptr;
}

enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out)
{
    *stream_out = handle;
    return TT_CLAIM_TAKEN;
}

void tuttiHostClaimEnd(struct CUstream_st *stream)
{
    (void)stream;
}

const struct tt_range *tuttiHostRange(void)
{
    return NULL;
}

void tuttiHostTouch(const void *ptr, size_t bytes, bool write)
{
    (void)ptr;
    (void)bytes;
    (void)write;
}

void tuttiHostTouchPart(int part)
{
    (void)part;
}

void tuttiHostTouchCall(const char *name, int number)
{
    (void)name;
    (void)number;
}

void tuttiHostTouchName(const char *name)
{
    (void)name;
}

void tuttiHostTouchMessage(const struct tt_peer_message *message, bool sends)
{
    (void)message;
    (void)sends;
}

void tuttiHostTouchCollective(const void *member, const struct tt_collective *collective)
{
    (void)member;
    (void)collective;
}
