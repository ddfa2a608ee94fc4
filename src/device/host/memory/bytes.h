/* Copying bytes the way that is fastest here for their number. Private to the room. */
#pragma once

#include "process.h"

#include <stdbool.h>
#include <stddef.h>

/* As memmove(). whole: bytes of the copy of which this is a part.                            hot */
void tt_host_bytes_copy(void *dst, const void *src, size_t bytes, size_t whole);

struct tt_host_bytes { /* a copy to be made; ranges do not overlap */
    void *dst;
    const void *src;
    size_t bytes;
};

struct tt_host_copy_method {
    tt_host_copy_fn *copy;
    size_t least_bytes;    /* smaller ones are never tried this way */
    bool (*is_here)(void); /* the processor has it */
};
/* Less than a few pages; ranges do not overlap.                                              hot */
tt_host_copy_fn tt_host_copy_short;
/* The first one is everywhere. */
extern const struct tt_host_copy_method tt_host_copy_methods[TT_HOST_COPY_METHODS];
