/* Copies for processors without instructions of their own for it. */
#include "exec/host/reduce.h"

#include <string.h>

void tt_stream_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void tt_stream_tile(const struct tt_stream_tile *tile)
{
    for (int k = 0; k < tile->ndsts; k++)
        memcpy((char *)tile->dsts[k] + tile->at, tile->from, tile->bytes);
}

void tt_stream_fence(void) {}
