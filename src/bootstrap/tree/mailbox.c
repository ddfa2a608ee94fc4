/* Messages between ranks that nobody has asked for yet, in order per (peer, tag). */
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
    struct tt_letter *letter = malloc(sizeof(*letter) + bytes);
    if (!letter) return false;
    letter->next = NULL;
    letter->peer = peer;
    letter->tag = tag;
    letter->bytes = bytes;
    if (bytes) memcpy(letter->text, text, bytes);
    size_t b = bucket_of(peer, tag);
    if (mailbox->first[b]) {
        mailbox->last[b]->next = letter;
    } else {
        mailbox->first[b] = letter;
    }
    mailbox->last[b] = letter;
    mailbox->bytes += bytes;
    return true;
}

static bool is_wanted(const struct tt_letter *letter, int peer, uint32_t tag)
{
    return letter->tag == tag && (peer == TT_ANY_PEER || letter->peer == peer);
}

static struct tt_letter *take_from(struct tt_mailbox *mailbox, size_t b, int peer, uint32_t tag)
{
    struct tt_letter *before = NULL;
    struct tt_letter *letter = mailbox->first[b];
    while (letter && !is_wanted(letter, peer, tag)) {
        before = letter;
        letter = letter->next;
    }
    if (!letter) return NULL;
    if (before) {
        before->next = letter->next;
    } else {
        mailbox->first[b] = letter->next;
    }
    if (mailbox->last[b] == letter) mailbox->last[b] = before;
    mailbox->bytes -= letter->bytes;
    return letter;
}

struct tt_letter *tt_mailbox_take(struct tt_mailbox *mailbox, int peer, uint32_t tag)
{
    struct tt_letter *letter = NULL;
    if (peer != TT_ANY_PEER) return take_from(mailbox, bucket_of(peer, tag), peer, tag);
    for (size_t b = 0; b < TT_MAIL_BUCKETS && !letter; b++)
        letter = take_from(mailbox, b, peer, tag);
    return letter;
}

void tt_mailbox_fini(struct tt_mailbox *mailbox)
{
    for (size_t b = 0; b < TT_MAIL_BUCKETS; b++) {
        while (mailbox->first[b]) {
            struct tt_letter *letter = mailbox->first[b];
            mailbox->first[b] = letter->next;
            free(letter);
        }
        mailbox->last[b] = NULL;
    }
    mailbox->bytes = 0;
}
