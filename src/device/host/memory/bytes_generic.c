/* The one way to copy that every machine has: the C library's. */
#include "bytes.h"

#include <string.h>

static void copy_plain(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void tt_host_copy_short(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static bool always(void)
{
    return true;
}

static bool never(void)
{
    return false;
}

const struct tt_host_copy_method tt_host_copy_methods[TT_HOST_COPY_METHODS] = {
    {copy_plain, 0, always}, {copy_plain, 0, never}, {copy_plain, 0, never}};
