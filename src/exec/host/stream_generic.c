/* Copies for processors without instructions of their own for it. */
#include "exec/host/fold.h"

#include <string.h>

void tt_stream_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void tt_stream_fence(void) {}

void tt_string_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}
