/* The shadow: for each piece of memory, who wrote it last and who has read it since. Private to
 * check/; called under the checker's lock. */
#pragma once

#include "state.h"

struct tt_check_user {
    struct tt_check_op *op; /* counted */
    bool wrote;             /* before the piece's writer, for kernels that are still to be seen */
};
struct tt_check_readers {
    size_t count, room;
    struct tt_check_user at[];
};

enum { TT_CHECK_FRESH = 1, TT_CHECK_FREED = 2 };
struct tt_check_piece { /* bytes [from, to) of a page of the shadow */
    uint32_t from, to, flags;
    struct tt_check_op *writer;       /* counted; or who allocated or freed it */
    struct tt_check_readers *readers; /* owned */
};
struct tt_check_page {
    uint64_t number;
    struct tt_check_piece *pieces; /* owned, sorted, apart */
    size_t count, room;
};

void tt_check_touch(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                    size_t bytes, bool write);
/* The same, of an access that a kernel was seen to make. */
void tt_check_touch_seen(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                         size_t bytes, bool write);
/* Forget what was known of the bytes; flags of the new state, and who made it (or NULL). */
void tt_check_reset(struct tt_host_check *check, const void *ptr, size_t bytes, uint32_t flags,
                    struct tt_check_op *op);
bool tt_check_is_freed(struct tt_host_check *check, const void *ptr);
enum tt_check_flight {
    TT_CHECK_ORDERED, /* the host knows that what used the byte is over */
    TT_CHECK_READ,    /* something reads it yet, for all that the host knows */
    TT_CHECK_WRITTEN,
};
/* Of the byte at ptr and at least one, at most `bytes`, from there that are alike. */
enum tt_check_flight tt_check_flight_at(struct tt_host_check *check, const void *ptr, size_t bytes,
                                        size_t *same_out);
