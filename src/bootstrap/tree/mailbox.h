/* Messages between ranks that nobody has asked for yet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_message { /* a message that waits for its reader */
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
bool tt_mailbox_put(struct tt_mailbox *mailbox, int peer, uint32_t tag, const void *text,
                    size_t bytes);
/* The oldest of (peer, tag), taken out; NULL when there is none. Free with free(). TT_ANY_PEER:
 * some peer's. */
struct tt_message *tt_mailbox_take(struct tt_mailbox *mailbox, int peer, uint32_t tag);
void tt_mailbox_fini(struct tt_mailbox *mailbox);
