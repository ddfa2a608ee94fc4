/* Copies of bytes by the method that is fastest for their number on this machine. Private to the
 * room. */
#pragma once

#include "device/host/process/process.h"

#include <stdbool.h>
#include <stddef.h>

/* As memmove(). whole: bytes of the whole copy.                                             hot */
void tt_host_bytes_copy(void *dst, const void *src, size_t bytes, size_t whole);

struct tt_host_bytes { /* a copy to be made; ranges do not overlap */
    void *dst;
    const void *src;
    size_t bytes;
};

struct tt_host_copy_method {
    tt_host_copy_fn *copy;
    size_t least_bytes;    /* smaller copies never use it */
    bool (*is_here)(void); /* the processor supports it */
};
/* Less than a few pages; ranges do not overlap.                                              hot */
tt_host_copy_fn tt_host_copy_short;
/* The first method works on every processor. */
extern const struct tt_host_copy_method tt_host_copy_methods[TT_HOST_COPY_METHODS];
