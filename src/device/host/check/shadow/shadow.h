/* The shadow: for each piece of memory, which operation wrote it last and which have read it since.
 * Private to check/; called under the checker's lock. */
#pragma once

#include "device/host/check/state.h"

struct tt_check_user {
    struct tt_check_op *op; /* counted */
    bool wrote;             /* an earlier writer, kept for kernels that are still observed */
};
struct tt_check_readers {
    size_t count, room;
    struct tt_check_user at[];
};

enum { TT_CHECK_FRESH = 1, TT_CHECK_FREED = 2 };
struct tt_check_piece { /* bytes [from, to) of a page of the shadow */
    uint32_t from, to, flags;
    struct tt_check_op *writer;       /* counted; or the operation that allocated or freed it */
    struct tt_check_readers *readers; /* owned */
};
struct tt_check_page {
    uint64_t number;
    struct tt_check_piece *pieces; /* owned; sorted, do not overlap */
    size_t count, room;
};

void tt_check_touch(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                    size_t bytes, bool write);
/* The same for an access of a kernel that was observed (fault.c). */
void tt_check_touch_seen(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                         size_t bytes, bool write);
/* Forget all accesses to the bytes. flags, op: their new state, and the operation that made it (or
 * NULL). */
void tt_check_reset(struct tt_host_check *check, const void *ptr, size_t bytes, uint32_t flags,
                    struct tt_check_op *op);
bool tt_check_is_freed(struct tt_host_check *check, const void *ptr);
enum tt_check_flight {
    TT_CHECK_ORDERED, /* the host knows that all accesses to the byte are over */
    TT_CHECK_READ,    /* reads of it may not be over */
    TT_CHECK_WRITTEN, /* a write to it may not be over */
};
/* State of the byte at ptr. *same_out: how many bytes from there, at most `bytes`, have the same.
 */
enum tt_check_flight tt_check_flight_at(struct tt_host_check *check, const void *ptr, size_t bytes,
                                        size_t *same_out);
