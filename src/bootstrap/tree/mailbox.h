/* Messages that have arrived and were not received yet ("unexpected" messages). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_message { /* a message that waits for its receiver */
    struct tt_message *next;
    int peer;
    uint32_t tag;
    size_t bytes;
    unsigned char text[];
};

#define TT_MAIL_BUCKETS 64
#define TT_MAIL_LIMIT_BYTES (64u << 20)
struct tt_mailbox {
    struct tt_message *first[TT_MAIL_BUCKETS], *last[TT_MAIL_BUCKETS];
    size_t bytes;
};
/* Copy a message into the mailbox. False: TT_MAIL_LIMIT_BYTES would be exceeded, or out of memory.
 */
bool tt_mailbox_put(struct tt_mailbox *mailbox, int peer, uint32_t tag, const void *text,
                    size_t bytes);
/* Take the oldest message of (peer, tag); NULL when there is none. The caller frees it with free().
 * TT_ANY_PEER takes one of any peer. */
struct tt_message *tt_mailbox_take(struct tt_mailbox *mailbox, int peer, uint32_t tag);
void tt_mailbox_fini(struct tt_mailbox *mailbox);
