/* Messages between ranks that no thread has asked for yet, in order per (peer, tag). */
#include "bootstrap/tree/mailbox.h"

#include "bootstrap/bootstrap.h"

#include <stdlib.h>
#include <string.h>

static size_t bucket_of(int peer, uint32_t tag)
{
    return ((uint32_t)peer * 2654435761u ^ tag * 40503u) % TT_MAIL_BUCKETS;
}

bool tt_mailbox_put(struct tt_mailbox *mailbox, int peer, uint32_t tag, const void *text,
                    size_t bytes)
{
    if (mailbox->bytes + bytes > TT_MAIL_LIMIT_BYTES) return false;
    struct tt_message *message = malloc(sizeof(*message) + bytes);
    if (!message) return false;
    message->next = NULL;
    message->peer = peer;
    message->tag = tag;
    message->bytes = bytes;
    if (bytes) memcpy(message->text, text, bytes);
    size_t b = bucket_of(peer, tag);
    if (mailbox->first[b]) {
        mailbox->last[b]->next = message;
    } else {
        mailbox->first[b] = message;
    }
    mailbox->last[b] = message;
    mailbox->bytes += bytes;
    return true;
}

static struct tt_message *take_from(struct tt_mailbox *mailbox, size_t b, int peer, uint32_t tag)
{
    struct tt_message *before = NULL;
    struct tt_message *message = mailbox->first[b];
    while (message && (message->tag != tag || (peer != TT_ANY_PEER && message->peer != peer))) {
        before = message;
        message = message->next;
    }
    if (!message) return NULL;
    if (before) {
        before->next = message->next;
    } else {
        mailbox->first[b] = message->next;
    }
    if (mailbox->last[b] == message) mailbox->last[b] = before;
    mailbox->bytes -= message->bytes;
    return message;
}

struct tt_message *tt_mailbox_take(struct tt_mailbox *mailbox, int peer, uint32_t tag)
{
    struct tt_message *message = NULL;
    if (peer != TT_ANY_PEER) return take_from(mailbox, bucket_of(peer, tag), peer, tag);
    for (size_t b = 0; b < TT_MAIL_BUCKETS && !message; b++)
        message = take_from(mailbox, b, peer, tag);
    return message;
}

void tt_mailbox_fini(struct tt_mailbox *mailbox)
{
    for (size_t b = 0; b < TT_MAIL_BUCKETS; b++) {
        while (mailbox->first[b]) {
            struct tt_message *message = mailbox->first[b];
            mailbox->first[b] = message->next;
            free(message);
        }
        mailbox->last[b] = NULL;
    }
    mailbox->bytes = 0;
}
